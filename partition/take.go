package partition

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/internal/rule"
)

// take takes partitions that are free.
func (s *sitting) take(ctx context.Context, slots []*slot) {
	if len(slots) == 0 {
		return
	}
	g := s.group
	p := s.follower.reported().plan
	if p == nil {
		for _, x := range slots {
			s.later(x)
		}
		return
	}
	read := g.now()
	asked := s.living(slots) // as seen before
	outcomes, unread := s.loadWith(ctx, slots, asked)
	var there []*slot
	for i, o := range outcomes {
		x := slots[i]
		x.foreign = isForeign(o.Err)
		if o.Err != nil {
			s.cannot(x, o.Err)
			continue
		}
		x.record = o.Record
		there = append(there, x)
	}
	also := s.living(there)
	maps.DeleteFunc(also, func(in rule.Incarnation, _ bool) bool { return asked[in] })
	if len(also) > 0 {
		_, more := s.loadWith(ctx, nil, also)
		maps.Copy(unread, more)
	}
	var claimed []*slot
	wall := clock.Mark(g.clock).Wall
	for _, x := range there {
		now := g.now()
		trail := g.trail(x.partition)
		at, err := trail.Free(x.record, s.seats, s.own, p.founding, p.audit, now)
		switch {
		case err != nil:
			s.cannot(x, fmt.Errorf("record %s: %w", g.record(x.partition), err))
			continue
		case at > now:
			x.owned = read
			s.later(x)
			if at != rule.Never {
				x.next = min(at, now+g.options.RenewEvery)
			}
			in, _ := rule.Holder(x.record)
			if err := unread[in]; err != nil {
				s.cannot(x, err)
			} else if now-x.since > g.challenge()+2*g.options.RenewEvery {
				s.cannot(x, errors.New(g.waits(x)))
			}
			continue
		}
		token := trail.Token(x.record, uint64(g.options.MinToken), wall)
		if token == 0 {
			s.cannot(x, elector.ErrTokenExhausted)
			continue
		}
		next := backends.Record{Holder: g.options.ID, Token: token, TTL: g.options.TTL, RenewEvery: g.options.RenewEvery, Attempt: backends.Attempt{Nonce: g.newNonce(), Sequence: 1}}
		next.Extensions, _ = x.record.Extensions.Class('k').With(rule.SeatName, s.own.String())
		if !x.record.Exists() {
			next.Extensions = rule.Created(next.Extensions)
		}
		s.intend(x, x.record, next)
		claimed = append(claimed, x)
	}
	if len(claimed) == 0 { // their owners give them up; so it is with the rest
		for _, x := range s.slots {
			if x.state == wanted && x.tries == 0 {
				s.later(x)
			}
		}
	}
	s.write(ctx, claimed)
}

// waits describes what a partition waits for that cannot be taken yet.
func (g *Group) waits(x *slot) string {
	if !x.record.Exists() {
		return fmt.Sprintf("record %s is missing; it is taken after %v, unless its owner writes it again", g.record(x.partition), rule.Challenge(time.Duration(g.audit.Load()), g.drift))
	}
	return fmt.Sprintf("record %s names %q, which may still own it, with token %d", g.record(x.partition), x.record.Holder, x.record.Token)
}

// living returns the incarnations through which partitions were held when they were seen
// last, unless they are over or this process's own.
func (s *sitting) living(slots []*slot) map[rule.Incarnation]bool {
	living := map[rule.Incarnation]bool{}
	for _, x := range slots {
		in, err := rule.Holder(x.record)
		if err == nil && in != s.own && in.Seat < maxSeats && !x.record.Vacant() && s.seats.Over(in, x.record.TTL, 0) != 0 {
			living[in] = true
		}
	}
	return living
}

// loadWith reads the records of some slots, and the seats of incarnations that partitions
// were seen to name before. It returns why the seat of an incarnation cannot be read.
func (s *sitting) loadWith(ctx context.Context, slots []*slot, asked map[rule.Incarnation]bool) (records []backends.Outcome, unread map[rule.Incarnation]error) {
	g := s.group
	var names []string
	for in := range asked {
		if name := g.seatName(in.Seat); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	sent := g.now()
	outcomes := s.load(ctx, slots, names...)
	now := g.now()
	unread = map[rule.Incarnation]error{}
	for in := range asked {
		o := outcomes[len(slots)+slices.Index(names, g.seatName(in.Seat))]
		if o.Err != nil {
			unread[in] = o.Err
			continue
		}
		s.seats.See(in, o.Record, sent, now)
		if !o.Record.Vacant() { // otherwise no holder is to be replaced, and the number may be anything
			s.follower.tell(func(c *commission) { c.named, c.asked = max(c.named, in.Seat), now })
		}
	}
	return outcomes[:len(slots)], unread
}
