package elector

import (
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/rule"
	"github.com/elector-go/elector/operate"
)

// A Leader describes who leads, according to an election's record.
type Leader struct {
	ID    string        // of the leader, or the last one; empty when it resigned
	Token Token         // of its acquisition; 0 if the election never had a leader
	Value string        // that the leader published
	TTL   time.Duration // of its lease

	// Lapsed is set if the leader has not renewed for TTL*(1+ClockDrift) while
	// this process watched: its lease is over although it did not resign, and no
	// candidate has taken over yet.
	Lapsed bool

	// Unchanged is how long this process has seen the record as it is. A new
	// Elector cannot know whether the leader is alive: look again after
	// TTL*(1+ClockDrift), or use Observe.
	Unchanged time.Duration

	// Successor is the ID of the candidate that should lead next, if the record names one:
	// see ResignTo, RequestResign and Options.Priority.
	Successor string

	// RequestedBy is the ID of the process that has requested the leader to
	// resign, if one has, and Draining is set once the leader has met the request:
	// see [operate.Operator].
	RequestedBy string
	Draining    bool

	// Pause is set while the election is paused, see operate.Operator, as far as this
	// process knows: a new Elector cannot know how much of Pause.For is over.
	Pause *operate.Pause

	// Lossy is why the store may lose acknowledged writes, for people: another process
	// may lead at the same time. It is empty on a store that keeps them.
	Lossy string
}

// Vacant reports whether the election has no leader: it never had one, the
// leader resigned, or its lease lapsed.
func (l Leader) Vacant() bool { return l.ID == "" || l.Lapsed }

// same reports whether two Leaders are the same except for the time that has
// passed, and for what is to come.
func (l Leader) same(m Leader) bool {
	paused := l.Pause == nil && m.Pause == nil || l.Pause != nil && m.Pause != nil && *l.Pause == *m.Pause
	return paused && l.now() == m.now()
}

func (l Leader) now() Leader {
	return Leader{ID: l.ID, Token: l.Token, Value: l.Value, TTL: l.TTL, Lapsed: l.Lapsed}
}

// leader returns who leads, according to a state just seen.
func (e *Elector) leader(r backends.Record) Leader {
	said := e.annex.Of(r)
	q := said.Request
	l := Leader{ID: r.Holder, Token: Token(r.Token), Value: r.Value, TTL: r.TTL, Successor: said.Bid.ID, RequestedBy: q.By, Draining: q.Draining, Lossy: e.lossy}
	paused := true
	if s := e.view.Snapshot(); s.Any && r.Version == s.Record.Version {
		now := e.now()
		l.Unchanged = now - s.Since
		l.Lapsed = !r.Vacant() && now >= s.Lapse
		paused = now < e.pausedUntil(s)
	}
	if p := said.Pause; p != nil && paused {
		l.Pause = &operate.Pause{Reason: p.Reason, For: p.For, By: p.By}
	}
	return l
}

// heldBy returns why a state just seen may not be taken over.
func (e *Elector) heldBy(r backends.Record) *failure {
	err := &HeldError{Leader: e.leader(r)}
	name := rule.Critical(r)
	switch {
	case name != "":
		err.Reason = "its record has the extension " + name + ", which a newer version of this library wrote and this version does not know; upgrade this process"
	case err.Leader.ID == "":
		err.Reason = "its record names no leader, but has just changed, vanished or gone back, so that a leader seen before may still lead. It is free TTL*(1+ClockDrift) later"
	}
	return &failure{holding, err}
}

// pausedUntil returns the time until which the pause in the record last seen keeps
// candidates from leading, 0 if there is none.
func (e *Elector) pausedUntil(s rule.Snapshot) time.Duration {
	switch p := e.annex.Of(s.Record).Pause; {
	case p == nil:
		return 0
	case p.For == 0:
		return rule.Never
	default:
		return s.Since + p.For
	}
}
