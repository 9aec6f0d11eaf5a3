package conformance

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/elector-go/elector"
)

// runAgain: after a loss Run tells its worker to stop, waits for it, and
// campaigns again; the result of a worker that still leads is Run's.
func runAgain(s *suite) {
	el := s.election("")
	a, b := el.join(s.brisk()), s.open()
	leases, finish, done := make(chan *elector.Lease, 4), make(chan struct{}), make(chan error, 1)
	var running atomic.Int64
	wanted := errors.New("no more invoices")
	go func() {
		done <- a.Run(s.context(), func(ctx context.Context, l *elector.Lease) error {
			if running.Add(1) != 1 {
				s.Errorf("two workers run at a time")
			}
			defer running.Add(-1)
			leases <- l
			select {
			case <-ctx.Done():
				<-finish
				return errors.New("told to stop")
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
	// The usurper resigns, so that there is something to win.
	r := el.record(b)
	next := r
	next.Holder, next.Attempt.Sequence = "", r.Attempt.Sequence+1
	_, err := b.Swap(s.context(), el.name, r, next)
	s.must(err, "the usurper's release")
	if a.events.count("acquired") != 1 {
		s.Errorf("Run campaigns while its worker still runs")
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
		s.Errorf("Run returned without telling the store")
	}
}

// enter tries to campaign and returns why not.
func (c *candidate) enter() error {
	_, err := c.TryCampaign(c.el.s.context())
	return err
}

// runSick: Run keeps the lease while its sick worker drains, and campaigns
// again when it is well.
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
	wait(s, first.Context().Done(), "a sick leader's worker is told to stop")
	s.is(context.Cause(first.Context()), elector.ErrUnhealthy, "the cause of a sick leader's context")
	a.renewals(1)
	s.must(first.Check(), "Check while a sick leader's worker drains")
	order := a.watchRelease(first)
	finish <- struct{}{}
	a.await(0, "released", "a sick leader tells the store")
	order.happened()
	sick.Store(false)
	second := wait(s, leases, "Run calls the worker again when it is well")
	if second.Token() <= first.Token() {
		s.Errorf("token %d after %d", second.Token(), first.Token())
	}
	stop()
	close(finish)
	s.is(wait(s, done, "Run returns"), context.Canceled, "Run's result is its worker's")
}

// runPanic: a panic of the worker goes through, ends the lease and tells the
// store nothing, so that a successor waits for C.
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
	if p := wait(s, panicked, "a worker's panic goes through"); p != "no paper" {
		s.Errorf("the panic is %v", p)
	}
	s.is(l.Check(), elector.ErrLost, "Check after a panic")
	wait(s, l.Context().Done(), "a panic ends the context")
	next.won("a leader that panicked is replaced")
	s.waited(next, a.line.latest(), o.TTL)
	if a.events.count("released") != 0 {
		s.Errorf("the store was told after a panic: what the worker left behind may need the time")
	}
}

// held: TryCampaign says who holds the election.
func held(s *suite) {
	el := s.election("")
	o := s.long()
	o.Value = "10.0.0.7:443"
	a, b := el.join(o), el.join(s.long())
	l := a.lead()
	_, err := b.TryCampaign(s.context())
	s.is(err, elector.ErrHeld, "TryCampaign while somebody leads")
	var h *elector.HeldError
	if want := (elector.Leader{ID: a.ID(), Token: l.Token(), Value: o.Value}); !errors.As(err, &h) || who(h.Leader) != want {
		s.Errorf("TryCampaign says %v, not %+v", err, want)
	}
	if n := b.faults.Count("swap"); n != 0 {
		s.Errorf("TryCampaign wrote %d times while somebody led", n)
	}
	s.is(a.enter(), elector.ErrBusy, "TryCampaign of the leader")
	s.must(a.Resign(s.context()), "resigning")
	second, err := b.TryCampaign(s.context())
	s.must(err, "TryCampaign after a resignation")
	if n := b.faults.Count("swap"); n != 1 || second.Check() != nil {
		s.Errorf("TryCampaign took %d writes, Check says %v", n, second.Check())
	}
}
