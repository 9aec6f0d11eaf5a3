package elector

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A Fence is the check that a protected resource makes: it remembers the highest
// token of each resource and refuses writes with a lower one. The zero Fence has
// seen no token.
//
// Writes with the same token run together: they are one leader's. The first write
// with a higher token ends the contexts of the older writes that are under way,
// and waits until they have returned: otherwise the older one could overwrite the
// newer one. A Fence does not remove duplicates, and it does not authenticate: a
// client that forges a high token locks all others out.
//
// A new leader that reads the resource, and writes what it computed from that, must
// enter with its token before it reads: otherwise the old leader can write in
// between.
//
// A Fence protects what one process writes. A resource with several processes
// needs the check in their common store: see package fencesql, and the guards of
// the backends. All methods may be called at the same time from many goroutines.
// The fields must not change after the first call.
type Fence struct {
	// Keeper keeps the highest tokens where they survive this process. Without
	// one a restarted process accepts the first token that it sees.
	Keeper Keeper

	// MaxAhead refuses a token that lies further ahead of this machine's time of
	// day, with ErrInvalid. The default 0 does not: tokens may lie ahead of the
	// clock, because of Options.MinToken or of another machine's wrong clock.
	MaxAhead time.Duration

	mutex     sync.Mutex
	resources map[string]*resource
}

// A Keeper keeps the highest token of each resource of one process.
type Keeper interface {
	// Raise records the token unless a higher one is recorded, and returns the
	// higher of the two. When it returns without error that is durable.
	Raise(ctx context.Context, resource string, token Token) (highest Token, err error)
}

// A resource is what a Fence knows about one resource, under the Fence's mutex.
type resource struct {
	highest Token
	kept    Token // by the Keeper
	raising bool  // a call of the Keeper is under way
	inside  map[*visit]bool
	changed chan struct{} // closed and replaced when a write leaves or the Keeper has answered
}

// A visit is a write under way.
type visit struct {
	token Token
	end   context.CancelCauseFunc
}

// A StaleError is the ErrStale of a Fence.
type StaleError struct {
	Resource string
	Token    Token // that was refused
	Highest  Token // that was seen
}

// Error implements error.
func (e *StaleError) Error() string {
	return fmt.Sprintf("elector: write to %q with token %d: %v: token %d has entered since; the writer lost its election and must stop", e.Resource, e.Token, ErrStale, e.Highest)
}

// Is makes a StaleError an ErrStale.
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// Enter admits a write to the resource. It returns ErrStale, as a *StaleError, if
// a higher token was seen; ErrInvalid for a token that is none; an error of the
// Keeper; or the cause of ctx. Otherwise the caller makes its write with the
// context inside, which ends with ctx, and with cause ErrStale when a write with a
// higher token waits; and then calls leave, once or more often.
//
// Enter blocks until older writes have left and the Keeper has answered.
func (f *Fence) Enter(ctx context.Context, name string, token Token) (inside context.Context, leave func(), err error) {
	if err := f.check(token); err != nil {
		return nil, nil, err
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	r := f.resource(name)
	for {
		if token < r.highest {
			return nil, nil, &StaleError{name, token, r.highest}
		}
		if token > r.highest {
			r.highest = token
			r.endOlder(name)
		}
		switch {
		case r.older() || r.raising:
			err = f.wait(ctx, r)
		case f.Keeper != nil && r.kept < token:
			err = f.raise(ctx, name, r, token)
		default:
			if err = context.Cause(ctx); err == nil {
				inside, leave = f.admit(ctx, r, token)
				return inside, leave, nil
			}
		}
		if err != nil {
			return nil, nil, err
		}
	}
}

// Do calls write within Enter, and returns its error.
func (f *Fence) Do(ctx context.Context, name string, token Token, write func(context.Context) error) error {
	ctx, leave, err := f.Enter(ctx, name, token)
	if err != nil {
		return err
	}
	defer leave()
	return write(ctx)
}

// Admit is Do without a write: it remembers the token, or returns the error of
// Enter. Use it for the first token after a restart of a resource that keeps its
// highest token itself, and for a leader that is about to read.
func (f *Fence) Admit(ctx context.Context, name string, token Token) error {
	return f.Do(ctx, name, token, func(context.Context) error { return nil })
}

func (f *Fence) check(token Token) error {
	if token == 0 || token > MaxToken {
		return fmt.Errorf("elector: %w: %d is not a fencing token", ErrInvalid, uint64(token))
	}
	if f.MaxAhead > 0 && token > Token(max(time.Now().Add(f.MaxAhead).UnixMicro(), 0)) {
		return fmt.Errorf("elector: %w: token %d lies more than %v ahead of this machine's clock: it is forged, or one of the clocks is wrong", ErrInvalid, token, f.MaxAhead)
	}
	return nil
}

func (f *Fence) resource(name string) *resource {
	r := f.resources[name]
	if r == nil {
		if f.resources == nil {
			f.resources = map[string]*resource{}
		}
		r = &resource{inside: map[*visit]bool{}, changed: make(chan struct{})}
		f.resources[name] = r
	}
	return r
}

// endOlder ends the contexts of the writes with a lower token than the highest.
func (r *resource) endOlder(name string) {
	for v := range r.inside {
		if v.token < r.highest {
			v.end(&StaleError{name, v.token, r.highest})
		}
	}
}

// older reports whether a write with a lower token than the highest is under way.
func (r *resource) older() bool {
	for v := range r.inside {
		if v.token < r.highest {
			return true
		}
	}
	return false
}

func (r *resource) change() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// wait blocks until the resource changes. The caller holds the mutex, which wait
// releases meanwhile.
func (f *Fence) wait(ctx context.Context, r *resource) error {
	changed := r.changed
	f.mutex.Unlock()
	defer f.mutex.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// raise calls the Keeper. The caller holds the mutex, which raise releases
// meanwhile.
func (f *Fence) raise(ctx context.Context, name string, r *resource, token Token) (err error) {
	var highest Token
	r.raising = true
	f.mutex.Unlock()
	defer func() { // also if the Keeper panics
		f.mutex.Lock()
		r.raising = false
		r.kept, r.highest = max(r.kept, highest), max(r.highest, highest)
		r.change()
	}()
	if highest, err = f.Keeper.Raise(ctx, name, token); err != nil {
		highest = 0
		return fmt.Errorf("elector: keeping token %d of %q: %w", token, name, err)
	}
	return nil
}

func (f *Fence) admit(ctx context.Context, r *resource, token Token) (inside context.Context, leave func()) {
	v := &visit{token: token}
	inside, v.end = context.WithCancelCause(ctx)
	r.inside[v] = true
	return inside, func() {
		v.end(nil)
		f.mutex.Lock()
		defer f.mutex.Unlock()
		if r.inside[v] {
			delete(r.inside, v)
			r.change()
		}
	}
}
