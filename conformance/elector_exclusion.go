package conformance

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fault"
)

// mx/two-valid: candidates compete while requests and answers are lost, late and
// repeated, and while leaders crash and resign. The referee checks them.
func twoValid(s *suite) {
	el := s.election("")
	wanted := s.rounds(12, 8)
	ctx, cancel := context.WithCancel(s.context())
	var workers sync.WaitGroup
	var chaos []*disorder
	seed := rand.Uint64()
	s.Logf("seed %d", seed)
	for i := range 3 {
		o := s.short()
		c := el.join(o)
		d := &disorder{longest: 2 * o.TTL, random: rand.New(rand.NewPCG(seed, uint64(i)))}
		chaos = append(chaos, d)
		c.faults.Always(d.fault)
		workers.Add(1)
		go func() {
			defer workers.Done()
			for {
				l, err := c.Campaign(ctx)
				if err != nil {
					if ctx.Err() == nil {
						s.Errorf("a campaign does not end for a fault that may pass: that of %s ended with %v", c.ID(), err)
					}
					return
				}
				select {
				case <-l.Context().Done():
				case <-time.After(d.upTo(o.TTL)):
				}
				el.check()
				if d.chance(0.5) {
					c.crash()
					<-l.Context().Done()
					c.faults.Always(d.fault)
				} else {
					c.Resign(ctx) // may fail, its requests are disturbed too
				}
			}
		}()
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := s.limit()
	for end := time.Now().Add(limit); el.acquisitions() < wanted && !s.Failed(); <-tick.C {
		el.check()
		if time.Now().After(end) {
			s.Errorf("leaders that crash or resign are replaced: there were %d acquisitions in %v, not %d", el.acquisitions(), limit, wanted)
			break
		}
	}
	cancel()
	workers.Wait()
	for i, d := range chaos {
		c := el.candidates[i]
		c.faults.Always(nil)
		s.must(c.Close(), "closing")
		d.late.Wait()
		c.hit()
	}
}

// A disorder disturbs some requests at random.
type disorder struct {
	longest time.Duration // of a delay
	late    sync.WaitGroup

	mutex  sync.Mutex
	random *rand.Rand
}

func (d *disorder) chance(p float64) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.random.Float64() < p
}

func (d *disorder) upTo(most time.Duration) time.Duration {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return time.Duration(d.random.Int64N(int64(most)))
}

func (d *disorder) fault(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
	if d.chance(0.7) {
		return send(ctx)
	}
	d.mutex.Lock()
	which := d.random.IntN(5)
	d.mutex.Unlock()
	switch which {
	case 0:
		return fault.RequestLost(ctx, c, send)
	case 1:
		return fault.ReplyLost(ctx, c, send)
	case 2:
		return fault.HangApplied(ctx, c, send)
	case 3:
		return fault.Twice(ctx, c, send)
	}
	release, applied := make(chan struct{}), make(chan struct{})
	time.AfterFunc(d.upTo(d.longest), func() { close(release) })
	d.late.Add(1)
	go func() { <-applied; d.late.Done() }()
	return fault.Late(release, applied)(ctx, c, func(ctx context.Context) (backends.Record, error) {
		ctx, cancel := context.WithTimeout(ctx, patience) // a server that dies may take the request with it
		defer cancel()
		return send(ctx)
	})
}

// waited fails the case if a campaign won within C of a TTL after since
// (guarantee 3). The challenger saw only later what it had to wait for.
func (s *suite) waited(p *campaign, since time.Time, ttl time.Duration) {
	s.Helper()
	if d := p.at().Sub(since); d < challenge(ttl) {
		s.Errorf("%s leads after %v, before C = %v of the TTL in the record had passed (guarantee 3)", p.c.ID(), d, challenge(ttl))
	}
}

// mx/same-id: two processes with one ID are two candidates.
func twins(s *suite) {
	el := s.election("")
	o := s.brisk()
	o.ID = "twin"
	a, b := el.join(o), el.join(o)
	first := a.lead()
	next := b.challenge(a)
	a.renewals(3)
	next.waits("a candidate with the same ID leads")
	s.must(first.Check(), "the lease is valid while a twin campaigns")
	s.must(a.Resign(s.context()), "resigning")
	second := next.won("the twin leads after a resignation")
	s.is(first.Check(), elector.ErrResigned, "Check of the twin that resigned")
	s.is(a.Resign(s.context()), elector.ErrNotLeader, "resigning again while the twin leads")
	b.renewals(1)
	s.must(second.Check(), "the twin's lease is valid after the other twin resigned again")
	el.overwrite(s.open(), o.ID) // a third one
	wait(s, second.Context().Done(), "a candidate whose record was overwritten by another with the same ID loses its lease")
	s.is(second.Check(), elector.ErrLost, "Check of a candidate whose record was overwritten by a twin")
}

// mx/vanished: the record of a leader is deleted while the leader is cut off.
func vanished(s *suite) {
	el := s.election("")
	o := s.expiring(2)
	a, b := el.join(o), el.join(o)
	l := a.lead()
	next := b.challenge(a)
	a.crash()
	deleted := time.Now()
	s.h.Raw.Delete(s, el.name)
	next.won("an election whose record was deleted gets a leader again")
	s.waited(next, deleted, o.TTL)
	a.lapses(l, "its record was deleted while it was cut off")
	a.cutOff()
}

// mx/rollback: the record of a leader goes back to a state without a leader, as
// after a restored backup, while the leader is cut off.
func rollback(s *suite) {
	el := s.election("")
	o := s.expiring(2)
	a, b, c := el.join(o), el.join(o), el.join(o)
	a.lead()
	s.must(a.Resign(s.context()), "resigning")
	backup := s.h.Raw.Get(s, el.name)

	l := b.lead()
	next := c.challenge(b)
	b.crash()
	restored := time.Now()
	s.h.Raw.Put(s, el.name, backup)
	next.won("an election whose record was rolled back gets a leader again")
	s.waited(next, restored, o.TTL)
	b.lapses(l, "its record was rolled back while it was cut off")
	b.cutOff()
}

// exp/record-ttl: challengers use the TTL in the record, not their own.
func recordTTL(s *suite) {
	el := s.election("")
	long, short := s.expiring(3), s.short()
	a, b := el.join(long), el.join(short)
	a.lead()
	next := b.challenge(a)
	a.crash()
	next.won("a crashed leader is replaced by one with a shorter TTL")
	s.waited(next, a.writes.latest(), long.TTL)
	a.cutOff()

	// With its own TTL this one would wait for a day.
	patient := s.long()
	patient.TTL = 24 * time.Hour
	c := el.join(patient)
	last := c.challenge(b)
	b.crash()
	last.won("a crashed leader is replaced by one with a longer TTL")
	b.cutOff()
}
