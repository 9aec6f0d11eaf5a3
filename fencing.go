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
// The tokens of two elections cannot be compared, nor those of two partitions of a group
// (package partition): each needs a resource of its own.
//
// A Fence protects what one process writes. A resource with several processes
// needs the check in their common store: see package fencesql, and the guards of
// the backends. A Fence remembers every resource for as long as it lives, so clients
// must not be free to invent names of resources. All methods may be called at the
// same time from many goroutines. The fields must not change after the first call.
type Fence struct {
	// Keeper keeps the highest tokens where they survive this process. Without
	// one a restarted process accepts the first token that it sees.
	Keeper Keeper

	// MaxAhead refuses a token that lies further ahead of this machine's time of
	// day, with ErrInvalid. The default 0 does not: tokens may lie ahead of the
	// clock, because of Options.MinToken or of another machine's wrong clock.
	MaxAhead time.Duration

	// Trace, if not nil, has its Refused called for each write that Enter refuses
	// with ErrStale.
	Trace *Trace

	mutex     sync.Mutex
	resources map[string]*resource
}

// A Keeper keeps the highest token of each resource of one process. Raise is called
// for each new token of a resource, before the first write with it, until it succeeds:
// one call at a time for a resource, and many at a time for different ones.
type Keeper interface {
	// Raise records the token unless a higher one is recorded, and returns the
	// higher of the two. When it returns without error that is durable. ctx ends
	// with cause ErrStale when a write with a higher token waits.
	Raise(ctx context.Context, resource string, token Token) (highest Token, err error)
}

// A resource is what a Fence knows about one resource, under the Fence's mutex.
type resource struct {
	highest Token           // that was seen
	kept    Token           // by the Keeper
	inside  map[*visit]bool // with the highest token
	older   int             // visits with a lower token that have not left
	raising bool            // one of those inside calls the Keeper
	changed chan struct{}   // closed and replaced when highest has grown, or older or raising has ended
}

// A visit is a write under way, or a call of the Keeper for one.
type visit struct {
	token Token
	end   context.CancelCauseFunc
	left  bool
}

// A StaleError is the ErrStale of a Fence.
type StaleError struct {
	Resource string
	Token    Token // that was refused
	Highest  Token // that was seen
}

// Error implements error.
func (e *StaleError) Error() string {
	return fmt.Sprintf("elector: write to %q with token %d: %v: token %d has been seen since; the writer lost its election and must stop", e.Resource, e.Token, ErrStale, e.Highest)
}

// Is makes a StaleError an ErrStale.
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// Enter admits a write to the resource. It returns ErrStale, as a *StaleError, if
// a higher token was seen; ErrInvalid for a token that is none, or that MaxAhead
// refuses; an error of the Keeper; or the cause of ctx. Otherwise the caller makes
// its write with the context inside, which ends with ctx, and with cause ErrStale
// when a write with a higher token waits; and then calls leave, once or more often.
//
// Enter blocks until older writes have left and the Keeper has answered.
func (f *Fence) Enter(ctx context.Context, name string, token Token) (inside context.Context, leave func(), err error) {
	if err := f.check(token); err != nil {
		return nil, nil, err
	}
	var refused *StaleError
	defer func() { // without the mutex
		if refused != nil && f.Trace != nil && f.Trace.Refused != nil {
			f.Trace.Refused(ctx, refused)
		}
	}()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	r := f.resource(name)
	for {
		r.see(name, token)
		switch {
		case token < r.highest:
			refused = &StaleError{name, token, r.highest}
			return nil, nil, refused
		case err != nil:
			return nil, nil, err
		case r.older > 0 || r.raising:
			err = f.wait(ctx, r)
		case f.Keeper != nil && r.kept < token:
			err = f.raise(ctx, name, r, token)
		case ctx.Err() != nil:
			return nil, nil, context.Cause(ctx)
		default:
			inside, v := r.enter(ctx, token)
			return inside, func() { f.leave(r, v) }, nil
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

// see remembers a token. If it is the highest so far, those inside become older and
// their contexts end, and those with a lower token that wait are refused.
func (r *resource) see(name string, token Token) {
	if token <= r.highest {
		return
	}
	r.highest = token
	for v := range r.inside {
		v.end(&StaleError{name, v.token, token})
	}
	r.older += len(r.inside)
	clear(r.inside)
	r.change()
}

func (r *resource) enter(ctx context.Context, token Token) (context.Context, *visit) {
	inside, end := context.WithCancelCause(ctx)
	v := &visit{token: token, end: end}
	r.inside[v] = true
	return inside, v
}

func (f *Fence) leave(r *resource, v *visit) {
	v.end(nil)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if v.left {
		return
	}
	v.left = true
	if r.inside[v] {
		delete(r.inside, v)
	} else if r.older--; r.older == 0 {
		r.change()
	}
}

// change wakes those that wait.
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

// raise calls the Keeper, as a visit of its own. The caller holds the mutex, which
// raise releases meanwhile.
func (f *Fence) raise(ctx context.Context, name string, r *resource, token Token) (err error) {
	inside, v := r.enter(ctx, token)
	r.raising = true
	f.mutex.Unlock()
	var kept Token
	defer func() { // also if the Keeper panics
		f.leave(r, v)
		f.mutex.Lock()
		r.raising, r.kept = false, max(r.kept, kept)
		r.see(name, kept)
		r.change()
	}()
	highest, err := f.Keeper.Raise(inside, name, token)
	if err != nil {
		return fmt.Errorf("elector: keeping token %d of %q: %w", token, name, err)
	}
	kept = max(highest, token)
	return nil
}
