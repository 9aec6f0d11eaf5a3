package elector

import (
	"context"
	"fmt"
	"time"

	"github.com/elector-go/elector/backends"
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
		return checkHeir(id)
	}
	return nil
}

// A place is what a waiting candidate with a priority does to be the heir: it
// announces itself in the record of the leader, unless the heir there has the same
// priority or a higher one. So among all candidates one writes in each tenure. The
// goroutine of the campaign owns it.
type place struct {
	e     *Elector
	nonce string        // of the latest announcement; empty if there was none
	due   time.Duration // monotonic, when to announce next; forever if there is no reason
	last  string        // nonce of the acquisition in whose record that was done last
	tried time.Duration // monotonic, when that was
}

// heir returns this candidate as the heir that the record should name, and whether
// it is to be announced, or withdrawn if its priority is 0 now.
func (p *place) heir(r backends.Record) (h heir, announce bool) {
	there, mine := heirOf(r), int(p.e.priority.Load())
	if mine > 0 {
		h = heir{id: p.e.o.ID, priority: mine}
	}
	if p.nonce != "" && there.nonce == p.nonce {
		return h, there.priority != mine
	}
	return h, mine > there.priority
}

// next returns when to announce this candidate, or to withdraw it; forever if there
// is nothing to do. The time is random, so that few of those who wait write, and
// in one tenure at least one of the leader's renewal intervals after the last time.
func (p *place) next() time.Duration {
	e := p.e
	r, waits := e.view.follows()
	if _, announce := p.heir(r); !waits || !announce {
		p.due = forever
		return forever
	}
	if p.due == forever {
		p.due = e.clock.Now().Mono + e.jitter()
		if p.last == r.Attempt.Nonce {
			p.due = max(p.due, p.tried+r.RenewEvery)
		}
	}
	return p.due
}

// announce writes what next has found to be due. What fails is tried again in the
// next renewal interval, and sooner if another process has written meanwhile, which
// it does no more often than that.
func (p *place) announce(ctx context.Context) {
	e := p.e
	r, _ := e.view.follows()
	p.due, p.last, p.tried = forever, r.Attempt.Nonce, e.clock.Now().Mono
	if e.priority.Load() > 0 && e.healthy(ctx) != nil {
		return
	}
	if f := p.write(ctx, p.heir); f != nil && f.kind == conflicting {
		p.last = ""
	}
}

// withdraw gives the place up when the campaign ends without a lease. It tries once,
// in the background: otherwise the others give a head start to a candidate that does
// not come.
func (p *place) withdraw(ctx context.Context) {
	mine := func(r backends.Record) (heir, bool) { return heir{}, heirOf(r).nonce == p.nonce }
	r, waits := p.e.view.follows()
	if _, held := mine(r); p.nonce == "" || !waits || !held {
		return
	}
	p.e.active.Add(1)
	go func() {
		defer p.e.active.Done()
		p.write(context.WithoutCancel(ctx), mine)
	}()
}

// write names an heir in the leader's record, if the record as it is now calls for
// it. Where renewals are not pushed it reads the record first.
func (p *place) write(ctx context.Context, wanted func(backends.Record) (heir, bool)) *failure {
	e := p.e
	if !e.pushes {
		if _, f := e.load(ctx, e.o.RequestTimeout, reading); f != nil {
			return f
		}
	}
	r, waits := e.view.follows()
	h, ok := wanted(r)
	if !waits || !ok {
		return nil
	}
	before := p.nonce
	h.nonce = e.o.newNonce()
	p.nonce = h.nonce
	f := e.extend(ctx, r, heirName, h.String())
	if f != nil && f.kind == conflicting {
		p.nonce = before
	}
	return f
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
