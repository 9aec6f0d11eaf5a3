package elector

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/annex"
	"github.com/elector-go/elector/internal/rule"
	"github.com/elector-go/elector/internal/store"
)

// Who tries first. Whether a candidate may lead is decided in internal/rule, which does
// not know of this file: everything here only puts an attempt off, or brings it forward
// to when the rule allows it.
//
//   - The successor of a vacancy is the candidate whose bid its record has. It tries at
//     once, without a read: its swap compares.
//   - The others give it a head start, if they saw the leader before: otherwise the vacancy
//     may be old, and its successor dead. Then each waits a random time, see jitter.
//   - A candidate that was requested to resign, or deposed, stands back until another one
//     has led, for at most TTL*(1+ClockDrift): see standing.go.
//   - No candidate tries while the election is paused: see pausedUntil.
//
// A bid {rank, ID} stands in the leader's record, and a release passes it on. A higher rank
// replaces a lower one: 0 is a volunteer, then comes Options.Priority, then a candidate
// that the leader or a request to resign names. So in each term one of many writes. While
// the leader leads, a bid means nothing. After a crash, all but a volunteer's count: the
// others give that candidate a head start too, once the record may be taken over.

// A courtesy is what an Elector knows of when to try, and when to let others try first.
type courtesy struct {
	annex     annex.Reader
	resumes   bool // this candidate ends a pause
	priority  atomic.Int64
	back      atomic.Pointer[standing]
	wellUntil atomic.Int64 // the candidate that has bid was healthy, and counts as that until then
}

// successor returns the ID of the candidate that should lead after a vacancy.
func (e *Elector) successor(r backends.Record) string {
	if !r.Vacant() {
		return ""
	}
	return e.annex.Of(r).Bid.ID
}

// preferred returns the ID of the candidate that should lead after a crash of the leader:
// one with a priority, or that was named. A volunteer has no preference.
func (e *Elector) preferred(r backends.Record) string {
	if b := e.annex.Of(r).Bid; !r.Vacant() && b.Rank > 0 {
		return b.ID
	}
	return ""
}

// goesFirst reports whether this candidate need not wait a random time, once the record may
// be taken over.
func (e *Elector) goesFirst(s rule.Snapshot) bool {
	return e.succeeds(s) || e.preferred(s.Record) == e.o.ID
}

// succeeds reports whether this candidate is the successor of the vacancy last seen.
func (e *Elector) succeeds(s rule.Snapshot) bool { return e.successor(s.Record) == e.o.ID }

// turn returns the time from which this candidate tries to lead, and the other candidate
// that it lets try before, if there is one.
func (e *Elector) turn(s rule.Snapshot) (from time.Duration, first string) {
	if until := e.pausedUntil(s); until > e.now() && !e.resumes {
		return until, ""
	}
	if e.standsBack(s) {
		from = e.back.Load().until
	}
	id, free := e.preferred(s.Record), s.Free
	if s.Record.Vacant() && s.Followed {
		id, free = e.successor(s.Record), s.Since
	}
	if id == "" || id == e.o.ID || free == rule.Never {
		return from, ""
	}
	if start := free + e.headStart(s.Record); start > from {
		return start, id
	}
	return from, ""
}

// yields returns why this candidate does not try now, although it may lead; nil if it
// tries. wait is how long another candidate has a head start.
func (e *Elector) yields() (wait time.Duration, f *failure) {
	s := e.view.Snapshot()
	from, first := e.turn(s)
	left := from - e.now()
	if left <= 0 {
		return 0, nil
	}
	err := &HeldError{Leader: e.leader(s.Record)}
	switch {
	case err.Leader.Pause != nil:
	case first == "":
		err.Reason = "this process was requested to resign, or was deposed, and waits until another candidate has led, for at most " + left.String()
	case !s.Record.Vacant() && s.Free > e.now():
		return 0, nil // that candidate goes first once the record may be taken over; now its holder has it
	default:
		wait, err.Reason = left, fmt.Sprintf("no candidate leads, and %q should lead next; other candidates wait for it, this one for %v", first, left)
	}
	return wait, &failure{holding, err}
}

// longestHeadStart bounds what a dead successor costs.
const longestHeadStart = 30 * time.Second

// headStart is how long the others wait for the successor, from when they saw the
// vacancy: where the store pushes it, until the successor's write should have been seen;
// elsewhere one interval, so that the successor has read the vacancy.
func (e *Elector) headStart(vacancy backends.Record) time.Duration {
	if !e.listens {
		return min(vacancy.RenewEvery, longestHeadStart)
	}
	return min(max(5*e.timing.trip(), 50*time.Millisecond), 500*time.Millisecond)
}

// SetPriority changes this candidate's Options.Priority. A process that is about to
// stop calls SetPriority(0), so that others lead next. While this process campaigns, the
// record follows within about one of the leader's renewal intervals. SetPriority does no
// I/O. It returns ErrInvalid for a number that is not between 0 and 2147483647, and for
// one above 0 if this candidate's ID has more than 256 bytes.
func (e *Elector) SetPriority(priority int) error {
	if e.backend == nil {
		return errNoElector
	}
	if err := checkPriority(priority, e.o.ID); err != nil {
		return e.fail("set priority", err)
	}
	e.priority.Store(int64(priority))
	return nil
}

// A bidding is what a waiting candidate does to be the successor. A bid is this
// candidate's if it has its ID: a former campaign, or a former process, may have made it.
// The goroutine of the campaign owns it; requests and Healthy run on another one, because
// the campaign must see the vacancy.
type bidding struct {
	e       *Elector
	place   *store.Place  // of the campaign, among those that read
	due     time.Duration // when to act next; Never if there is no reason
	term    string        // nonce of the term in which it acted last
	again   time.Duration // when it acts next in that term, at the earliest
	lowered atomic.Int64  // the rank to which the own bid was lowered last; below noBid after it was raised
	done    chan struct{} // closed when the latest action has ended; nil if there was none
}

// noBid is the rank of a candidate that does not bid.
const noBid = -1

func (p *bidding) init(e *Elector, place *store.Place) {
	p.e, p.place, p.due = e, place, rule.Never
	p.lowered.Store(noBid - 1)
}

// rank returns this candidate's rank. Where the store does not push a vacancy, volunteers
// would make a handover longer: the others would wait for one that has yet to read it.
func (e *Elector) rank() int64 {
	rank := e.priority.Load()
	if rank == 0 && (!e.listens || annex.CheckID(e.o.ID) != nil) {
		return noBid
	}
	return rank
}

// own reports whether a bid is one that this candidate made.
func (p *bidding) own(b annex.Bid) bool { return b.ID == p.e.o.ID && b.Rank < annex.Named }

// bid returns the bid that the record should have, and whether to write it. A candidate
// lowers its bid once: if two have one ID, the higher rank wins. One that lowers it to 0
// withdraws, so that others can volunteer.
func (p *bidding) bid(r backends.Record, rank int64) (b annex.Bid, write bool) {
	there, highest := p.e.annex.Of(r).Bid, int64(noBid)
	if !there.None() {
		highest = there.Rank
	}
	if rank > 0 || rank == 0 && highest <= 0 {
		b = annex.Bid{Rank: rank, ID: p.e.o.ID}
	}
	if rank < highest {
		return b, p.own(there) && p.lowered.Load() != b.Rank
	}
	return b, rank > highest
}

// waits reports whether this candidate waits for the end of the leader's term: there is a
// leader other than itself, its lease has not lapsed, and this candidate could lead after it.
func (e *Elector) waits(s rule.Snapshot) bool {
	now := e.now()
	return s.Record.Exists() && !s.Record.Vacant() && !s.Own && rule.Critical(s.Record) == "" && !e.standsBack(s) && s.Distrusted <= now && now < s.Free
}

// next returns when to act: when to bid, to withdraw the bid, or to ask for the health of
// the candidate that made it; Never if there is nothing to do. The time is random, so that
// few of those who wait write, and in one term at least one of the leader's renewal
// intervals after the last time. Volunteers first let candidates with a priority bid. Those
// of a process that waits for many elections take a millisecond for each: as many writes
// at once would hold up the leaders' renewals.
func (p *bidding) next(s rule.Snapshot) time.Duration {
	e, r := p.e, s.Record
	rank := e.rank()
	if _, write := p.bid(r, rank); !e.waits(s) || !write && (e.o.Healthy == nil || !p.own(e.annex.Of(r).Bid)) {
		p.due = rule.Never
		return p.due
	}
	if now := e.now(); p.due == rule.Never && p.term == s.Term && p.again > now {
		p.due = p.again
	} else if p.due == rule.Never {
		span := e.span()
		if rank == 0 {
			now += 2*span + 10*time.Millisecond
			span = min(max(4*span, 250*time.Millisecond), time.Second) + time.Duration(p.place.Members())*time.Millisecond
		}
		p.due = now + e.scattered(span)
	}
	return p.due
}

// act does what next has found to be due, in the background. What fails is tried again in
// the next renewal interval. A candidate that is not healthy withdraws its bid.
func (p *bidding) act(ctx context.Context) {
	e, s := p.e, p.e.view.Snapshot()
	if e.now() < p.due { // the wait was for something else
		return
	}
	p.due, p.term, p.again = rule.Never, s.Term, e.now()+s.Record.RenewEvery+e.jitter()
	if p.done != nil {
		select {
		case <-p.done:
		default:
			return
		}
	}
	p.later(func() {
		rank := e.rank()
		start := e.now()
		if rank != noBid && e.checkHealth(ctx) != nil {
			rank = noBid
		}
		e.wellUntil.Store(0)
		if rank != noBid {
			e.wellUntil.Store(int64(start + 2*e.o.RenewEvery))
		}
		p.write(ctx, rank)
	})
}

// withdraw withdraws the bid when the campaign ends without a lease. It tries once, in
// the background: otherwise the others wait for a candidate that does not come.
func (p *bidding) withdraw(ctx context.Context) {
	s := p.e.view.Snapshot()
	if p.e.waits(s) && (p.own(p.e.annex.Of(s.Record).Bid) || p.term == s.Term) { // a bid may not have been seen yet
		p.later(func() { p.write(context.WithoutCancel(ctx), noBid) })
	}
}

// later calls f on a goroutine of its own, after the one before.
func (p *bidding) later(f func()) {
	before, done := p.done, make(chan struct{})
	p.done = done
	p.e.active.Add(1)
	go func() {
		defer p.e.active.Done()
		defer close(done)
		if before != nil {
			<-before
		}
		f()
	}()
}

// write makes the bid that is called for. It reads the record before: what was pushed may
// be late, and another candidate may have written meanwhile.
func (p *bidding) write(ctx context.Context, rank int64) {
	e := p.e
	a := e.asks(loading, store.Look).within(e.o.RequestTimeout)
	a.Alone = !p.place.Many()
	if _, f := e.load(ctx, a); f != nil {
		return
	}
	s := e.view.Snapshot()
	b, write := p.bid(s.Record, rank)
	if !write || !e.waits(s) {
		return
	}
	there := e.annex.Of(s.Record).Bid
	lowers := !there.None() && rank < there.Rank
	if !lowers {
		p.lowered.Store(noBid - 1)
	}
	b.Nonce = e.newNonce()
	if f := e.extend(ctx, s.Record, b.Into); f == nil && lowers {
		p.lowered.Store(b.Rank)
	}
}
