package elector

import (
	"context"
	"time"

	"github.com/elector-go/elector/internal/store"
)

// A campaign. The functions have the names of the states:
//
//	begins: wait for the release of the last lease, and for the last retraction
//	   │
//	   ▼
//	attempt ──────────────────────────────────────────────────────────▶ a lease
//	   │ ▲
//	   │ ├── a transient failure, after a pause
//	   │ │
//	   │ └── it may try now, and has waited a random time unless it is the successor
//	   ▼ │
//	awaitChance: held, or another candidate goes first; watch the record, bid, and wait
//
// Each of them also ends with an error: when ctx ends, upon Close, and upon a failure that
// ends the campaign, see Elector.ends. TryCampaign makes one attempt, and a second one after
// another candidate's head start. A lease that Close has overtaken is given up.
//
// An attempt (acquire.go) has these steps; in any of the last three it may be cancelled,
// and goes on in the background as a retraction:
//
//	stillHealthy ─▶ pace ─▶ read (the successor skips it) ─▶ yields ─▶ claim ─┬─▶ held
//	                                                                          ▼
//	  given up ◀── another one holds it, a permanent failure, or ─────── write ⇄ read back
//	     ▲         MayRetry forbids another write                             │
//	     │                                                                    ▼ acknowledged, or read back
//	     └───────────────────────────────────────────────────────────────── discarded ─▶ a lease

// Campaign blocks until this process leads, and returns the lease. It waits
// while another candidate leads, and retries transient failures, such
// as a store that does not answer. It returns ErrTokenExhausted immediately, and
// ErrReadOnly if the backend was opened for reading alone; and ErrDenied,
// ErrMisconfigured and ErrForeignRecord until an attempt of this Elector has ended with a
// lease or with ErrHeld. From then on it tries again after these too, in pauses that grow
// to one renewal interval, and at most 30 s: it logs them at level Error, and State is
// Refused. When ctx ends Campaign returns the cause and the reason of the wait. If a write was
// under way then, it is read back and released in the background, for at most
// ReleaseTimeout; Close waits for that. The lease does not end with ctx: it is renewed
// until Release, Resign or Close.
//
// After a crash of the leader Campaign waits until this Elector has watched the record
// unchanged for TTL*(1+ClockDrift). What Observe, Leader or a former campaign on this
// Elector has seen counts: a process that observes already takes over sooner.
//
// Call Campaign again only after the work under the last lease has stopped. A record that
// still shows that lease, although it was lost, this Elector may take over at once. If the
// lease ended by a deposition (see ErrDeposed), or because Release did not follow a request
// in time, Campaign first releases the record, as long as the lease could have lasted; after
// a deposition it waits until another candidate has led, for at most TTL*(1+ClockDrift).
// Campaign returns ErrBusy while this Elector campaigns or has a valid lease. After a request
// to resign (see [operate.Operator]) a lease stays valid although its context has ended:
// call its Release first.
func (e *Elector) Campaign(ctx context.Context) (*Lease, error) {
	return e.exclusive(ctx, e.campaign)
}

// TryCampaign makes one attempt. It returns a lease; or ErrHeld, as a *HeldError
// that shows who leads; or why the attempt failed, whatever came before. It blocks for at
// most a few times RequestTimeout, or until ctx ends. If this Elector's last lease is still
// to be released, TryCampaign first waits for that, for at most ReleaseTimeout. If
// the last leader named a successor, and this Elector has seen that leader,
// TryCampaign first waits for the successor's head start: see Options.Priority.
//
// The lease does not end with ctx: it is renewed until Release, Resign or Close. A process
// that is told to stop must call one of them.
//
// Only a candidate that has watched the record of a crashed leader for
// TTL*(1+ClockDrift) replaces that leader. A process that calls TryCampaign once
// and exits, as a cron job does, never watches that long: call Campaign with a
// longer timeout instead.
func (e *Elector) TryCampaign(ctx context.Context) (*Lease, error) {
	return e.exclusive(ctx, func(ctx context.Context) (*Lease, error) {
		place := e.reading()
		defer place.Leave()
		backoff := e.newBackoff("campaign")
		defer backoff.close()
		l, f := e.attempt(ctx, e.o.RequestTimeout, backoff)
		if f != nil && f.kind == holding {
			if wait, _ := e.yields(); wait > 0 && e.sleep(ctx, wait) {
				l, f = e.attempt(ctx, e.o.RequestTimeout, backoff)
			}
		}
		if f != nil && ctx.Err() != nil {
			return nil, e.ended(ctx, f)
		}
		return l, f.shown()
	})
}

// exclusive runs one campaign at a time, and none while there is a lease.
func (e *Elector) exclusive(ctx context.Context, campaign func(context.Context) (*Lease, error)) (*Lease, error) {
	if err := e.enter(ctx, false); err != nil {
		return nil, e.fail("campaign", err)
	}
	defer e.active.Done()
	ctx, cancel := e.joined(ctx)
	defer cancel()
	l, err := e.settleLast(ctx, campaign)
	if closed := e.leave(); closed && err == nil {
		l.giveUp() // by a Close that saw us campaign, and waits for the release
		l, err = nil, ErrClosed
	}
	return l, e.fail("campaign", err)
}

// settleLast campaigns once the last lease, and the last cancelled campaign, are
// done with the record.
func (e *Elector) settleLast(ctx context.Context, campaign func(context.Context) (*Lease, error)) (*Lease, error) {
	if err := e.begins(ctx); err != nil {
		return nil, err
	}
	e.campaigns.Store(true)
	defer e.campaigns.Store(false)
	l, err := campaign(ctx)
	if err != nil {
		e.traceCampaigned(ctx, err)
	}
	return l, err
}

// begins waits for the last lease, and for the last cancelled campaign, and traces
// the beginning of a campaign.
func (e *Elector) begins(ctx context.Context) error {
	if e.retraction != nil {
		select {
		case <-e.retraction:
			e.retraction = nil
		case <-ctx.Done():
		}
	}
	if l := e.current.Load(); l != nil {
		l.workReturned(ctx)
	}
	if ctx.Err() != nil {
		return e.ended(ctx, nil)
	}
	e.began = e.clock.Now().Mono
	traced(e, e.o.Trace.Campaigning, ctx, CampaignInfo{Election: e.name, Store: e.store})
	return nil
}

// campaign makes attempts. Between two of them it waits until another one could
// succeed.
func (e *Elector) campaign(ctx context.Context) (l *Lease, err error) {
	c := e.newCandidacy()
	defer func() { c.end(ctx, l != nil) }()
	for {
		if l, err = c.attempt(ctx); l != nil || err != nil {
			return l, err
		}
		if err = c.awaitChance(ctx); err != nil {
			return nil, err
		}
	}
}

func (e *Elector) newCandidacy() *candidacy {
	c := &candidacy{e: e, place: e.reading(), backoff: e.newBackoff("campaign")}
	c.bidding.init(e, c.place)
	return c
}

// end stops what the candidacy does besides its attempts. A candidate that has not won
// withdraws its bid.
func (c *candidacy) end(ctx context.Context, won bool) {
	if c.watcher != nil {
		c.watcher.cancel()
	}
	c.e.refused.Store(false)
	c.place.Leave()
	c.backoff.close()
	if !won {
		c.bidding.withdraw(ctx)
	}
}

// attempt makes attempts until one wins, which returns the lease; until the record may
// not be taken over yet, which returns nothing; or until the campaign ends.
func (c *candidacy) attempt(ctx context.Context) (*Lease, error) {
	e := c.e
	for {
		l, f := e.attempt(ctx, 0, c.backoff)
		if f != nil && f.kind != cancelled {
			c.last = f
		}
		switch {
		case f == nil:
			c.backoff.over()
			return l, nil
		case ctx.Err() != nil:
			return nil, e.ended(ctx, c.last)
		case e.ends(f):
			return nil, f.err
		}
		e.refused.Store(f.permanent())
		e.traceWaiting(ctx, f)
		if f.kind == holding {
			c.backoff.over()
			return nil, nil
		}
		if !c.backoff.pause(ctx, f) {
			return nil, e.ended(ctx, f)
		}
	}
}

// awaitChance blocks until the record may be taken over, and then for a random
// time, in which it gives way to a winner. The successor does not wait.
func (c *candidacy) awaitChance(ctx context.Context) error {
	e := c.e
	if c.watcher == nil {
		c.watcher = e.watch(ctx, store.Seek, "campaign", c.place)
		c.watcher.patient, c.watcher.waits = true, c
	}
	c.try = 0
	for {
		from, now := c.chance()
		if now {
			return nil
		}
		changed, err := c.watcher.wait(ctx, c.version, from)
		switch {
		case ctx.Err() != nil:
			return e.ended(ctx, c.last)
		case err != nil:
			return err
		case changed:
		case c.try != 0:
			return nil
		default:
			c.bidding.act(ctx)
		}
	}
}

// chance returns when this candidate tries to replace the version last seen, or when it
// bids; now is set if it is the successor and tries at once.
func (c *candidacy) chance() (from time.Duration, now bool) {
	e := c.e
	s := e.view.Snapshot()
	c.logLeader(s)
	turn, _ := e.turn(s)
	from = max(s.Free, turn)
	time := e.now()
	switch {
	case from > time:
		from, c.try = min(from, c.bidding.next(s)), 0
	case e.goesFirst(s):
		return 0, true
	default:
		if c.try == 0 || s.Record.Version != c.version {
			c.try = time + e.jitter()
		}
		from = c.try
	}
	c.version = s.Record.Version
	return from, false
}
