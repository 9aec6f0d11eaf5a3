package conformance

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fault"
)

// A worker is one that Run runs in the background.
type worker struct {
	s        *suite
	leases   chan *elector.Lease // gets the lease at each call
	running  atomic.Bool
	stopped  chan struct{} // gets a value when a context ends that drain waits for
	finish   chan struct{} // lets one call return, or all when it is closed
	stop     func()        // ends Run's context
	done     chan error    // gets the result of Run
	releases releaseOrder
}

// run runs a worker. It sets a fault that changes nothing and fails the case if
// the record is released while the worker runs.
func (c *candidate) run(work func(ctx context.Context, w *worker) error) *worker {
	s := c.el.s
	ctx, stop := context.WithCancel(s.context())
	w := &worker{s: s, stop: stop, leases: make(chan *elector.Lease, 4), stopped: make(chan struct{}, 4),
		finish: make(chan struct{}), done: make(chan error, 1), releases: releaseOrder{s: s}}
	c.faults.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
		return w.releases.send(ctx, c, send, func() {
			if w.running.Load() {
				s.Errorf("Run releases the record only after the worker has returned: it did before")
			}
		})
	})
	go func() {
		w.done <- c.Run(ctx, func(ctx context.Context, l *elector.Lease) error {
			if w.running.Swap(true) {
				s.Errorf("Run runs one worker at a time: two run")
			}
			defer w.running.Store(false)
			w.leases <- l
			return work(ctx, w)
		})
	}()
	return w
}

// drain is the work of a worker that stops when its context ends, and returns when
// the case lets it.
func drain(ctx context.Context, w *worker) error {
	<-ctx.Done()
	w.stopped <- struct{}{}
	return ignore(ctx, w)
}

// ignore is the work of a worker that ignores its context.
func ignore(_ context.Context, w *worker) error { <-w.finish; return nil }

// lease returns the lease of the next call.
func (w *worker) lease() *elector.Lease {
	w.s.Helper()
	return wait(w.s, w.leases, "Run calls the worker")
}

// ended returns the result of Run.
func (w *worker) ended() error {
	w.s.Helper()
	return wait(w.s, w.done, "Run returns after its worker")
}

// run/again: after a loss Run stops its worker, waits for it and campaigns again.
// The result of a worker that still leads is the result of Run.
func runAgain(s *suite) {
	el := s.election("")
	a, b := el.join(s.brisk()), s.open()
	wanted := errors.New("the work is done")
	run := a.run(func(ctx context.Context, w *worker) error {
		select {
		case <-ctx.Done():
			<-w.finish
			return errors.New("stopped")
		case w.finish <- struct{}{}:
			return wanted
		}
	})
	first := run.lease()
	s.is(a.enter(), elector.ErrBusy, "Campaign while Run runs")
	el.overwrite(b, usurper)
	wait(s, first.Context().Done(), "a loss ends the worker's context")
	s.is(first.Check(), elector.ErrLost, "Check after a loss")
	// The usurper resigns, so that Run can win again.
	el.edit(b, func(r *backends.Record) { *r = vacancy(*r) })
	if a.events.count("acquired") != 1 {
		s.Errorf("Run campaigns only after its worker has returned: it has won before")
	}
	run.finish <- struct{}{}
	second := wait(s, run.leases, "Run calls the worker again after a loss")
	s.grows(first.Token(), second.Token(), "after the worker was called again")
	<-run.finish
	s.is(run.ended(), wanted, "Run's result")
	s.is(second.Check(), elector.ErrResigned, "Check after Run returned")
	if !el.record(b).Vacant() {
		s.Errorf("Run releases the record before it returns: it did not")
	}
}

// enter calls TryCampaign and returns its error.
func (c *candidate) enter() error {
	_, err := c.TryCampaign(c.el.s.context())
	return err
}

// run/unhealthy: Run keeps the lease while the worker of an unhealthy leader
// drains, and campaigns again when the leader is healthy.
func runUnhealthy(s *suite) {
	el := s.election("")
	var failing atomic.Bool
	o := s.brisk()
	o.ReleaseTimeout = 2 * watchdog
	o.Healthy = func(context.Context) error {
		if failing.Load() {
			return errors.New("cannot reach the mail server")
		}
		return nil
	}
	a := el.join(o)
	run := a.run(func(ctx context.Context, w *worker) error { drain(ctx, w); return ctx.Err() })
	first := run.lease()
	failing.Store(true)
	wait(s, first.Context().Done(), "an unhealthy leader's worker is stopped")
	s.is(context.Cause(first.Context()), elector.ErrUnhealthy, "the cause of an unhealthy leader's context")
	a.renewals(1)
	s.must(first.Check(), "Check while an unhealthy leader's worker drains")
	order := a.watchRelease(first)
	run.finish <- struct{}{}
	a.await(0, "released", "an unhealthy leader releases the record")
	order.happened()
	failing.Store(false)
	second := wait(s, run.leases, "Run calls the worker again when the leader is healthy")
	s.grows(first.Token(), second.Token(), "after the worker was called again")
	run.stop()
	close(run.finish)
	s.is(run.ended(), context.Canceled, "Run's result is its worker's")
}

// run/panic: a panic of the worker reaches the caller of Run, ends the lease and
// does not release the record, so that a successor waits for C.
func runPanic(s *suite) {
	el := s.election("")
	o := s.short()
	a, b := el.join(o), el.join(o)
	leases, panicked, goOn := make(chan *elector.Lease, 1), make(chan any, 1), make(chan struct{})
	go func() {
		defer func() { panicked <- recover() }()
		a.Run(s.context(), func(_ context.Context, l *elector.Lease) error {
			leases <- l
			<-goOn
			panic("no paper")
		})
	}()
	l := wait(s, leases, "Run calls the worker")
	next := b.challenge(a)
	close(goOn)
	if p := wait(s, panicked, "a worker's panic reaches the caller of Run"); p != "no paper" {
		s.Errorf("a worker's panic reaches the caller of Run: it recovered %v", p)
	}
	s.is(l.Check(), elector.ErrLost, "Check after a panic")
	wait(s, l.Context().Done(), "a panic ends the context")
	next.won("a leader that panicked is replaced")
	s.waited(next, a.writes.latest(), o.TTL)
	if a.events.count("released") != 0 {
		s.Errorf("after a panic the record is not released, because the worker may have left something behind that needs the time: it was")
	}
}

// try/held: the error of TryCampaign names the leader.
func held(s *suite) {
	el := s.election("")
	o := s.long()
	o.Value = "10.0.0.7:443"
	a, b := el.join(o), el.join(s.long())
	l := a.lead()
	_, err := b.TryCampaign(s.context())
	s.is(err, elector.ErrHeld, "TryCampaign while another candidate leads")
	var h *elector.HeldError
	if want := (elector.Leader{ID: a.ID(), Token: l.Token(), Value: o.Value}); !errors.As(err, &h) || who(h.Leader) != want {
		s.Errorf("the error of TryCampaign names the leader: it is %v, and the leader is %+v", err, want)
	}
	b.wrote(0, "TryCampaign writes nothing while another candidate leads")
	s.is(a.enter(), elector.ErrBusy, "TryCampaign of the leader")
	s.must(a.Resign(s.context()), "resigning")
	second, err := b.TryCampaign(s.context())
	s.must(err, "TryCampaign after a resignation")
	b.wrote(1, "TryCampaign writes once")
	s.must(second.Check(), "Check after TryCampaign")
}
