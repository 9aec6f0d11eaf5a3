package conformance

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/elector-go/elector"
)

// run/again: after a loss Run stops its worker, waits for it and campaigns again.
// The result of a worker that still leads is the result of Run.
func runAgain(s *suite) {
	el := s.election("")
	a, b := el.join(s.brisk()), s.open()
	leases, finish, done := make(chan *elector.Lease, 4), make(chan struct{}), make(chan error, 1)
	var running atomic.Int64
	wanted := errors.New("the work is done")
	go func() {
		done <- a.Run(s.context(), func(ctx context.Context, l *elector.Lease) error {
			if running.Add(1) != 1 {
				s.Errorf("Run runs one worker at a time: two run")
			}
			defer running.Add(-1)
			leases <- l
			select {
			case <-ctx.Done():
				<-finish
				return errors.New("stopped")
			case finish <- struct{}{}:
				return wanted
			}
		})
	}()
	first := wait(s, leases, "Run calls the worker")
	s.is(a.enter(), elector.ErrBusy, "Campaign while Run runs")
	el.overwrite(b, "usurper")
	wait(s, first.Context().Done(), "a loss ends the worker's context")
	s.is(first.Check(), elector.ErrLost, "Check after a loss")
	// The usurper resigns, so that Run can win again.
	r := el.record(b)
	next := r
	next.Holder, next.Attempt.Sequence = "", r.Attempt.Sequence+1
	_, err := b.Swap(s.context(), el.name, r, next)
	s.must(err, "the usurper's release")
	if a.events.count("acquired") != 1 {
		s.Errorf("Run campaigns only after its worker has returned: it has won before")
	}
	finish <- struct{}{}
	second := wait(s, leases, "Run calls the worker again after a loss")
	if second.Token() <= first.Token() {
		s.Errorf("token %d after %d", second.Token(), first.Token())
	}
	<-finish
	s.is(wait(s, done, "Run returns when its worker does"), wanted, "Run's result")
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
func runSick(s *suite) {
	el := s.election("")
	var sick atomic.Bool
	o := s.brisk()
	o.ReleaseTimeout = 2 * watchdog
	o.Healthy = func(context.Context) error {
		if sick.Load() {
			return errors.New("cannot reach the mail server")
		}
		return nil
	}
	a := el.join(o)
	ctx, stop := context.WithCancel(s.context())
	leases, finish, done := make(chan *elector.Lease, 4), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- a.Run(ctx, func(ctx context.Context, l *elector.Lease) error {
			leases <- l
			<-ctx.Done()
			<-finish
			return ctx.Err()
		})
	}()
	first := wait(s, leases, "Run calls the worker")
	sick.Store(true)
	wait(s, first.Context().Done(), "an unhealthy leader's worker is stopped")
	s.is(context.Cause(first.Context()), elector.ErrUnhealthy, "the cause of an unhealthy leader's context")
	a.renewals(1)
	s.must(first.Check(), "Check while an unhealthy leader's worker drains")
	order := a.watchRelease(first)
	finish <- struct{}{}
	a.await(0, "released", "an unhealthy leader releases the record")
	order.happened()
	sick.Store(false)
	second := wait(s, leases, "Run calls the worker again when the leader is healthy")
	if second.Token() <= first.Token() {
		s.Errorf("token %d after %d", second.Token(), first.Token())
	}
	stop()
	close(finish)
	s.is(wait(s, done, "Run returns"), context.Canceled, "Run's result is its worker's")
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
	next := b.campaign(s.context())
	b.sees(a)
	close(goOn)
	if p := wait(s, panicked, "a worker's panic reaches the caller of Run"); p != "no paper" {
		s.Errorf("a worker's panic reaches the caller of Run: it recovered %v", p)
	}
	s.is(l.Check(), elector.ErrLost, "Check after a panic")
	wait(s, l.Context().Done(), "a panic ends the context")
	next.won("a leader that panicked is replaced")
	s.waited(next, a.line.latest(), o.TTL)
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
	if n := b.faults.Count("swap"); n != 0 {
		s.Errorf("TryCampaign writes nothing while another candidate leads: it wrote %d times", n)
	}
	s.is(a.enter(), elector.ErrBusy, "TryCampaign of the leader")
	s.must(a.Resign(s.context()), "resigning")
	second, err := b.TryCampaign(s.context())
	s.must(err, "TryCampaign after a resignation")
	if n := b.faults.Count("swap"); n != 1 || second.Check() != nil {
		s.Errorf("TryCampaign writes once: it wrote %d times, and Check returned %v", n, second.Check())
	}
}
