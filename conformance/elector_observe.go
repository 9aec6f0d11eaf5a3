package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fault"
)

// observable returns options for leases that are renewed often and do not expire on
// a slow machine. A waiter that polls reads at least 20 times in their TTL.
func (s *suite) observable() elector.Options {
	o := s.expiring(10)
	o.RenewEvery = o.TTL / 40
	o.RequestTimeout = o.RenewEvery
	return o
}

// obs/monotonic: an observer never sees a lower token after a higher one, and sees
// the last leader.
func monotonic(s *suite) {
	el := s.election("")
	candidates := []*candidate{el.join(s.observable()), el.join(s.observable())}
	watching := el.join(s.observable())
	seen := watching.observe(s.context())
	last := make(chan elector.Token, 1)
	go func() {
		var token elector.Token
		for i := range s.rounds(40, 6) {
			c := candidates[i%2]
			l, err := c.Campaign(s.context())
			if err == nil {
				token, err = l.Token(), l.Proclaim(s.context(), fmt.Sprint(i))
			}
			if err == nil {
				err = c.Resign(s.context())
			}
			if err != nil {
				s.Errorf("leading and resigning: %v", err)
			}
		}
		last <- token
	}()
	var token, end elector.Token
	for end == 0 || token < end {
		select {
		case end = <-last:
			continue
		case p := <-seen.pairs:
			s.must(p.err, "observing")
			if p.leader.Token < token {
				s.Fatalf("an observer never sees a lower token: it saw %d after %d", p.leader.Token, token)
			}
			token = p.leader.Token
		case <-time.After(s.limit()):
			s.Fatalf("an observer sees the last leader: it saw token %d, and that of the last leader is %d", token, end)
		}
	}
}

// obs/latest: every change of leader or value is an event, vacancies too. A renewal
// is not.
func latest(s *suite) {
	el := s.election("")
	o := s.observable()
	o.Value = "one"
	a, watching := el.join(o), el.join(s.observable())
	seen := watching.observe(s.context())
	expect := func(what string, want elector.Leader) {
		s.Helper()
		if got := who(seen.next(what)); got != want {
			s.Errorf("an observer sees %s: it saw %+v, not %+v", what, got, want)
		}
	}
	expect("that an election was never held", elector.Leader{})
	l := a.lead()
	expect("a new leader", elector.Leader{ID: a.ID(), Token: l.Token(), Value: "one"})
	renewals := 0
	watching.events.await(s, watching.events.length(), "an observer's process sees renewals", func(e event) bool {
		if e.what == "observed" && e.leader.Value == "one" {
			renewals++
		}
		return renewals == 3
	})
	s.must(l.Proclaim(s.context(), "two"), "proclaiming")
	expect("a new value, after renewals that are no change", elector.Leader{ID: a.ID(), Token: l.Token(), Value: "two"})
	s.must(l.Release(s.context()), "resigning")
	expect("a vacancy", elector.Leader{Token: l.Token()})

	b := el.join(s.short())
	l = b.lead()
	expect("the next leader", elector.Leader{ID: b.ID(), Token: l.Token()})
	b.crash()
	expect("that a leader's lease has lapsed", elector.Leader{ID: b.ID(), Token: l.Token(), Lapsed: true})
	if l.Check() == nil {
		s.Errorf("an observer sees a lease as lapsed that is valid")
	}
	b.cutOff()
	if now := watching.leader(); !now.Vacant() || now.ID != b.ID() {
		s.Errorf("Leader of an election whose lease has lapsed is vacant and has the last ID: it returned %+v", now)
	}
}

// obs/slow: an observer that does not read does not delay the leader, and then gets
// the latest state and not the history.
func slowObserver(s *suite) {
	el := s.election("")
	a, watching := el.join(s.observable()), el.join(s.observable())
	l := a.lead()
	seen := watching.observe(s.context())
	seen.next("the leader")
	// The observer may hold one more pair that was not taken.
	s.must(l.Proclaim(s.context(), "held"), "proclaiming")
	changes := s.rounds(40, 6)
	for i := range changes {
		s.must(l.Proclaim(s.context(), fmt.Sprint(i)), "proclaiming while an observer does not read")
	}
	a.renewals(2)
	s.must(l.Check(), "the lease while an observer does not read")
	final := fmt.Sprint(changes - 1)
	for pairs := 1; seen.next("the latest value").Value != final; pairs++ {
		if pairs == 3 {
			s.Errorf("an observer that reads again gets the history of %d changes and not the latest state", changes)
			break
		}
	}
}

// obs/resume: an observer whose watch and reads fail continues when they work
// again, and does not flood the store meanwhile.
func resume(s *suite) {
	el := s.election("")
	o := s.observable()
	a, watching := el.join(o), el.join(o)
	l := a.lead()
	seen := watching.observe(s.context())
	seen.next("the leader")
	value := 0
	change := func(rule string) {
		s.Helper()
		value++
		want := fmt.Sprint(value)
		s.must(l.Proclaim(s.context(), want), "proclaiming")
		seen.until(rule, func(l elector.Leader) bool { return l.Value == want })
	}

	// The watch fails for a while, reads work.
	start, watches := time.Now(), watching.faults.Count("watch")
	watching.faults.CutWatches(fault.ErrInjected)
	change("a change while the watch is cut")
	change("another change while the watch is cut")
	s.notHot("Watch", watching.faults.Count("watch")-watches, time.Since(start), o.RenewEvery)

	// Nothing works.
	missed := make(chan struct{})
	start, reads := time.Now(), watching.faults.Count("load")
	watching.faults.Always(counting(5, missed, fault.RequestLost))
	value++
	s.must(l.Proclaim(s.context(), fmt.Sprint(value)), "proclaiming")
	wait(s, missed, "an observer tries again to read")
	s.notHot("Load", watching.faults.Count("load")-reads, time.Since(start), o.RenewEvery)
	watching.hit()
	watching.faults.Always(nil)
	want := fmt.Sprint(value)
	seen.until("a change while nothing worked", func(l elector.Leader) bool { return l.Value == want })

	// Everything works, and the watch is cut once in a while.
	for range 3 {
		watching.faults.CutWatches(nil)
		change("a change after the watch was restored")
		watching.faults.CutWatches(fault.ErrInjected)
	}

	// What the store refuses ends one that has seen nothing yet, and no other.
	refused := make(chan struct{})
	watching.faults.Always(counting(2, refused, fault.Fails(elector.ErrDenied)))
	s.must(l.Proclaim(s.context(), "last"), "proclaiming")
	wait(s, refused, "an observer tries again after a refusal")
	fresh := el.join(o)
	fresh.faults.Always(fault.Fails(elector.ErrDenied))
	fresh.observe(s.context()).ends(elector.ErrDenied, "a store that denies access")
	watching.faults.Always(nil)
	seen.until("a change while the store denied access", func(l elector.Leader) bool { return l.Value == "last" })

	closing := el.join(o)
	last := closing.observe(s.context())
	last.next("the leader")
	s.must(closing.Close(), "closing")
	last.ends(elector.ErrClosed, "a closed Elector")
	ctx, cancel := context.WithCancelCause(s.context())
	cause := errors.New("seen enough")
	ending := el.join(o)
	last = ending.observe(ctx)
	last.next("the leader")
	cancel(cause)
	last.ends(cause, "after its context ended")
}

// counting is a fault that closes a channel when it happens for the nth time.
func counting(n int64, reached chan<- struct{}, f fault.Fault) fault.Fault {
	var hits atomic.Int64
	return func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
		if hits.Add(1) == n {
			close(reached)
		}
		return f(ctx, c, send)
	}
}

// notHot fails the case if there were more calls than pauses that grow to half of
// RenewEvery allow.
func (s *suite) notHot(what string, calls int, d, every time.Duration) {
	s.Helper()
	if most := 10 + int(2*d/every); calls > most {
		s.Errorf("%d calls of %s in %v, more than %d: a hot loop", calls, what, d, most)
	}
}
