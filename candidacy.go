package elector

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/rule"
	"github.com/elector-go/elector/internal/store"
)

// A candidature is what an Elector's campaigns have come to.
type candidature struct {
	answered atomic.Bool // an attempt has ended with a lease or with ErrHeld
	refused  atomic.Bool // the store refuses what the campaign tries

	examining atomic.Int32 // calls of Options.Healthy under way

	// Owned by the caller that is busy.
	retraction <-chan struct{} // closed when the last cancelled campaign is done
	began      time.Duration   // monotonic, when the campaign began
	opened     time.Duration   // monotonic, before Open sent its read; 0 once an attempt has begun
}

// A candidacy is the state of one campaign, whose goroutine owns it.
//
// A process may wait for thousands of elections. The runtime halves the stack of a
// goroutine that waits only if little of it is in use: of 8 KB about 1.2. So the
// functions that are on the stack during a wait are small, and call others for what
// they do before it and after it.
type candidacy struct {
	e       *Elector
	place   *store.Place // among those that read
	backoff *backoff
	watcher *watcher // nil before the first wait
	bidding bidding
	last    *failure // why the campaign did not end yet
	logged  logged   // what was logged last

	version backends.Version // that was seen last
	try     time.Duration    // when to replace it; 0 while that is not allowed
}

// A logged is what logLeader logs once: a leader, or the pause with which its term ended.
type logged struct {
	token  Token
	paused bool
}

// refusal shows whether the store refuses what the wait needs, by f, and again when that is
// over.
func (c *candidacy) refusal(ctx context.Context, f *failure) {
	refused := f.permanent()
	if refused {
		c.last = f // who leads is not known any more
	}
	if c.e.refused.Swap(refused) == refused {
		return
	}
	if !refused {
		f = c.e.heldBy(c.e.view.Snapshot().Record)
		c.last = f
	}
	c.e.traceWaiting(ctx, f)
}

// logLeader logs a leader, or a pause, unless that is what it logged last.
func (c *candidacy) logLeader(s rule.Snapshot) {
	r := s.Record
	pause := c.e.annex.Of(r).Pause
	now := logged{Token(r.Token), pause != nil}
	if r.Vacant() && pause == nil || now == c.logged {
		return
	}
	c.logged = now
	if pause != nil {
		c.e.log.Info("elector: campaign waits while the election is paused", "by", pause.By, "for", pause.For, "reason", pause.Reason)
	} else {
		c.e.log.Info("elector: campaign waits while the election is held", "leader", r.Holder, "token", r.Token)
	}
}
