package partition

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/aside"
	"github.com/elector-go/elector/internal/rule"
)

// longestSearch bounds the pause before a seat is looked for again, where leases are long.
const longestSearch = 30 * time.Second

// serve takes a seat and owns partitions, again and again, until ctx ends.
func (g *Group) serve(ctx context.Context, work Work) error {
	g.tracePlanned(ctx, 0)
	pause, said := shortestPause, ""
	for {
		s, err := g.sit(ctx)
		if ctx.Err() != nil {
			if s != nil {
				s.lease.Release(context.WithoutCancel(ctx))
			}
			return nil
		}
		if err != nil {
			if ends(err, g.answered) {
				return err
			}
			if text := aside.Reason(err.Error()); text != said {
				said = text
				g.log.Log(ctx, levelOf(err), "elector: this process finds no seat in the group, and tries again", "error", err)
			}
			g.wait(ctx, g.now()+pause, nil)
			pause = min(2*pause, g.options.RenewEvery, longestSearch)
			continue
		}
		pause, said = shortestPause, ""
		s.worker = work
		if err := s.serve(ctx); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// sit takes the lowest seat that is vacant.
func (g *Group) sit(ctx context.Context) (*sitting, error) {
	top := 0
	for from, n := 0, 4; ; from, n = from+n, 2*n {
		var seats []int
		for i := range n {
			seats = append(seats, from+i)
		}
		outcomes := g.loadSeats(ctx, seats, g.planName())
		if o := outcomes[0]; o.Err != nil {
			return nil, o.Err
		} else if _, err := g.usable(o.Record); err != nil {
			return nil, err
		}
		for j, i := range seats {
			o := outcomes[j+1]
			if isForeign(o.Err) {
				continue // not this one
			}
			if o.Err != nil {
				return nil, o.Err
			}
			own := o.Record.Exists() && g.seat(i).View.Snapshot().Own
			if !o.Record.Vacant() && !own {
				top = i
				continue
			}
			l, err := g.seat(i).elector.TryCampaign(ctx)
			g.answered = g.answered || err == nil || isHeld(err)
			if isHeld(err) || isForeign(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			a, err := l.Acquisition()
			if err != nil {
				return nil, err
			}
			s := &sitting{group: g, seat: g.seat(i), lease: l, own: rule.Incarnation{Seat: i, Nonce: a.Record.Attempt.Nonce}, seats: rule.NewSeats(g.drift, 2*g.options.TTL), slots: map[int]*slot{}, woken: make(chan struct{}, 1)}
			s.follower = newFollower(s)
			s.follower.top = max(i, top)
			return s, nil
		}
		if from+n >= maxSeats {
			return nil, fmt.Errorf("%w: all %d seats of the group are held", elector.ErrInvalid, maxSeats)
		}
	}
}

// serve owns partitions until the seat's lease ends, or this process has left. It returns
// an error if this process may not be a member.
func (s *sitting) serve(ctx context.Context) error {
	g := s.group
	g.log.Info("elector: this process has a seat in the group", "seat", s.own.Seat)
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.ctx, s.end = context.WithCancelCause(context.WithoutCancel(ctx))
	var helpers sync.WaitGroup
	helpers.Go(func() { s.follower.follow(following) })
	if g.requests.Watches() {
		g.active.Go(func() { s.follower.watch(following) }) // not a helper: it may ignore its context
	}
	for _, ends := range []context.Context{ctx, s.lease.Context()} { // then it leaves
		defer context.AfterFunc(ends, func() { wake(s.woken) })()
	}
	helpers.Go(func() {
		select {
		case <-s.seat.Ended():
			s.end(s.lease.Check())
		case <-following.Done():
		}
	})
	s.moves(ctx)
	stop()
	returned := s.finish()
	helpers.Wait()
	if returned {
		s.lease.Release(context.WithoutCancel(ctx)) // it logs why it cannot
	} else {
		s.seat.Abandon(errors.New("workers of the group have not returned"))
	}
	g.log.Info("elector: this process has left its seat in the group", "seat", s.own.Seat, "error", s.lease.Check())
	if err := s.follower.reported().refused; err != nil {
		return err
	}
	if !returned || s.leaving != 0 { // as others wait for one that is gone; or it was asked to leave
		g.wait(ctx, g.now()+g.challenge(), nil)
	}
	return nil
}

// moves moves partitions until this process has none and leaves, or the lease ends.
func (s *sitting) moves(ctx context.Context) {
	g := s.group
	for s.lease.Remaining() > 0 {
		if s.leaving == 0 && (ctx.Err() != nil || s.lease.Context().Err() != nil || s.follower.reported().refused != nil) {
			s.leaving = g.now()
			s.follower.tell(func(c *commission) { c.wish.leaving = true })
		}
		s.adopt()
		next := s.step(ctx)
		if s.leaving != 0 && (s.idle() && !s.planned() || g.now() >= s.leaving+g.options.ReleaseTimeout) {
			return
		}
		if s.leaving != 0 {
			next = min(next, s.leaving+g.options.ReleaseTimeout)
			if half := s.leaving + g.options.ReleaseTimeout/2 + 1; half > g.now() { // see planned
				next = min(next, half)
			}
		}
		g.wait(s.ctx, next, s.woken)
	}
}

// finish ends all leases, and reports whether all workers return in time.
func (s *sitting) finish() (returned bool) {
	g := s.group
	over := s.lease.Check()
	if over == nil {
		over = elector.ErrResigned
	}
	var infos []LeaseInfo
	for _, x := range s.slots {
		if x.leased() {
			infos = append(infos, s.over(x, ended, "timeout", over))
		}
	}
	s.end(over)
	for _, info := range infos {
		g.traceEnded(info)
	}
	g.tracePlanned(s.ctx, 0)
	deadline := s.deadline(g.now())
	for s.running.Load() > 0 {
		if g.wait(context.Background(), deadline, s.woken) && s.running.Load() > 0 {
			g.log.Error("elector: workers of the group have not returned although their leases are over; others will own their partitions", "seat", s.own.Seat, "timeout", g.options.ReleaseTimeout)
			return false
		}
	}
	return true
}
