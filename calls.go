package elector

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// The calls of an Elector that are under way: Close waits for all of them, and one at a time
// campaigns or leads.
type calls struct {
	life   context.Context // ends with Close
	kill   context.CancelFunc
	active sync.WaitGroup // of calls and goroutines that Close waits for

	// mutex guards what follows, and is never held across I/O or a callback.
	mutex    sync.Mutex
	closed   bool
	closing  chan struct{} // closed when Close is done
	closeErr error
	busy     bool // a call of Campaign, TryCampaign or Run is under way
	running  bool // that call is Run

	campaigns atomic.Bool // a call campaigns, and waits for no worker
}

var (
	errNilContext = fmt.Errorf("%w: the context is nil", ErrInvalid)
	errNoElector  = fmt.Errorf("elector: %w: this Elector was not made by Open or New", ErrInvalid)
)

// begin registers a call, so that Close waits for it, or returns ErrClosed or
// ErrInvalid. The caller calls e.active.Done at its end.
func (e *Elector) begin(ctx context.Context) error {
	switch {
	case e.backend == nil:
		return errNoElector
	case ctx == nil:
		return errNilContext
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.closed {
		return ErrClosed
	}
	e.active.Add(1)
	return nil
}

// beginWriting is begin for a call that writes: it returns ErrReadOnly if the backend was
// opened for reading alone.
func (e *Elector) beginWriting(ctx context.Context) error {
	if e.refusal != nil {
		return e.refusal
	}
	return e.begin(ctx)
}

// enter takes the right to campaign, for Run or for a single lease, and registers
// the call.
func (e *Elector) enter(ctx context.Context, running bool) error {
	if err := e.beginWriting(ctx); err != nil {
		return err
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if l := e.current.Load(); e.busy || l != nil && l.valid() == nil {
		e.active.Done()
		return ErrBusy
	}
	e.busy, e.running = true, running
	return nil
}

// leave gives the right back, and reports whether Close was called: in one step,
// so that either Close sees the lease or the caller sees Close.
func (e *Elector) leave() (closed bool) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.busy = false
	return e.closed
}

// joined returns a context that ends with ctx and with the Elector.
func (e *Elector) joined(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(e.life, func() { cancel(ErrClosed) })
	return ctx, func() { stop(); cancel(nil) }
}
