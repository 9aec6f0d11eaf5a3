package conformance

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fault"
	"github.com/elector-go/elector/operate"
)

// asks requests a resignation in the background.
func (c *candidate) asks(token elector.Token, to string) <-chan error {
	done := make(chan error, 1)
	go func() {
		done <- c.Operator().RequestResign(c.el.s.context(), operate.ResignRequest{Token: uint64(token), To: to})
	}()
	return done
}

// requestFor returns the extension t_request of a record.
func requestFor(r backends.Record) string {
	value, _ := r.Extensions.Get("t_request")
	return value
}

// move/requested: a leader drains upon a request, keeps its lease until the worker
// has returned, and does not campaign until another candidate has led.
func requested(s *suite) {
	el := s.election("")
	o := s.brisk()
	o.ReleaseTimeout = 2 * watchdog
	a, b, c := el.join(o), el.join(s.brisk()), el.join(s.brisk())
	run := a.run(drain)
	l, next := run.lease(), b.challenge(a)
	asked := c.asks(l.Token(), "")
	wait(s, l.Context().Done(), "a request ends the worker's context")
	s.is(context.Cause(l.Context()), elector.ErrRequested, "the cause of the context after a request")
	a.renewals(2)
	s.must(l.Check(), "Check while the worker drains upon a request")
	next.waits("the leader's worker drains upon a request")
	run.finish <- struct{}{}
	next.won("a leader that resigned upon a request is replaced without waiting for C")
	s.must(wait(s, asked, "RequestResign returns when the leader has resigned"), "RequestResign")
	if n := a.events.count("acquired"); n != 1 {
		s.Errorf("a leader that resigned upon a request does not campaign until another candidate has led: it has won %d times", n)
	}
	s.must(b.Resign(s.context()), "resigning")
	wait(s, run.leases, "Run leads again once another candidate has led")
	run.stop()
	close(run.finish)
	s.must(run.ended(), "Run's result")
}

// move/stale: a request is for one token. One for a former leader is refused, and
// the present leader ignores it.
func staleRequest(s *suite) {
	el := s.election("")
	a, b := el.join(s.brisk()), el.join(s.brisk())
	old := a.lead()
	s.must(a.Resign(s.context()), "resigning")
	s.is(b.Operator().RequestResign(s.context(), operate.ResignRequest{}), elector.ErrNotLeader, "a request to a vacant election")
	l := a.lead()
	s.is(b.Operator().RequestResign(s.context(), operate.ResignRequest{Token: uint64(old.Token())}), elector.ErrNotLeader, "a request for a former token")
	handle := s.open()
	if got := requestFor(el.record(handle)); got != "" {
		s.Errorf("a request for a former token is not written: the record has %q", got)
	}
	el.edit(handle, s.with("t_request", old.Token().String()+" 1  x "))
	a.renewals(3)
	if err := context.Cause(l.Context()); err != nil {
		s.Errorf("a leader ignores a request for a former token: its context ended with %v", err)
	}
}

// move/twice: a second request for the same token waits for the outcome of the
// first, or is refused if it names another successor. It does not change the
// record.
func requestedTwice(s *suite) {
	el := s.election("")
	o := s.brisk()
	o.ReleaseTimeout = 2 * watchdog
	a, b := el.join(o), el.join(s.brisk())
	l := a.lead()
	first := b.asks(l.Token(), "next")
	wait(s, l.Context().Done(), "a request ends the lease's context")
	a.renewals(1)
	handle := s.open()
	before := requestFor(el.record(handle))
	c := el.joinOn(blindBackend{s.open()}, s.brisk()) // it knows what it has read, and nothing else
	second := c.asks(l.Token(), "next")
	c.await(0, "observed", "RequestResign reads the record")
	s.is(b.Operator().RequestResign(s.context(), operate.ResignRequest{Token: uint64(l.Token()), To: "another"}), elector.ErrRequested, "a request in favour of another candidate")
	a.renewals(1)
	if after := requestFor(el.record(handle)); after != before {
		s.Errorf("a request does not replace another one: %q became %q", before, after)
	}
	s.must(l.Release(s.context()), "resigning")
	s.must(wait(s, first, "RequestResign returns"), "the first request")
	s.must(wait(s, second, "RequestResign returns"), "the second request")
}

// move/dead: repeated requests do not delay the takeover from a dead leader. The
// request returns when another candidate has taken over.
func deadRequested(s *suite) {
	el := s.election("")
	o := s.short()
	a, b, c := el.join(o), el.join(o), el.join(s.brisk())
	l := a.lead()
	next := b.challenge(a)
	a.crash()
	ctx, stop := context.WithCancel(s.context())
	defer stop()
	asked := make(chan error, 1)
	go func() { asked <- c.Operator().RequestResign(ctx, operate.ResignRequest{Token: uint64(l.Token())}) }()
	handle := s.open()
	var others sync.WaitGroup
	others.Go(func() { // other processes set an extension
		tick := time.NewTicker(o.TTL / 10)
		defer tick.Stop()
		for ctx.Err() == nil {
			r, err := handle.Load(ctx, el.name)
			if err == nil && elector.Token(r.Token) == l.Token() {
				next := r
				s.with("t_other", time.Now().String())(&next)
				handle.Swap(ctx, el.name, r, next)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	next.won("a leader that crashed is replaced while requests come")
	s.waited(next, a.writes.latest(), o.TTL)
	if err := wait(s, asked, "RequestResign returns"); err != nil && !errors.Is(err, elector.ErrLost) && !errors.Is(err, elector.ErrNotLeader) {
		s.Errorf("a request to a leader that crashed: %v", err)
	}
	stop()
	others.Wait()
	a.cutOff()
}

// move/old: a version that does not know requests keeps them and goes on. The
// request ends with its context, and says so.
func oldVersion(s *suite) {
	el := s.election("")
	handle, b := s.open(), el.join(s.brisk())
	held := acquisition("old", 1)
	held.TTL, held.RenewEvery = s.brisk().TTL, s.brisk().RenewEvery
	_, err := handle.Swap(s.context(), el.name, backends.Record{}, held)
	s.must(err, "an acquisition of an old version")
	written := make(chan bool, 1)
	b.faults.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
		r, err := send(ctx)
		if c.Op == "swap" && err == nil {
			written <- true
		}
		return r, err
	})
	ctx, stop := context.WithCancel(s.context())
	asked := make(chan error, 1)
	go func() { asked <- b.Operator().RequestResign(ctx, operate.ResignRequest{Token: held.Token}) }()
	wait(s, written, "a request is written")
	for range 3 {
		from := b.events.length()
		el.edit(handle, func(r *backends.Record) { r.Attempt.Sequence++ })
		b.await(from, "observed", "a requester sees renewals")
	}
	stop()
	s.is(wait(s, asked, "RequestResign returns when its context ends"), context.Canceled, "a request to a version that does not know requests")
	if r := el.record(handle); r.Holder != held.Holder || r.Token != held.Token {
		s.Errorf("a request changes an extension and nothing else: the record is %v", r)
	}
}

// lets checks that c lets b try first after a release, or has given it a head start.
// The caller stores when the release was sent.
func (s *suite) lets(b, c *candidate, renewEvery time.Duration) (released *atomic.Int64) {
	_, pushed := backends.AsWatcher(s.open())
	head := 50 * time.Millisecond // the least
	if !pushed {
		head = 2 * renewEvery
	}
	released = &atomic.Int64{}
	var tried atomic.Bool
	b.faults.Always(func(ctx context.Context, call fault.Call, send fault.Send) (backends.Record, error) {
		if call.Op == "swap" && call.Prev.Vacant() {
			tried.Store(true)
		}
		return send(ctx)
	})
	c.faults.Always(func(ctx context.Context, call fault.Call, send fault.Send) (backends.Record, error) {
		if at := time.Unix(0, released.Load()); call.Op == "swap" && call.Prev.Vacant() && !tried.Load() && time.Since(at) < head {
			s.Errorf("a candidate lets the one that should lead next try first: it tried after %v", time.Since(at))
		}
		return send(ctx)
	})
	return released
}

// either blocks until one of two campaigns has won: a slow machine may miss its
// head start. It returns the winner and the other campaign.
func (s *suite) either(first, second *campaign) (winner *candidate, other *campaign) {
	s.Helper()
	select {
	case <-first.done:
		first.won("a campaign wins")
		return first.c, second
	case <-second.done:
		second.won("a campaign wins")
		return second.c, first
	case <-time.After(s.limit()):
		s.Fatalf("a leader that resigned is replaced without waiting for C: it was not")
		panic("unreachable")
	}
}

// move/successor: after a release that names a successor, other candidates do not
// try before the successor has tried or had a head start. If it does not try in
// time, another candidate leads, without waiting for C.
func successors(s *suite) {
	el := s.election("")
	o := s.brisk()
	a, b, c := el.join(o), el.join(o), el.join(o)
	released := s.lets(b, c, o.RenewEvery)
	l := a.lead()
	ctx, stop := context.WithCancel(s.context())
	defer stop()
	first, second := b.campaign(ctx), c.campaign(ctx)
	b.sees(a)
	c.sees(a)
	released.Store(time.Now().UnixNano())
	s.must(a.ResignTo(s.context(), b.ID()), "ResignTo")
	s.is(l.Check(), elector.ErrResigned, "Check after ResignTo")
	winner, other := s.either(first, second)
	b.faults.Always(nil)
	c.faults.Always(nil)
	other.c.sees(winner)
	s.must(winner.ResignTo(s.context(), "no such candidate"), "ResignTo")
	other.won("another candidate leads if the named successor does not try")
	if x, _ := el.record(s.open()).Extensions.Get("t_bid"); x != "" {
		s.Errorf("an acquisition drops the successor that was named: the record has %q", x)
	}
}

// move/priority: a waiting candidate with a priority announces itself in the
// leader's record, which costs no lease, and tries first after a release.
func priorities(s *suite) {
	el := s.election("")
	o, first := s.brisk(), s.brisk()
	first.Priority = 1
	a, b, c := el.join(o), el.join(first), el.join(o)
	released := s.lets(b, c, o.RenewEvery)
	l := a.lead()
	ctx, stop := context.WithCancel(s.context())
	defer stop()
	announced, plain := b.campaign(ctx), c.campaign(ctx)
	c.sees(a)
	handle := s.open()
	for end := time.Now().Add(s.limit()); ; a.renewals(1) {
		if x, _ := el.record(handle).Extensions.Get("t_bid"); x != "" {
			break
		}
		if time.Now().After(end) {
			s.Fatalf("a candidate with a priority announces itself in the leader's record: it did not")
		}
	}
	a.renewals(3)
	s.must(l.Check(), "Check of a leader in whose record a candidate announced itself")
	if n := c.faults.Count("swap"); n > 1 {
		s.Errorf("a candidate without a priority makes one bid at most, before another one does: it wrote %d times", n)
	}
	released.Store(time.Now().UnixNano())
	s.must(a.Resign(s.context()), "resigning")
	s.either(announced, plain)
}

// move/volunteer: where the store pushes a vacancy, a waiting candidate makes a bid in the
// leader's record, and tries first after a release.
func volunteers(s *suite) {
	handle := s.open()
	if _, ok := backends.AsWatcher(handle); !ok {
		s.notApplicable("the store pushes no vacancy, so no candidate volunteers")
		return
	}
	el := s.election("")
	a, b, c := el.join(s.brisk()), el.join(s.brisk()), el.join(s.brisk())
	l := a.lead()
	ctx, stop := context.WithCancel(s.context())
	defer stop()
	first := b.campaign(ctx)
	b.sees(a)
	for end := time.Now().Add(s.limit()); ; a.renewals(1) {
		if x, _ := el.record(handle).Extensions.Get("t_bid"); strings.Contains(x, b.ID()) {
			break
		}
		if time.Now().After(end) {
			s.Fatalf("a waiting candidate makes a bid in the leader's record: it did not")
		}
	}
	a.renewals(2)
	s.must(l.Check(), "Check of a leader in whose record a candidate made a bid")
	second := c.campaign(ctx)
	c.sees(a)
	s.must(a.Resign(s.context()), "resigning")
	s.either(first, second)
}

// move/history: acquisitions and releases record who led, renewals do not.
func historyKept(s *suite) {
	el := s.election("")
	a, b := el.join(s.brisk()), el.join(s.short())
	handle := s.open()
	first := a.lead()
	before := el.record(handle).Extensions
	a.renewals(2)
	if after := el.record(handle).Extensions; after != before {
		s.Errorf("a renewal does not change the history: %v became %v", before, after)
	}
	s.must(a.Resign(s.context()), "resigning")
	second := b.lead()
	next := a.challenge(b)
	b.crash()
	third := next.won("a leader that crashed is replaced")
	terms, err := a.Operator().History(s.context())
	s.must(err, "History")
	var got []operate.Term
	for _, t := range terms {
		if t.Start.IsZero() || t.Reason != "" && t.End.Before(t.Start) {
			s.Errorf("the times of a term: it began at %v and ended at %v", t.Start, t.End)
		}
		got = append(got, operate.Term{ID: t.ID, Token: t.Token, Reason: t.Reason})
	}
	want := []operate.Term{
		{ID: a.ID(), Token: uint64(first.Token()), Reason: "resigned"},
		{ID: b.ID(), Token: uint64(second.Token()), Reason: "expired"},
		{ID: a.ID(), Token: uint64(third.Token())},
	}
	if !slices.Equal(got, want) {
		s.Errorf("the history is %+v, and must be %+v", got, want)
	}
	b.cutOff()
}

// move/paused: a pause drains the leader, and then no candidate leads until the election is
// resumed: neither the former leader, nor one that waited, nor one that comes later.
func paused(s *suite) {
	el := s.election("")
	a, b, c, d := el.join(s.brisk()), el.join(s.brisk()), el.join(s.brisk()), el.join(s.brisk())
	run := a.run(drain)
	close(run.finish)
	run.lease()
	next := b.run(drain)
	close(next.finish)
	b.sees(a)
	s.must(c.Operator().Pause(s.context(), operate.Pause{Reason: "a migration"}), "Pause")
	won := el.acquisitions()
	if l := d.leader(); l.Pause == nil || l.Pause.Reason != "a migration" || l.Pause.By != c.ID() {
		s.Errorf("the record shows the pause: the leader is %+v", l)
	}
	s.is(d.enter(), elector.ErrPaused, "TryCampaign of a paused election")
	s.is(d.Operator().Pause(s.context(), operate.Pause{}), elector.ErrPaused, "another Pause")
	for _, waits := range []*candidate{a, b} {
		waits.events.await(s, 0, "a candidate that waits sees the pause", func(e event) bool {
			return e.what == "observed" && e.leader.Pause != nil
		})
	}
	if n := el.acquisitions(); n != won {
		s.Errorf("no candidate leads a paused election: %d have", n-won)
	}
	for len(run.leases)+len(next.leases) > 0 { // on a slow machine the other one may have led
		select {
		case <-run.leases:
		case <-next.leases:
		}
	}
	s.must(d.Operator().Resume(s.context()), "Resume")
	select {
	case <-run.leases:
	case <-next.leases:
	case <-time.After(s.limit()):
		s.Fatalf("a candidate leads once the election is resumed: none does")
	}
	s.is(d.Operator().Resume(s.context()), operate.ErrNotPaused, "another Resume")
	run.stop()
	next.stop()
	s.must(run.ended(), "Run's result")
	s.must(next.ended(), "Run's result")
}
