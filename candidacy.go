package elector

import (
	"context"
	"time"

	"github.com/elector-go/elector/backends"
)

// A candidacy is the state of one campaign, whose goroutine owns it.
//
// A process may wait for thousands of elections. The runtime halves the stack of a
// goroutine that waits only if little of it is in use: of 8 KB about 1.2. So the
// functions that are on the stack during a wait are small, and call others for what
// they do before it and after it.
type candidacy struct {
	e            *Elector
	loads        *loads // of the backend's waiters; nil if they read one by one
	backoff      *backoff
	watcher      *watcher // nil before the first wait
	announcement announcement
	line         line
	last         *failure // why the campaign did not end yet
	logged       Token    // of the leader that was logged last
}

// campaign makes attempts. Between two of them it waits until another one could
// succeed.
func (e *Elector) campaign(ctx context.Context) (*Lease, error) {
	c := e.newCandidacy()
	var l *Lease
	defer func() { c.end(ctx, l != nil) }()
	for {
		var err error
		if l, err = c.attempt(ctx); l != nil || err != nil {
			return l, err
		}
		if err := c.awaitChance(ctx); err != nil {
			return nil, err
		}
	}
}

func (e *Elector) newCandidacy() *candidacy {
	return &candidacy{e: e, loads: loadsOf(e.backend), backoff: e.newBackoff("campaign"), announcement: newAnnouncement(e), line: newLine(e)}
}

// end stops what the candidacy does besides its attempts. One that has not won gives
// its place up.
func (c *candidacy) end(ctx context.Context, won bool) {
	if c.watcher != nil {
		c.watcher.cancel()
	}
	c.loads.leave()
	if !won {
		c.announcement.withdraw(ctx)
		c.line.withdraw(ctx)
	}
}

// attempt makes attempts until one wins, which returns the lease; until the record may
// not be taken over yet, which returns nothing; or until the campaign ends.
func (c *candidacy) attempt(ctx context.Context) (*Lease, error) {
	e := c.e
	for {
		l, f := e.attempt(ctx, c.loads, unlimited)
		if f != nil && f.kind != cancelled {
			c.last = f
		}
		switch {
		case f == nil:
			c.backoff.over()
			return l, nil
		case ctx.Err() != nil:
			return nil, e.ended(ctx, c.last)
		case f.hopeless():
			return nil, f.err
		}
		e.traceWaiting(ctx, f)
		if f.kind == holding {
			c.backoff.over()
			return nil, nil
		}
		if !c.backoff.pause(ctx, f.err) {
			return nil, e.ended(ctx, f)
		}
	}
}

// awaitChance blocks until the record may be taken over, and then for a random
// time, in which it gives way to a winner. The successor does not wait.
func (c *candidacy) awaitChance(ctx context.Context) error {
	e := c.e
	if c.watcher == nil {
		c.watcher = e.watch(ctx, reading, "campaign", c.loads)
	}
	var version backends.Version
	var try time.Duration // when to replace that version; 0 while it may not be replaced
	for {
		v, from, next := e.view.chance(e.headStart)
		c.logLeader()
		now := e.clock.Now().Mono
		switch {
		case from > now:
			from, try = min(from, c.announcement.next(), c.line.next()), 0
		case next:
			return nil
		default: // a place in line that moves puts it off only for another's head start
			if try == 0 || v != version {
				try = now + e.jitter()
			}
			from = try
		}
		version = v
		changed, err := c.watcher.wait(ctx, v, from)
		switch {
		case ctx.Err() != nil:
			return e.ended(ctx, c.last)
		case err != nil:
			return err
		case changed:
		case try != 0:
			return nil
		default:
			c.act(ctx)
		}
	}
}

// act does what was due before the record may be taken over.
func (c *candidacy) act(ctx context.Context) {
	switch now := c.e.clock.Now().Mono; {
	case c.announcement.due <= now:
		c.announcement.act(ctx)
	case c.line.due <= now:
		c.line.act(ctx)
	}
}

// logLeader logs a leader with another token than the last one.
func (c *candidacy) logLeader() {
	if r := c.e.view.look().record; !r.Vacant() && Token(r.Token) != c.logged {
		c.logged = Token(r.Token)
		c.e.log.Info("elector: campaign waits while the election is held", "leader", r.Holder, "token", r.Token)
	}
}
