package conformance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fault"
)

// ctx/cancel: a campaign whose context ends returns its cause, whatever it is
// doing, and holds nothing that does not expire.
func cancelled(s *suite) {
	cause := errors.New("no longer needed")
	start := func(c *candidate) (*campaign, context.CancelCauseFunc) {
		ctx, cancel := context.WithCancelCause(s.context())
		return c.campaign(ctx), cancel
	}
	ends := func(p *campaign, where string) {
		s.Helper()
		wait(s, p.done, "Campaign returns when its context ends, "+where)
		s.is(p.err, cause, "Campaign whose context ends "+where)
		_, err := p.c.Token()
		s.is(err, elector.ErrNotLeader, "Token after a campaign that was cancelled "+where)
	}
	free := func(el *election, where string) {
		s.Helper()
		// For what this case leaves C is longer than the watchdog.
		if _, err := el.join(s.long()).TryCampaign(s.context()); err != nil {
			s.Errorf("after a campaign was cancelled %s: %v", where, err)
		}
	}

	el := s.election("-load")
	a := el.join(s.long()) // each request may take longer than the watchdog
	sent := make(chan struct{})
	a.faults.Always(counting(1, sent, fault.Hang))
	p, cancel := start(a)
	wait(s, sent, "a campaign reads")
	cancel(cause)
	ends(p, "while it reads")
	free(el, "while it reads")

	el = s.election("-deaf")
	a = el.join(s.long())
	sent, deaf := make(chan struct{}), make(chan struct{})
	a.faults.Always(counting(1, sent, fault.Deaf(deaf)))
	p, cancel = start(a)
	wait(s, sent, "a campaign reads")
	cancel(cause)
	ends(p, "while it reads from a store that ignores contexts")
	close(deaf)

	el = s.election("-swap")
	o := s.short()
	o.RequestTimeout = o.RenewEvery
	a = el.join(o)
	sent = make(chan struct{})
	a.faults.Next("swap", counting(1, sent, fault.HangApplied))
	p, cancel = start(a)
	wait(s, sent, "a campaign writes")
	cancel(cause)
	ends(p, "while it writes")
	el.join(s.short()).lead() // what was written expires

	el = s.election("-waiting")
	el.join(s.long()).lead()
	a = el.join(s.long())
	p, cancel = start(a)
	a.await(0, "observed", "a campaign sees who leads")
	p.waits("another candidate leads")
	cancel(cause)
	ends(p, "while it waits")
	a.wrote(0, "a campaign that is cancelled while it waits writes no more than a bid")

	// During the random pause after a release. It may win that race.
	el = s.election("-jitter")
	holder := el.join(s.observable()) // a waiter that polls reads as often as the holder renews
	l := holder.lead()
	a = el.join(s.long())
	p, cancel = start(a)
	a.sees(holder)
	at := a.events.length()
	s.must(l.Release(s.context()), "resigning")
	a.await(at, "observed", "a campaign sees the vacancy")
	cancel(cause)
	wait(s, p.done, "Campaign returns when its context ends after a release")
	if p.err == nil {
		s.must(p.lease.Release(s.context()), "resigning")
	} else {
		ends(p, "after a release")
		s.must(a.Close(), "Close, which waits until a write that was under way is released")
	}
	free(el, "after a release")

	el = s.election("-pause")
	a = el.join(s.long()) // the first pause takes seconds
	sent = make(chan struct{})
	a.faults.Always(counting(1, sent, fault.RequestLost))
	p, cancel = start(a)
	wait(s, sent, "a campaign reads")
	cancel(cause)
	ends(p, "while it pauses")
	if n := a.faults.Count("load"); n != 1 {
		s.Errorf("a campaign that was cancelled during its pause read %d more times", n-1)
	}
	a.faults.Always(nil)
	free(el, "while it pauses")

	el = s.election("-before")
	a = el.join(s.long())
	ctx, cancel := context.WithCancelCause(s.context())
	cancel(cause)
	_, err := a.Campaign(ctx)
	s.is(err, cause, "Campaign with a context that has ended")
	if n := a.faults.Count("load") + a.faults.Count("swap"); n != 0 {
		s.Errorf("a campaign whose context had ended made %d requests", n)
	}
}

// close/idempotent: concurrent Closes of electors with a lease, a waiting campaign,
// an observer and a worker.
func closeIdempotent(s *suite) {
	el := s.election("")
	a, b, c := el.join(s.brisk()), el.join(s.brisk()), el.join(s.brisk())
	l := a.lead()
	order := a.watchRelease(l)
	next := b.challenge(a)
	seen := c.observe(s.context())
	seen.next("the leader")
	closeAll := func(c *candidate) {
		s.Helper()
		errs := make(chan error, 8)
		for range cap(errs) {
			go func() { errs <- c.Close() }()
		}
		for range cap(errs) {
			s.must(wait(s, errs, "each Close returns"), "Close")
		}
		s.must(c.Close(), "Close after Close")
	}
	closeAll(b)
	wait(s, next.done, "Close ends a campaign")
	s.is(next.err, elector.ErrClosed, "a campaign whose Elector was closed")
	closeAll(c)
	seen.ends(elector.ErrClosed, "an Elector that is closed")
	s.must(l.Check(), "the lease after others were closed")
	closeAll(a)
	order.happened()
	wait(s, l.Context().Done(), "Close ends the lease's context")
	s.is(l.Check(), elector.ErrResigned, "Check after Close")
	if r := el.record(s.open()); !r.Vacant() {
		s.Errorf("after Close the record is %v", r)
	}
	ctx := s.context()
	_, err := a.Campaign(ctx)
	s.is(err, elector.ErrClosed, "Campaign after Close")
	_, err = a.TryCampaign(ctx)
	s.is(err, elector.ErrClosed, "TryCampaign after Close")
	_, err = a.Leader(ctx)
	s.is(err, elector.ErrClosed, "Leader after Close")
	s.is(a.Resign(ctx), elector.ErrClosed, "Resign after Close")
	s.is(a.Run(ctx, func(context.Context, *elector.Lease) error { return nil }), elector.ErrClosed, "Run after Close")
	a.observe(ctx).ends(elector.ErrClosed, "an Elector that was closed")

	// Close stops a worker and waits for it.
	d := el.join(s.brisk())
	run := d.run(func(ctx context.Context, _ *worker) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	run.lease()
	s.must(d.Close(), "Close while the worker runs")
	if run.running.Load() {
		s.Errorf("Close returned before the worker did")
	}
	s.is(run.ended(), elector.ErrClosed, "Run's result is its worker's")
	s.closesWinners()
}

// closesWinners closes candidates when they win: either Close or Campaign must give
// the lease up.
func (s *suite) closesWinners() {
	b := s.open()
	o := s.brisk()
	o.ReleaseTimeout = watchdog / 8 // how long Close waits if neither does
	o.Logger = slog.New(slog.DiscardHandler)
	for i := range s.rounds(200, 20) {
		c := s.election(fmt.Sprintf("-%d", i)).joinOn(b, o)
		p := c.campaign(s.context())
		p.at()
		s.must(c.Close(), "Close when a campaign wins")
		wait(s, p.done, "Campaign returns although its Elector was closed when it won")
		if p.err != nil {
			s.is(p.err, elector.ErrClosed, "Campaign whose Elector was closed when it won")
		} else if p.lease.Check() == nil {
			s.Fatalf("round %d: a lease is valid after Close", i)
		}
		if r := c.el.record(b); !r.Vacant() {
			s.Fatalf("round %d: after Close the record is %v", i, r)
		}
	}
}

// misuse/concurrent: every call at the same time, for the race detector. All
// return, and none with an unexpected error.
func concurrent(s *suite) {
	el := s.election("")
	o := s.brisk()
	o.Logger = slog.New(slog.DiscardHandler)
	o.ReleaseTimeout = watchdog / 8
	b := s.open()
	for round := range s.rounds(20, 4) {
		a := el.joinOn(b, o)
		ctx := s.context()
		var all sync.WaitGroup
		expected := []error{nil, elector.ErrNotLeader, elector.ErrBusy, elector.ErrClosed, elector.ErrHeld, backends.ErrUnavailable}
		for _, call := range []func() error{
			func() error { _, err := a.Campaign(ctx); return err },
			func() error { _, err := a.Campaign(ctx); return err },
			func() error { _, err := a.TryCampaign(ctx); return err },
			func() error { return a.Run(ctx, func(context.Context, *elector.Lease) error { return nil }) },
			func() error { return a.Resign(ctx) },
			func() error { return a.Resign(ctx) },
			func() error { _, err := a.Token(); return err },
			func() error { _, err := a.Leader(ctx); return err },
			func() error {
				for _, err := range a.Observe(ctx) {
					return err
				}
				return nil
			},
			func() error {
				l, err := a.Campaign(ctx)
				if err != nil {
					return err
				}
				var lease sync.WaitGroup
				for range 2 {
					lease.Go(func() { l.Check(); l.Remaining(); l.Token(); l.Context().Err() })
					lease.Go(func() { l.Proclaim(ctx, "value") })
					lease.Go(func() { l.Release(ctx) })
				}
				lease.Wait()
				return l.Release(ctx)
			},
		} {
			for range 2 {
				all.Go(func() {
					for range 10 {
						err := call()
						ok := err == nil
						for _, e := range expected {
							ok = ok || errors.Is(err, e)
						}
						if !ok {
							s.Errorf("round %d: unexpected error %v", round, err)
						}
					}
				})
			}
		}
		all.Go(func() { // meanwhile
			if _, err := a.Leader(ctx); err != nil && !errors.Is(err, elector.ErrClosed) && !errors.Is(err, backends.ErrUnavailable) {
				s.Errorf("Leader: %v", err)
			}
			a.Close()
		})
		done := make(chan struct{})
		go func() { all.Wait(); close(done) }()
		wait(s, done, "concurrent calls all return")
	}
}

// cb/block: callbacks that never return hold nothing up, and a check of health that never
// returns ends the lease in time. So do those that panic.
func blockingCallbacks(s *suite) {
	var ends []func()
	for _, which := range []string{"request", "observed", "acquired", "renewed", "released", "healthy", "log", "ended"} {
		ends = append(ends, s.blocks(which))
	}
	for _, end := range ends {
		end()
	}
	s.panics()
}

// blocks blocks one callback, once the candidate has won unless it is acquired. It returns a
// function that waits for the consequences.
func (s *suite) blocks(which string) (end func()) {
	s.Helper()
	el := s.election("-" + which)
	release := make(chan struct{})
	entered := make(chan struct{})
	var armed atomic.Bool
	armed.Store(which == "acquired")
	var once sync.Once
	block := func(what string) {
		if what == which && armed.Load() {
			once.Do(func() { close(entered) })
			<-release
		}
	}
	o := s.brisk()
	if which == "healthy" || which == "ended" { // then it ends
		o = s.expiring(4)
		o.RenewEvery = o.TTL / 24 // it is called long before a slow machine loses the lease
		o.RequestTimeout = o.RenewEvery
	}
	o.Trace = callbacks(block)
	o.Healthy = func(context.Context) error { block("healthy"); return nil }
	o.Logger = slog.New(blockingHandler{slog.NewTextHandler(&el.log, nil), func() { block("log") }})
	faults, b := fault.Wrap(s.open())
	e, err := elector.New(b, el.name, &o)
	s.must(err, "elector.New")
	s.Cleanup(func() {
		faults.Always(nil)
		close(release)
		s.must(e.Close(), "Close after the callback returned")
	})
	l, err := e.Campaign(s.context())
	s.must(err, "Campaign")
	armed.Store(true)
	resigned := make(chan error, 1)
	switch which {
	case "log", "ended":
		faults.Always(fault.RequestLost) // so that the callback is called
	case "released":
		go func() { resigned <- l.Release(s.context()) }()
	}
	wait(s, entered, "the callback "+which+" is called")
	return func() {
		s.Helper()
		switch which {
		case "healthy", "ended":
			wait(s, l.Context().Done(), "the lease ends although the callback "+which+" does not return")
			checked := make(chan error, 1)
			go func() { checked <- l.Check() }()
			s.is(wait(s, checked, "Check returns although the callback "+which+" does not"), elector.ErrNotLeader, "Check")
			return
		case "released":
		default:
			faults.Always(nil)
			s.renews(l, "although the callback "+which+" does not return")
			go func() { resigned <- l.Release(s.context()) }()
		}
		s.must(wait(s, resigned, "Release returns although the callback "+which+" does not"), "Release")
	}
}

// renews waits until a lease was renewed three times.
func (s *suite) renews(l *elector.Lease, although string) {
	s.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	end := time.Now().Add(s.limit())
	for renewals, left := 0, l.Remaining(); renewals < 3; <-tick.C {
		now := l.Remaining()
		if now > left {
			renewals++
		}
		left = now
		if time.Now().After(end) {
			s.Fatalf("the lease is not renewed %s: %v is left of it", although, left)
		}
	}
}

// panics makes every callback panic every time: the candidate leads, renews and
// resigns.
func (s *suite) panics() {
	s.Helper()
	name := s.election("-panics").name
	renewed := make(chan struct{}, 1)
	o := s.brisk()
	o.Logger = slog.New(slog.DiscardHandler)
	o.Trace = callbacks(func(what string) {
		if what == "renewed" {
			select {
			case renewed <- struct{}{}:
			default:
			}
		}
		panic(what)
	})
	e, err := elector.New(s.open(), name, &o)
	s.must(err, "elector.New")
	l, err := e.Campaign(s.context())
	s.must(err, "Campaign with callbacks that panic")
	for range 3 {
		wait(s, renewed, "a lease is renewed although callbacks panic")
	}
	s.must(l.Check(), "Check although callbacks panic")
	s.must(l.Release(s.context()), "Release although callbacks panic")
	s.must(e.Close(), "Close although callbacks panic")

	o.Healthy = func(context.Context) error { panic("healthy") }
	e, err = elector.New(s.open(), name, &o)
	s.must(err, "elector.New")
	_, err = e.TryCampaign(s.context())
	s.is(err, elector.ErrUnhealthy, "TryCampaign with a Healthy that panics")
	s.must(e.Close(), "Close although Healthy panics")
}

// callbacks returns a Trace that calls f in each callback.
func callbacks(f func(what string)) *elector.Trace {
	return &elector.Trace{
		Request:  func(context.Context, elector.RequestInfo) { f("request") },
		Observed: func(context.Context, elector.LeaderInfo) { f("observed") },
		Acquired: func(context.Context, elector.LeaseInfo) { f("acquired") },
		Renewed:  func(context.Context, elector.LeaseInfo) { f("renewed") },
		Ended:    func(context.Context, elector.LeaseInfo) { f("ended") },
		Released: func(context.Context, elector.LeaseInfo) { f("released") },
	}
}

// A blockingHandler is a log that may hang.
type blockingHandler struct {
	slog.Handler
	handle func()
}

func (h blockingHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h blockingHandler) Handle(ctx context.Context, r slog.Record) error {
	h.handle()
	return h.Handler.Handle(ctx, r)
}

func (h blockingHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
