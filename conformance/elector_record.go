package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

// edit changes the record through another handle, as an operator does, or a
// process that does not lead.
func (el *election) edit(b backends.Backend, change func(r *backends.Record)) backends.Record {
	s := el.s
	s.Helper()
	for {
		r := el.record(b)
		next := r
		change(&next)
		edited, err := b.Swap(s.context(), el.name, r, next)
		if err == nil {
			return edited
		}
		s.is(err, backends.ErrConflict, "changing a record that its holder renews")
		if s.Failed() {
			s.FailNow()
		}
	}
}

// with returns a change that sets an extension.
func (s *suite) with(name, value string) func(r *backends.Record) {
	return func(r *backends.Record) {
		x, err := r.Extensions.With(name, value)
		s.must(err, "an extension")
		r.Extensions = x
	}
}

// rec/edited: a holder whose record was edited loses its lease at the next renewal,
// and never adopts the change. No lease expires in this case.
func edited(s *suite) {
	for what, change := range map[string]func(r *backends.Record){
		"holder":   func(r *backends.Record) { r.Holder = "" },
		"ttl":      func(r *backends.Record) { r.TTL -= time.Second },
		"interval": func(r *backends.Record) { r.RenewEvery++ },
		"value":    func(r *backends.Record) { r.Value = "edited" },
		"critical": s.with("c_unknown", "x"),
	} {
		el := s.election("-" + what)
		a, b := el.join(s.brisk()), s.open()
		l := a.lead()
		a.renewals(1)
		before := el.edit(b, change)
		wait(s, l.Context().Done(), "a holder whose record was edited loses its lease: "+what)
		s.is(l.Check(), elector.ErrLost, "Check after the record was edited: "+what)
		if r := el.record(b); r != before {
			s.Errorf("a holder never overwrites a record that was edited (%s): %v became %v", what, before, r)
		}
		if what == "holder" {
			el.join(s.brisk()).lead()
		}
	}
}

// rec/request: another process changes an extension, and the lease is not lost.
// Renewals pass all extensions on, releases and acquisitions those of class k.
func request(s *suite) {
	el := s.election("")
	a, b := el.join(s.brisk()), s.open()
	l := a.lead()
	const kept = backends.Extensions(`{"k_other":"2"}`)
	el.edit(b, s.with("k_other", "2"))
	for _, value := range []string{"one", "two", "three"} {
		el.edit(b, s.with("t_request", value))
		a.renewals(2)
		s.must(l.Check(), "Check of a leader after another process changed an extension")
		r := el.record(b)
		if got, _ := r.Extensions.Get("t_request"); got != value {
			s.Errorf("a renewal passes extensions on: the record has %v", r.Extensions)
		}
	}
	s.must(l.Release(s.context()), "resigning")
	if r := el.record(b); r.Extensions.Without("k_history") != kept {
		s.Errorf("a release passes on extensions of class k and no others: the record has %v", r.Extensions)
	}
	el.edit(b, s.with("t_request", "four"))
	a.lead()
	if r := el.record(b); r.Extensions.Without("k_history") != kept {
		s.Errorf("an acquisition passes on extensions of class k and no others: the record has %v", r.Extensions)
	}
}

// rec/critical: a record with an unknown critical extension counts as held, with or
// without a holder, and is not changed.
func critical(s *suite) {
	for _, vacant := range []bool{false, true} {
		el := s.election(map[bool]string{false: "-held", true: "-vacant"}[vacant])
		a, b := el.join(s.short()), s.open()
		l := a.lead()
		a.crash() // it cannot release
		before := el.edit(b, func(r *backends.Record) {
			if vacant {
				r.Holder = ""
			}
			s.with("c_unknown", "x")(r)
		})
		a.lapses(l, "a crashed leader")
		waiter := el.join(s.short())
		ctx, stop := context.WithTimeout(s.context(), 3*challenge(s.short().TTL))
		_, err := waiter.Campaign(ctx)
		stop()
		var held *elector.HeldError
		if !errors.As(err, &held) || held.Reason == "" {
			s.Errorf("Campaign for a record with an unknown critical extension ends with ErrHeld and a reason: it ended with %v", err)
		}
		if leader := waiter.leader(); leader.Lapsed {
			s.Errorf("a record with an unknown critical extension never lapses: Leader returned %+v", leader)
		}
		if r := el.record(b); r != before {
			s.Errorf("a record with an unknown critical extension is not changed: %v became %v", before, r)
		}
		el.edit(b, func(r *backends.Record) { r.Extensions = "" })
		waiter.lead()
	}
}

// res/overrun: a worker that is too slow to stop loses its lease, and Run
// releases the record after it has returned. C is longer than the watchdog, and
// waiters that poll read often.
func overrun(s *suite) {
	el := s.election("")
	o := s.brisk()
	o.ReleaseTimeout = s.short().TTL
	a, b := el.join(o), el.join(s.brisk())
	run := a.run(ignore)
	l, next := run.lease(), b.challenge(a)
	run.stop()
	a.await(0, "ended", "the lease of a worker that is too slow ends")
	s.is(l.Check(), elector.ErrLost, "Check of a worker that is too slow")
	next.waits("the worker has not returned")
	close(run.finish)
	s.is(run.ended(), elector.ErrLost, "Run's result when its worker was too slow")
	next.won("a successor need not wait for C once the worker has returned")
}
