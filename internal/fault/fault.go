// Package fault puts faults between an elector and its backend: answers lost
// after the store has applied a write, requests lost, applied late or twice,
// hanging, refused. It works with any backend.
package fault

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
)

// ErrInjected is the error of a request that a fault has hit.
var ErrInjected = errors.New("injected fault")

// A Call is one request on its way to the backend.
type Call struct {
	Op         string // "load" or "swap"
	Name       string // of the election
	Prev, Next backends.Record
}

// A Send passes a request on.
type Send func(context.Context) (backends.Record, error)

// A Fault stands in for a request: it may call send never, once or more often,
// at any time, and return what it likes.
type Fault func(ctx context.Context, c Call, send Send) (backends.Record, error)

// A Backend is a backend whose requests run through faults.
type Backend struct {
	backends.Backend

	mutex  sync.Mutex
	always Fault
	next   map[string][]Fault // by op
	count  map[string]int     // by op, all that came this way
	hits   int

	cut   context.Context // its end is that of the watches
	sever context.CancelCauseFunc
}

// Wrap returns the backend with no fault set. The result is a Watcher and a
// PresenceWatcher if and only if b is.
func Wrap(b backends.Backend) (*Backend, backends.Backend) {
	f := &Backend{Backend: b, next: map[string][]Fault{}, count: map[string]int{}}
	f.cut, f.sever = context.WithCancelCause(context.Background())
	w, _ := b.(backends.Watcher)
	p, attends := b.(backends.PresenceWatcher)
	watches := watching{f, w}
	switch {
	case attends:
		return f, attending{watches, p}
	case w != nil:
		return f, watches
	}
	return f, f
}

// SameWrite implements backends.SameWriter. It returns false if the backend is none.
func (f *Backend) SameWrite(before, after backends.Version) bool {
	s, ok := f.Backend.(backends.SameWriter)
	return ok && s.SameWrite(before, after)
}

type watching struct {
	*Backend
	watcher backends.Watcher
}

func (w watching) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	return w.watch(ctx, func(ctx, cut context.Context) error {
		return w.watcher.Watch(ctx, name, func(r backends.Record) {
			if cut.Err() == nil {
				changed(r)
			}
		})
	})
}

type attending struct {
	watching
	presence backends.PresenceWatcher
}

func (a attending) WatchPresence(ctx context.Context, name string, held backends.Record) error {
	return a.watch(ctx, func(ctx, _ context.Context) error { return a.presence.WatchPresence(ctx, name, held) })
}

// CutWatches ends the watches under way with err, and later ones at once. What changes
// after CutWatches has returned is not shown. With nil watches work again.
func (f *Backend) CutWatches(err error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	switch {
	case err != nil:
		f.sever(err)
	case f.cut.Err() != nil:
		f.cut, f.sever = context.WithCancelCause(context.Background())
	}
}

func (f *Backend) watch(ctx context.Context, watch func(ctx, cut context.Context) error) error {
	f.mutex.Lock()
	cut := f.cut
	f.mutex.Unlock()
	if cut.Err() != nil {
		return context.Cause(cut)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(cut, cancel)()
	err := watch(ctx, cut)
	if cut.Err() != nil {
		return context.Cause(cut)
	}
	return err
}

// Always sets the fault of all requests that have none from Next; nil for
// none.
func (f *Backend) Always(fault Fault) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.always = fault
}

// Next sets the faults of the next requests of one kind, in their order. A nil
// Fault lets its request pass.
func (f *Backend) Next(op string, faults ...Fault) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.next[op] = append(f.next[op], faults...)
}

// Count returns how many requests of a kind were made, Hits how many requests
// met a fault, Pending how many of Next's faults have not been met.
func (f *Backend) Count(op string) int { f.mutex.Lock(); defer f.mutex.Unlock(); return f.count[op] }

// Hits: see Count.
func (f *Backend) Hits() int { f.mutex.Lock(); defer f.mutex.Unlock(); return f.hits }

// Pending: see Count.
func (f *Backend) Pending() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return len(f.next["load"]) + len(f.next["swap"])
}

// Load implements backends.Backend.
func (f *Backend) Load(ctx context.Context, name string) (backends.Record, error) {
	return f.through(ctx, Call{Op: "load", Name: name}, func(ctx context.Context) (backends.Record, error) {
		return f.Backend.Load(ctx, name)
	})
}

// Swap implements backends.Backend.
func (f *Backend) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	return f.through(ctx, Call{"swap", name, prev, next}, func(ctx context.Context) (backends.Record, error) {
		return f.Backend.Swap(ctx, name, prev, next)
	})
}

func (f *Backend) through(ctx context.Context, c Call, send Send) (backends.Record, error) {
	f.mutex.Lock()
	f.count[c.Op]++
	fault := f.always
	if queue := f.next[c.Op]; len(queue) > 0 {
		fault, f.next[c.Op] = queue[0], queue[1:]
	}
	if fault != nil {
		f.hits++
	}
	f.mutex.Unlock()
	if fault == nil {
		return send(ctx)
	}
	return fault(ctx, c, send)
}

// RequestLost answers with an error and passes nothing on.
func RequestLost(context.Context, Call, Send) (backends.Record, error) {
	return backends.Record{}, ErrInjected
}

// ReplyLost passes the request on and answers with an error.
func ReplyLost(ctx context.Context, _ Call, send Send) (backends.Record, error) {
	send(ctx)
	return backends.Record{}, ErrInjected
}

// Twice passes the request on twice and answers the second time's answer, as
// a client or proxy that repeats a write by itself.
func Twice(ctx context.Context, _ Call, send Send) (backends.Record, error) {
	send(ctx)
	return send(ctx)
}

// Hang passes nothing on and answers when the caller gives up.
func Hang(ctx context.Context, _ Call, _ Send) (backends.Record, error) {
	<-ctx.Done()
	return backends.Record{}, ctx.Err()
}

// HangApplied passes the request on, and answers when the caller gives up.
func HangApplied(ctx context.Context, _ Call, send Send) (backends.Record, error) {
	send(ctx)
	<-ctx.Done()
	return backends.Record{}, ctx.Err()
}

// Deaf does not even notice that the caller gives up, until release is closed.
func Deaf(release <-chan struct{}) Fault {
	return func(context.Context, Call, Send) (backends.Record, error) {
		<-release
		return backends.Record{}, ErrInjected
	}
}

// Late answers with an error at once, and passes the request on when release
// is closed; then it closes applied.
func Late(release <-chan struct{}, applied chan<- struct{}) Fault {
	return func(ctx context.Context, _ Call, send Send) (backends.Record, error) {
		go func() {
			<-release
			send(context.WithoutCancel(ctx))
			close(applied)
		}()
		return backends.Record{}, ErrInjected
	}
}

// Fails answers with the given error and passes nothing on.
func Fails(err error) Fault {
	return func(context.Context, Call, Send) (backends.Record, error) { return backends.Record{}, err }
}

// Slow passes a write on after a time.
func Slow(after time.Duration) Fault {
	return func(ctx context.Context, c Call, send Send) (backends.Record, error) {
		if c.Op == "swap" {
			time.Sleep(after)
		}
		return send(ctx)
	}
}

// Hold waits until release is closed, then passes the request on and answers.
// A caller that gives up meanwhile gets its own error.
func Hold(release <-chan struct{}) Fault {
	return func(ctx context.Context, _ Call, send Send) (backends.Record, error) {
		select {
		case <-release:
			return send(ctx)
		case <-ctx.Done():
			return backends.Record{}, ctx.Err()
		}
	}
}
