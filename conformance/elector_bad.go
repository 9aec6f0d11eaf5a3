package conformance

import (
	"bytes"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

// bad/ttl: no candidate takes over a record with an invalid TTL or changes it.
func electorBadTTL(s *suite) {
	spoilers := s.h.Raw.Spoiled["bad/ttl"]
	if s.h.Raw.Spoiled == nil {
		spoilers = map[string]func(testing.TB, string){}
		for what, ttl := range map[string]time.Duration{"zero": 0, "negative": -time.Second, "above 24 h": 25 * time.Hour} {
			spoilers[what] = func(t testing.TB, name string) {
				s.h.Raw.Put(t, name, backends.Encode(name, backends.Record{Holder: "holder", Token: 1, TTL: ttl, RenewEvery: time.Second, Attempt: backends.Attempt{Nonce: "spoilt", Sequence: 1}}))
			}
		}
	}
	if len(spoilers) == 0 {
		s.Errorf("Raw.Spoiled has no records for case bad/ttl")
	}
	for what, spoil := range spoilers {
		// First a new candidate meets it, then a leader.
		el := s.election("-" + uniqueName("ttl"))
		spoil(s, el.name)
		before := s.h.Raw.Get(s, el.name)
		a := el.join(s.long()) // TryCampaign makes one attempt, which a slow store has time to answer
		_, err := a.Campaign(s.context())
		s.is(err, elector.ErrForeignRecord, "Campaign at a record with TTL "+what)
		_, err = a.TryCampaign(s.context())
		s.is(err, elector.ErrForeignRecord, "TryCampaign at a record with TTL "+what)
		if after := s.h.Raw.Get(s, el.name); !bytes.Equal(before, after) || a.faults.Count("swap") != 0 {
			s.Errorf("the record with TTL %s was changed from %v to %v", what, before, after)
		}

		el = s.election("-" + uniqueName("ttl"))
		a = el.join(s.brisk())
		l := a.lead()
		spoil(s, el.name)
		before = s.h.Raw.Get(s, el.name)
		wait(s, l.Context().Done(), "a leader whose record became foreign loses it")
		s.is(l.Check(), elector.ErrLost, "Check of a leader whose record became foreign")
		_, err = a.TryCampaign(s.context())
		s.is(err, elector.ErrForeignRecord, "TryCampaign at what was its own record")
		if after := s.h.Raw.Get(s, el.name); !bytes.Equal(before, after) {
			s.Errorf("the record with TTL %s was changed from %v to %v", what, before, after)
		}
	}
}
