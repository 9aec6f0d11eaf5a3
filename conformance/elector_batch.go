package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fault"
)

// batch/shared: leases held through one backend are renewed together. Each gets
// the outcome of its own renewal, and counts from before the batch was sent.
func sharedRenewals(s *suite) {
	v := s.sharing()
	if v == nil {
		return
	}
	o := s.brisk()
	members := v.joinMany(s.rounds(20, 8), "", o)
	plain := v.next(func(ctx context.Context, _ []backends.Change, send sendBatch) []backends.Outcome { return send(ctx) })
	wait(s, plain, "leases held through one backend are renewed together")
	v.renewed(4, members...)
	v.unharmed("after several renewals", members...)

	// Trace reports what was acknowledged, perhaps a moment later.
	for _, r := range members {
		reported, acknowledged := 0, v.answered(r.el.name)
		r.events.await(s, 0, fmt.Sprintf("the elector learns of each of its %d acknowledged renewals", acknowledged), func(e event) bool {
			if e.what == "renewed" {
				reported++
			}
			return reported >= acknowledged || s.Failed()
		})
	}

	// A batch is answered late, but before its members give up: see join, which
	// looks at what is then left of their leases.
	for slow := 0; slow < 3; {
		answers := make(chan bool, 1)
		hit := v.next(func(ctx context.Context, _ []backends.Change, send sendBatch) []backends.Outcome {
			outcomes := send(ctx)
			late := time.NewTimer(o.RequestTimeout / 2)
			defer late.Stop()
			<-late.C
			answers <- ctx.Err() == nil
			return outcomes
		})
		names := wait(s, hit, "leases held through one backend are renewed together")
		v.renewed(1, of(members, names)...)
		if wait(s, answers, "the batch is answered") {
			slow++
		}
	}
	v.unharmed("after batches that were answered late", members...)

	// A renewal that comes while a batch is under way does not wait for it.
	patient := v.joinMany(4, "-patient", s.patientLease())
	held, release := v.gate()
	hit := v.next(holdBatch(held), patient[0], patient[1])
	_, done := v.meet(hit, patient[:3]...)
	late, from := patient[3], patient[3].events.length()
	proclaimed := make(chan error, 1)
	go func() { proclaimed <- late.lease.Load().Proclaim(s.Context(), "late") }()
	const alone = "a renewal does not join a batch that was sent"
	if e := late.events.await(s, from, alone, func(e event) bool { return e.what == "failed" || e.what == "renewed" }); e.err != nil {
		s.Fatalf("%s: it failed with %v", alone, e.err)
	}
	s.must(wait(s, proclaimed, alone), "Proclaim while a batch is under way")
	if r := late.el.record(v.BatchSwapper); r.Value != "late" {
		s.Errorf("the value that was proclaimed while a batch was under way is missing: %v", r)
	}
	release()
	s.must(wait(s, done, "the renewals in the batch return"), "Proclaim in a batch that was held back")
	v.unharmed("after a batch was held back", patient...)
}

// holdBatch passes a batch on when released. Its callers may give it up before.
func holdBatch(released <-chan struct{}) batchAnswer {
	return func(ctx context.Context, renewals []backends.Change, send sendBatch) []backends.Outcome {
		select {
		case <-released:
			return send(ctx)
		case <-ctx.Done():
			return backends.Outcomes(len(renewals), ctx.Err())
		}
	}
}

// batch/ambiguous: a batch as a whole fails in many ways. No lease is lost, and no
// elector takes a refusal of the whole for one of its own renewal.
func ambiguousBatch(s *suite) {
	v := s.sharing()
	if v == nil {
		return
	}
	members := v.joinMany(s.rounds(20, 8), "", s.brisk())
	v.renewed(1, members...)
	released, release := v.gate()
	faults := []struct {
		what string
		err  error // the answer to the batch, if that matters
		f    batchAnswer
	}{
		{"the answer is lost", fault.ErrInjected, func(ctx context.Context, renewals []backends.Change, send sendBatch) []backends.Outcome {
			send(ctx)
			return backends.Outcomes(len(renewals), fault.ErrInjected)
		}},
		{"the request is lost", fault.ErrInjected, func(_ context.Context, renewals []backends.Change, _ sendBatch) []backends.Outcome {
			return backends.Outcomes(len(renewals), fault.ErrInjected)
		}},
		{"it hangs", nil, func(ctx context.Context, renewals []backends.Change, _ sendBatch) []backends.Outcome {
			<-ctx.Done()
			return backends.Outcomes(len(renewals), ctx.Err())
		}},
		{"it is applied and hangs", nil, func(ctx context.Context, renewals []backends.Change, send sendBatch) []backends.Outcome {
			send(ctx)
			<-ctx.Done()
			return backends.Outcomes(len(renewals), ctx.Err())
		}},
		{"it hangs and ignores that all give up", nil, func(_ context.Context, renewals []backends.Change, _ sendBatch) []backends.Outcome {
			<-released
			return backends.Outcomes(len(renewals), fault.ErrInjected)
		}},
		{"it is refused because of another renewal", backends.ErrNotTried, func(_ context.Context, renewals []backends.Change, _ sendBatch) []backends.Outcome {
			return backends.Outcomes(len(renewals), fmt.Errorf("%w: another conflicts", backends.ErrNotTried))
		}},
		{"it is refused permanently", backends.ErrDenied, func(_ context.Context, renewals []backends.Change, _ sendBatch) []backends.Outcome {
			return backends.Outcomes(len(renewals), fmt.Errorf("%w: no batches here", backends.ErrDenied))
		}},
		{"it is applied and reported as refused permanently", backends.ErrDenied, func(ctx context.Context, renewals []backends.Change, send sendBatch) []backends.Outcome {
			send(ctx)
			return backends.Outcomes(len(renewals), backends.ErrDenied)
		}},
		{"half of it is not tried", backends.ErrNotTried, func(ctx context.Context, renewals []backends.Change, send sendBatch) []backends.Outcome {
			half := len(renewals) / 2
			outcomes := backends.Outcomes(len(renewals), backends.ErrNotTried)
			copy(outcomes, v.BatchSwapper.SwapMany(ctx, renewals[:half]))
			return outcomes
		}},
		{"the answers are in another order", nil, func(ctx context.Context, _ []backends.Change, send sendBatch) []backends.Outcome {
			outcomes := send(ctx)
			return append(outcomes[1:], outcomes[0])
		}},
		{"the answer has fewer outcomes", nil, func(ctx context.Context, _ []backends.Change, send sendBatch) []backends.Outcome {
			return send(ctx)[:1]
		}},
	}
	for _, f := range faults {
		before := lengths(members)
		batch := make(chan []backends.Change, 1)
		names := wait(s, v.next(func(ctx context.Context, renewals []backends.Change, send sendBatch) []backends.Outcome {
			batch <- renewals
			return f.f(ctx, renewals, send)
		}), "leases held through one backend are renewed together")
		v.renewed(2, of(members, names)...)
		v.unharmed("after a batch of which "+f.what, members...)
		v.apart(f.what, f.err, <-batch, members, before)
	}
	release()

	// An elector that gives up a batch does not end it for the others.
	o := s.patientLease()
	o.RequestTimeout = s.brisk().RequestTimeout
	o.RenewEvery = 8 * o.RequestTimeout
	hasty, patient := v.join("-hasty", o), v.joinMany(3, "-patient", s.patientLease())
	all := append([]*member{hasty}, patient...)
	held, release := v.gate()
	hit := v.next(holdBatch(held), hasty, patient[0])
	from := lengths(all)
	names, done := v.meet(hit, all...)
	hasty.await(from[0], "failed", "an elector gives up a renewal after RequestTimeout")
	hasty.events.await(s, from[0], "a lease whose batch was given up is renewed by another request", func() func(event) bool {
		gaveUp := false
		return func(e event) bool {
			gaveUp = gaveUp || e.what == "failed"
			return gaveUp && e.what == "renewed"
		}
	}())
	release()
	s.must(wait(s, done, "a batch that is answered returns"), "Proclaim in a batch that another elector has given up")
	for i, r := range all[1:] {
		if len(of([]*member{r}, names)) > 0 && len(r.failures(from[i+1])) > 0 {
			s.Errorf("a batch is not given up while an elector waits for it: the renewal of %s failed with %v", r.ID(), r.failures(from[i+1]))
		}
	}
	v.unharmed("after one elector has given up the batch", all...)
	v.unharmed("after all", members...)
}

// apart checks what electors do after a batch failed as a whole: they renew in smaller
// ones, with the same renewal if it is known not to be applied, or refused, and
// with the next one if the outcome is unknown. An elector that gave up before did
// not see the error.
func (v *sharedBackend) apart(what string, answer error, batch []backends.Change, members []*member, before []int) {
	s := v.s
	s.Helper()
	for i, r := range members {
		saw := false
		for _, err := range r.failures(before[i]) {
			saw = saw || answer != nil && errors.Is(err, answer)
		}
		if saw && !errors.Is(answer, fault.ErrInjected) {
			s.Errorf("a refusal of a whole batch is not one of a renewal in it: %s sees %v", r.ID(), answer)
		}
		if !saw {
			continue
		}
		for _, renewal := range batch {
			if next, ok := v.after(renewal); renewal.Name == r.el.name && ok && len(batch) > 3 && next.together >= max(len(batch), 4*next.largest+1) {
				s.Errorf("after an error of a whole batch its leases are renewed in smaller ones, because one of them may be the reason: %s was renewed with %d after a batch of %d of which %s", r.ID(), next.together, len(batch), what)
			}
		}
	}
}

// batch/one-lost: of many leases that are renewed together, one whose record was
// replaced is lost, and no other.
func oneLost(s *suite) {
	v := s.sharing()
	if v == nil {
		return
	}
	members := v.joinMany(s.rounds(20, 8), "", s.brisk())
	v.renewed(1, members...)
	other := s.open()
	lose := func(want error, what string, take func(r *member)) {
		s.Helper()
		k := len(members) / 2
		lost := members[k]
		members = append(members[:k:k], members[k+1:]...)
		take(lost)
		l := lost.lease.Load()
		wait(s, l.Context().Done(), what+" ends the lease")
		s.is(l.Check(), elector.ErrLost, "Check after "+what)
		s.is(l.Check(), want, "Check after "+what)
		v.renewed(2, members...)
		v.unharmed("after "+what+" of another election", members...)
	}
	for range s.rounds(4, 2) {
		var usurped backends.Record
		var lost *member
		lose(elector.ErrLost, "a takeover", func(r *member) { lost, usurped = r, r.el.overwrite(other, usurper) })
		if r := lost.el.record(other); r != usurped {
			s.Errorf("a holder that was replaced during a batch has changed the successor's record to %v", r)
		}
	}
	if _, shown := v.BatchSwapper.(backends.PresenceWatcher); shown && s.h.Raw != nil {
		lose(elector.ErrDeposed, "the removal of a mark", func(r *member) { s.depose(r.el.name) })
	}
}

// batch/closed: electors that are closed while their renewals are under way wait
// for these, and the others continue.
func closedBatch(s *suite) {
	v := s.sharing()
	if v == nil {
		return
	}
	staying := v.joinMany(s.rounds(20, 8), "", s.brisk())
	v.renewed(1, staying...)
	o := s.patientLease()
	o.RequestTimeout = s.brisk().RequestTimeout
	others := v.joinMany(4, "-other", o)
	deaf, release := v.gate()
	hit := v.nextOf(func(_ context.Context, renewals []backends.Change, _ sendBatch) []backends.Outcome {
		<-deaf
		return backends.Outcomes(len(renewals), fault.ErrInjected)
	}, others...)
	names, proclaimed := v.meet(hit, others...)
	leaving := of(others, names)
	closed := make(chan error, len(leaving))
	for _, r := range leaving {
		go func() { closed <- r.Close() }()
	}
	for _, r := range leaving {
		r.await(0, "released", "Close releases the record, whatever hangs")
	}
	v.renewed(2, staying...)
	v.unharmed("after others were closed during a batch", staying...)
	if len(closed) == len(leaving) {
		s.Errorf("Close leaves nothing behind: of all %d electors whose renewals are in a batch it has returned while that is under way", len(leaving))
	}
	release()
	for range leaving {
		s.must(wait(s, closed, "Close returns after the batch"), "Close during a batch")
	}
	wait(s, proclaimed, "Proclaim ends with the lease")

	round := 0
	s.settles(s.rounds(20, 10), "an elector that was closed during a batch leaves nothing behind", func() {
		round++
		some := v.joinMany(3, fmt.Sprintf("-%d", round), s.patientLease())
		ending := make(chan error, len(some))
		for _, r := range some {
			go r.lease.Load().Proclaim(s.context(), "last words")
			go func() { ending <- r.Close() }()
		}
		for range some {
			s.must(wait(s, ending, "Close returns"), "Close during a batch")
		}
	})
	v.renewed(1, staying...)
	v.unharmed("after many others were opened and closed", staying...)
}
