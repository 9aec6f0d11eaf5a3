package elector

import (
	"context"
	"fmt"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/annex"
)

// SetPriority changes this candidate's Options.Priority. A process that is about to
// stop calls SetPriority(0), so that it is not the one that leads next. While this
// process campaigns, the record follows within about one of the leader's renewal
// intervals. SetPriority does no I/O. It returns ErrInvalid for a number that is not
// between 0 and 7, and for one above 0 if this candidate's ID has more than 256
// bytes.
func (e *Elector) SetPriority(priority int) error {
	if e.backend == nil {
		return errNoElector
	}
	if err := checkPriority(priority, e.o.ID); err != nil {
		return e.fail("set priority", err)
	}
	e.priority.Store(int32(priority))
	return nil
}

func checkPriority(priority int, id string) error {
	if priority < 0 || priority > maxPriority {
		return fmt.Errorf("%w: Priority is %d, not between 0 and %d", ErrInvalid, priority, maxPriority)
	}
	if priority > 0 {
		return checkSuccessor(id)
	}
	return nil
}

// An announcement is what a waiting candidate with a priority does to be the successor: it
// announces itself in the record of the leader, unless the bid there has the same
// priority or a higher one. So among all candidates one writes in each tenure. An
// announcement is this candidate's if it has its ID: a former campaign, or a former
// process, may have made it. The goroutine of the campaign owns it.
type announcement struct {
	e       *Elector
	due     time.Duration // monotonic, when to act next; forever if there is no reason
	last    string        // nonce of the acquisition in whose record that was done last
	tried   time.Duration // monotonic, when that was
	lowered int           // the priority to which the own announcement was lowered last; -1 after it was raised
}

func newAnnouncement(e *Elector) announcement {
	return announcement{e: e, due: forever, lowered: -1}
}

// bid returns the bid of this candidate with a priority, and whether to write that. It lowers its own announcement once: if there
// are two candidates with its ID, the one with the higher priority wins.
func (p *announcement) bid(r backends.Record, priority int) (b annex.Bid, write bool) {
	there := annex.BidOf(r)
	if priority > 0 {
		b = annex.Bid{Rank: int64(priority), ID: p.e.o.ID}
	}
	if b.Rank < there.Rank {
		return b, p.announced(there) && p.lowered != priority
	}
	return b, b.Rank > there.Rank
}

// announced reports whether a bid is an announcement of this candidate.
func (p *announcement) announced(b annex.Bid) bool {
	return b.ID == p.e.o.ID && b.Rank < annex.Named
}

// next returns when to act: when to announce this candidate, to withdraw it, or to
// ask for the health of one that is the successor; forever if there is nothing to do. The
// time is random, so that few of those who wait write, and in one tenure at least
// one of the leader's renewal intervals after the last time.
func (p *announcement) next() time.Duration {
	e := p.e
	r, waits := e.view.follows()
	_, write := p.bid(r, int(e.priority.Load()))
	if !waits || !write && (e.o.Healthy == nil || !p.announced(annex.BidOf(r))) {
		p.due = forever
		return forever
	}
	if p.due == forever {
		p.due = e.clock.Now().Mono
		if p.last == r.Attempt.Nonce {
			p.due = max(p.due, p.tried+r.RenewEvery)
		}
		p.due += e.jitter()
	}
	return p.due
}

// act does what next has found to be due. What fails is tried again in the next
// renewal interval. A candidate that is not healthy has the priority 0.
func (p *announcement) act(ctx context.Context) {
	e := p.e
	r, _ := e.view.follows()
	p.due, p.last, p.tried = forever, r.Attempt.Nonce, e.clock.Now().Mono
	priority := int(e.priority.Load())
	if priority > 0 && e.healthy(ctx) != nil {
		priority = 0
	}
	if _, write := p.bid(r, priority); write {
		p.write(ctx, priority)
	}
}

// withdraw gives the place up when the campaign ends without a lease. It tries once,
// in the background: otherwise the others give a head start to a candidate that does
// not come.
func (p *announcement) withdraw(ctx context.Context) {
	r, waits := p.e.view.follows()
	if !waits || !p.announced(annex.BidOf(r)) && p.last != r.Attempt.Nonce { // an announcement may not have been seen yet
		return
	}
	p.e.active.Add(1)
	go func() {
		defer p.e.active.Done()
		p.write(context.WithoutCancel(ctx), 0)
	}()
}

// write names this candidate as the successor in the leader's record, if that is called
// for. It reads the record before: what was pushed may be out of date, and another
// candidate may have written meanwhile.
func (p *announcement) write(ctx context.Context, priority int) {
	e := p.e
	if _, f := e.load(ctx, e.o.RequestTimeout, reading); f != nil {
		return
	}
	r, waits := e.view.follows()
	b, write := p.bid(r, priority)
	if !waits || !write {
		return
	}
	lowers := priority < int(annex.BidOf(r).Rank)
	if !lowers {
		p.lowered = -1
	}
	b.Nonce = e.o.newNonce()
	if f := e.extend(ctx, r, b); f == nil && lowers {
		p.lowered = priority
	}
}

// follows returns the record last seen, and whether this candidate waits for its
// leader's tenure to end: there is a leader, its lease has not lapsed, and this
// candidate does not stand back.
func (v *view) follows() (r backends.Record, waits bool) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	r = v.record
	waits = r.Exists() && !r.Vacant() && v.aside == "" && r.Extensions.Critical(known...) == "" &&
		v.claimable() > v.clock.Now().Mono
	return r, waits
}
