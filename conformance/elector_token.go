package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

// tok/strict: tokens grow across handles, restarts with one ID and expiries.
func strict(s *suite) {
	el := s.election("")
	o := s.short()
	o.ID = "same"
	other := el.join(s.short())
	highest := elector.Token(0)
	leads := func(c *candidate, what string) {
		t := c.lead().Token()
		s.grows(highest, t, "after "+what)
		highest = t
	}
	b := s.open()
	for i := range s.rounds(20, 5) {
		c := el.joinOn(b, o) // the same ID and nothing in memory, as after a restart
		leads(c, fmt.Sprintf("restart %d", i))
		s.must(c.Close(), "closing")
		leads(other, "a resignation")
		other.Resign(s.context())
	}
	crashing := el.joinOn(b, o)
	leads(crashing, "the last resignation")
	crashing.crash()
	leads(other, "an expiry")
	crashing.cutOff()
}

// tok/renew-stable: renewals and Proclaim do not change the token.
func renewStable(s *suite) {
	el := s.election("")
	a := el.join(s.brisk())
	l := a.lead()
	a.renewals(3)
	s.must(l.Proclaim(s.context(), "here"), "proclaiming")
	a.renewals(2)
	r := el.record(s.open())
	t, err := a.Token()
	s.must(err, "the leader's token")
	if r.Value != "here" || elector.Token(r.Token) != l.Token() || t != l.Token() {
		s.Errorf("after renewals the record has value %q and token %d, the elector %d, the lease %d", r.Value, r.Token, t, l.Token())
	}
}

// tok/after-delete: tokens grow across a deletion, for a candidate that had seen the
// highest token and, because of the time of day, for one that had not.
func afterDelete(s *suite) {
	el := s.election("")
	o := s.short()
	a, b := el.join(o), el.join(o)
	first := a.lead()
	next := b.challenge(a)
	s.h.Raw.Delete(s, el.name)
	second := next.won("an election whose record was deleted gets a leader again")
	s.grows(first.Token(), second.Token(), "after a deletion")
	s.must(b.Close(), "closing")
	s.h.Raw.Delete(s, el.name)
	s.grows(second.Token(), el.join(o).lead().Token(), "for a new candidate after a deletion")
}

// tok/restore: a live leader's record is rolled back.
func restore(s *suite) {
	el := s.election("")
	o := s.expiring(2)
	a, b := el.join(o), el.join(o)
	first := a.lead()
	backup := s.h.Raw.Get(s, el.name)
	s.must(a.Resign(s.context()), "resigning")
	second := a.lead()

	seen := b.observe(s.context())
	seen.until("an observer sees the leader", func(l elector.Leader) bool { return l.Token == second.Token() })
	s.h.Raw.Put(s, el.name, backup)
	seen.ends(elector.ErrTokenRegressed, "a record with a lower token")
	a.lapses(second, "its record was rolled back")
	third := a.lead()
	s.grows(first.Token(), second.Token(), "after a resignation")
	s.grows(second.Token(), third.Token(), "for a candidate that has seen the highest token, after a rollback")
}

// tok/max: after the largest token an acquisition fails.
func maxToken(s *suite) {
	el := s.election("")
	b := s.open()
	largest := backends.Record{Token: backends.MaxToken, TTL: time.Second, RenewEvery: time.Second / 3, Attempt: backends.Attempt{Nonce: "largest", Sequence: 1}}
	_, err := b.Swap(s.context(), el.name, backends.Record{}, largest)
	s.must(err, "writing a vacant record with the largest token")
	a := el.join(s.brisk())
	_, err = a.Campaign(s.context())
	s.is(err, elector.ErrTokenExhausted, "campaigning after the largest token")
	if r := el.record(b); r.Token != backends.MaxToken || r.Attempt != largest.Attempt || a.faults.Count("swap") != 0 {
		s.Errorf("after the largest token a campaign writes nothing: the record is %v after %d writes", r, a.faults.Count("swap"))
	}
}

// tok/fence: the resource refuses the write of a leader that was paused after its
// last Check.
func fenced(s *suite) {
	el := s.election("")
	o := s.short()
	a, b := el.join(o), el.join(o)
	var resource elector.Fence
	write := func(l *elector.Lease) (ran bool, err error) {
		err = resource.Do(s.context(), "invoices", l.Token(), func(context.Context) error { ran = true; return nil })
		return ran, err
	}
	old := a.lead()
	if ran, err := write(old); !ran || err != nil {
		s.Errorf("the first leader's write: ran %v, %v", ran, err)
	}

	// The old leader pauses after a successful Check.
	checked, resume := make(chan struct{}), make(chan struct{})
	late := make(chan error, 1)
	var wrote atomic.Bool
	go func() {
		err := old.Check()
		close(checked)
		<-resume
		if err == nil {
			var ran bool
			ran, err = write(old)
			wrote.Store(ran)
		}
		late <- err
	}()
	wait(s, checked, "Check returns")
	next := b.campaign(s.context())
	a.crash()
	l := next.won("a paused leader is replaced")
	if ran, err := write(l); !ran || err != nil {
		s.Errorf("the new leader's write: ran %v, %v", ran, err)
	}
	close(resume)
	err := wait(s, late, "the paused leader continues")
	// On a very slow machine its Check has failed.
	if !errors.Is(err, elector.ErrStale) && !errors.Is(err, elector.ErrLost) || wrote.Load() {
		s.Errorf("the resource refuses a paused leader's write: it ran %v, with error %v", wrote.Load(), err)
	}
	s.is(resource.Admit(s.context(), "invoices", old.Token()), elector.ErrStale, "the old token at the resource")
	a.cutOff()
}
