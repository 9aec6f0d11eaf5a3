package elector

import (
	"time"

	"github.com/elector-go/elector/internal/rule"
)

// A standing is why a candidate stands back: the nonce of the term that it gave up, and
// until when it waits for another term.
type standing struct {
	term  string
	until time.Duration
}

// standBack makes this candidate wait until another term than its own is seen.
func (e *Elector) standBack(term string) {
	e.back.Store(&standing{term, e.now() + rule.Challenge(e.o.TTL, e.o.ClockDrift)})
}

// standsBack reports whether this candidate waits for another term.
func (e *Elector) standsBack(s rule.Snapshot) bool {
	b := e.back.Load()
	return b != nil && b.term == s.Term && e.now() < b.until
}
