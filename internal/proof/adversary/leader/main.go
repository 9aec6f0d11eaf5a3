// Command leader is one candidate of package adversary: while it leads it makes some
// writes, and then it stops itself at a point drawn by lot, with SIGSTOP. When it goes on
// it makes the write that it was about to make.
//
// Each write is made twice: through the guard, and to a copy of the data without one. Both
// believe the Check before the stop. The end of its input ends it in order.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	_ "github.com/elector-go/elector/backends/file"
	"github.com/elector-go/elector/internal/proof/adversary/wire"
)

func main() {
	t, err := wire.FromEnvironment()
	if err == nil {
		err = run(t)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "leader:", err)
		os.Exit(1)
	}
}

func run(t wire.Task) (err error) {
	d, err := open(t)
	if err != nil {
		return err
	}
	e, err := elector.Open(context.Background(), t.URL, t.Election, &elector.Options{ID: t.Candidate, TTL: t.TTL, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close(), d.close()) }()
	ctx, quit := context.WithCancel(context.Background())
	defer quit()
	go func() {
		io.Copy(io.Discard, os.Stdin)
		quit()
	}()
	l := &leader{task: t, data: d, random: rand.New(rand.NewPCG(t.Seed, 0))}
	for ctx.Err() == nil {
		// A drain is the end of this context alone.
		var term context.Context
		term, l.drain = context.WithCancel(ctx)
		err := e.Run(term, l.work)
		l.drain()
		if err != nil && !errors.Is(err, elector.ErrLost) {
			return err
		}
	}
	return nil
}

type leader struct {
	task   wire.Task
	data   data
	random *rand.Rand
	drain  context.CancelFunc
}

// A checked lease gives the answer of an earlier Check, as in a process that stood still
// right after it.
type checked struct{ answer backends.Acquisition }

// Acquisition implements [backends.Lease].
func (c checked) Acquisition() (backends.Acquisition, error) { return c.answer, nil }

// work leads for one term. Its first write is never a stop, so that each leader is seen to
// have written before it stops.
func (l *leader) work(ctx context.Context, lease *elector.Lease) error {
	for left := 1 + l.random.IntN(3); ; left-- {
		held, err := lease.Acquisition() // which is Check
		if err != nil {
			return nil
		}
		if left <= 0 && ctx.Err() == nil {
			return l.stop(ctx, lease, checked{held})
		}
		err, plain := l.write(checked{held}, wire.Write{Token: uint64(lease.Token()), Point: wire.None})
		switch err := errors.Join(err, plain); {
		case err == nil:
			tell(wire.Message{Kind: wire.Wrote, Token: uint64(lease.Token())})
		case !errors.Is(err, elector.ErrStale):
			tell(wire.Message{Kind: wire.Trouble, Error: err.Error()})
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Duration(l.random.IntN(5)) * time.Millisecond):
		}
	}
}

// write makes a guarded write and then one without a guard.
func (l *leader) write(held checked, w wire.Write) (guarded, plain error) {
	// Longer than any stop: the store is to refuse a late write, not the context.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if w.Point == wire.Admitted { // both wait in the service
		var group sync.WaitGroup
		group.Go(func() { plain = l.data.plain(ctx, w) })
		guarded = l.data.guarded(ctx, held, w)
		group.Wait()
		return guarded, plain
	}
	guarded = l.data.guarded(ctx, held, w)
	return guarded, l.data.plain(ctx, w)
}

// stop stops at a point, and makes the writes that are late then.
func (l *leader) stop(ctx context.Context, lease *elector.Lease, held checked) error {
	point := l.task.Points[l.random.IntN(len(l.task.Points))]
	w := wire.Write{Token: uint64(lease.Token()), Point: point}
	if point == wire.Drain {
		l.drain()
		<-ctx.Done()
		answer, err := lease.Acquisition()
		if err != nil {
			return nil // the drain took too long
		}
		held = checked{answer}
	}
	s := &stop{point: point, lease: lease, over: make(chan struct{})}
	armed.Store(s)
	switch point {
	case wire.Check, wire.Drain:
		at(point)
	case wire.Release, wire.Released:
		resigning, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		lease.Release(resigning) // after the stop it cannot succeed, and that is well
		cancel()
	case wire.Renew, wire.Renewed:
		select {
		case <-s.over:
		case <-lease.Context().Done():
		}
	}
	err, _ := l.write(held, w)
	stopped := !armed.CompareAndSwap(s, nil)
	if stopped {
		<-s.over
	}
	m := wire.Message{Kind: wire.Went, Token: w.Token, Point: point, Outcome: wire.Committed, Believed: s.believed}
	switch {
	case errors.Is(err, elector.ErrStale):
		m.Outcome = wire.Refused
	case err != nil:
		m.Outcome, m.Error = wire.Failed, err.Error()
	}
	if stopped || point == wire.Admitted {
		tell(m)
	}
	return nil
}

// A stop is one that is to be made.
type stop struct {
	point    string
	lease    *elector.Lease
	over     chan struct{} // closed once this process goes on
	believed bool          // that it still leads, right afterwards
}

var armed atomic.Pointer[stop]

// at stops this process if a stop is to be made at the point. The library calls it too, in
// this build.
func at(point string) {
	s := armed.Load()
	if s == nil || s.point != point || !armed.CompareAndSwap(s, nil) {
		return
	}
	tell(wire.Message{Kind: wire.Stops, Token: uint64(s.lease.Token()), Point: point})
	stopThisProcess()
	s.believed = s.lease.Check() == nil
	close(s.over)
}

var output sync.Mutex

func tell(m wire.Message) {
	line, err := json.Marshal(m)
	if err != nil {
		panic(err) // it has nothing that JSON could not say
	}
	output.Lock()
	defer output.Unlock()
	os.Stdout.Write(append(line, '\n'))
}
