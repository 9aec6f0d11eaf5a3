package network

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fault"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// beforeSwap runs code of the case before the next write is sent.
func (c *candidate) beforeSwap(f func()) {
	c.hooks.Next("swap", func(ctx context.Context, _ fault.Call, send fault.Send) (backends.Record, error) {
		f()
		return send(ctx)
	})
}

// losesReplyToSwap makes the network lose the answer to the next write, if the store has
// not kept it back for longer than the candidate waits. The returned time is when it was about to be sent, once the channel is closed.
func (c *candidate) losesReplyToSwap() (sent *time.Duration, sending <-chan struct{}) {
	sent = new(time.Duration)
	done := make(chan struct{})
	c.beforeSwap(func() {
		if err := c.link.Break(LoseReplies); err != nil {
			c.s.Errorf("breaking the network: %v", err)
		}
		*sent = history.BootTime()
		close(done)
	})
	return sent, done
}

// ambiguousAcquire: the answer to the acquiring write is lost. No candidate leads
// before a read has shown the write, and the lease counts from when it was
// sent.
func ambiguousAcquire(s *scene) {
	a, direct := s.joinThrough(steady()), s.handle(s.store.URL)
	sent, sending := a.losesReplyToSwap()
	from := s.events.Position()
	p := a.campaign()
	within(s, sending, "the acquisition is sent")
	s.until("the store applies a write whose answer is lost", func() bool { return s.record(direct).Holder == a.ID() })
	a.tells(from, history.Trouble, "the write is given up")
	p.waits("the acquisition's answer was lost")
	if _, err := a.Token(); err == nil {
		s.Errorf("A leads before a read has shown the write whose answer was lost")
	}
	a.heals()
	l, won := p.won("a read shows the write")
	if left := won.Left; left > a.hold-(won.Before-*sent) {
		s.Errorf("the lease has %v left %v after its write was sent, and H is %v (guarantee 2)", left, won.Before-*sent, a.hold)
	}
	if r := s.record(direct); elector.Token(r.Token) != l.Token() {
		s.Errorf("A leads with token %v, and the record is %+v", l.Token(), r)
	}
	a.renewals(1)
	s.must(l.Check(), "the lease of one who leads after its answer was lost")
}

// ambiguousRenew: the answer to a renewal is lost. The expiry stays where it
// is until a read shows the renewal, and nothing is lost.
func ambiguousRenew(s *scene) {
	a, direct := s.joinThrough(steady()), s.handle(s.store.URL)
	l := a.lead()
	first := a.renewals(1)
	sent, sending := a.losesReplyToSwap()
	within(s, sending, "a renewal is sent")
	from := s.events.Position()
	sequence := s.record(direct).Attempt.Sequence
	a.tells(from, history.Trouble, "the renewal is given up")
	s.until("the store applies a renewal whose answer is lost", func() bool { return s.record(direct).Attempt.Sequence >= sequence })
	// At is after, and Before is before the lease was asked.
	look := history.BootTime()
	if left := l.Remaining(); look+left > first.At+first.Left {
		s.Errorf("the lease is valid until %v after a renewal without an answer, and was until %v before", look+left, first.At+first.Left)
	}
	a.heals()
	renewed := a.tells(s.events.Position(), history.Renewed, "a renewal works again")
	if renewed.Left > a.hold-(renewed.Before-a.answeredSwap(renewed.At, *sent)) {
		s.Errorf("the lease has %v left after %v (guarantee 2)", renewed.Left, renewed.Before-*sent)
	}
	a.renewals(1)
	s.must(l.Check(), "the lease after a renewal without an answer")
}

// answeredSwap returns when the latest write that can have been applied was
// sent, at the earliest: the given time, or that of the latest write that was
// answered since.
func (c *candidate) answeredSwap(before, at time.Duration) time.Duration {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, r := range c.requests {
		if r.op == "swap" && r.at <= before && r.at > at && (r.err == nil || !errors.Is(r.err, backends.ErrConflict)) {
			at = max(at, r.at-r.took)
		}
	}
	return at
}

// delayedWrite: an acquisition that arrives after its candidate gave up makes
// it no leader, its record expires, and its token is not used again. And so
// does a renewal.
func delayedWrite(s *scene) {
	const late = 1500 * time.Millisecond
	o := short()
	a, b, direct := s.joinThrough(o), s.join(o), s.handle(s.store.URL)
	s.must(a.link.Delay(late, 0), "delaying requests")
	delay := func() {
		if err := a.link.Break(Latency); err != nil {
			s.Errorf("breaking the network: %v", err)
		}
	}
	before, began := a.link.Count(), history.BootTime()
	var sent atomic.Bool
	a.beforeSwap(func() { sent.Store(true); delay() })
	s.until("an acquisition is sent", func() bool { // and not only a read that a slow machine does not answer in time
		_, err := a.TryCampaign(s.context())
		if err == nil {
			s.Fatalf("TryCampaign succeeds although its write is late")
		}
		return sent.Load()
	})
	a.hit(before, began)
	s.until("the late write is applied", func() bool { return s.record(direct).Exists() })
	if _, err := a.Token(); !errors.Is(err, elector.ErrNotLeader) {
		s.Errorf("Token after a late write gives %v", err)
	}
	ghost := s.record(direct)
	seen := history.BootTime()
	next := b.campaign()
	l, won := next.won("an unused record expires")
	s.waited(won, seen, o.TTL)
	if uint64(l.Token()) <= ghost.Token || ghost.Holder != a.ID() {
		s.Errorf("B leads with token %v after a late write %+v", l.Token(), ghost)
	}
	s.must(b.Resign(s.context()), "resigning")

	// A renewal that arrives late, when the lease is over.
	a.heals()
	s.until("the candidate's reads work again", func() bool { _, err := a.Leader(s.context()); return err == nil })
	second := a.lead()
	before, began = a.link.Count(), history.BootTime()
	a.beforeSwap(delay)
	third := b.campaign()
	b.sees(a)
	a.endsInTime(second, began)
	a.hit(before, began)
	third.won("a holder whose renewals are late is replaced")
	a.lost(second)
	if s.record(direct).Holder != b.ID() {
		s.Errorf("a late renewal has replaced the successor: %+v", s.record(direct))
	}
}
