package cost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/bench/results"
	"github.com/elector-go/elector/bench/wire"
	"github.com/elector-go/elector/internal/proof/stores"
)

// patience is how long anything may take that has to happen.
const patience = time.Minute

// A subject is one library on one store.
type subject struct {
	store   *stores.Store
	library peers.Library
	o       Options
	prefix  string // of the names of its elections

	resigning sync.Mutex // no two handovers at the same time

	mutex     sync.Mutex // held to use what follows, and the store
	elections int
	ids       int
}

// waiters, windows and rounds are how much is measured.
func (s *subject) waiters() []int {
	if s.o.Short {
		return []int{1, 10}
	}
	return []int{1, 10, 50}
}

func (s *subject) windows() int {
	if s.o.Short {
		return 1
	}
	return 4
}

func (s *subject) rounds() int {
	if s.o.Short {
		return 1
	}
	return 5
}

// A scene counts some of the figures, in elections of its own.
type scene func(context.Context) (counted, error)

// measure plays all scenes. Those that mostly wait go on side by side.
func (s *subject) measure(ctx context.Context) ([]results.Figure, error) {
	alone, err := s.play(ctx, s.alone)
	if err != nil {
		return nil, err
	}
	scenes := []scene{s.steady}
	for _, n := range s.waiters() {
		scenes = append(scenes, func(ctx context.Context) (counted, error) { return s.contended(ctx, n) })
	}
	all := make([]counted, len(scenes))
	errs := make([]error, len(scenes))
	var playing sync.WaitGroup
	for i, one := range scenes {
		playing.Go(func() { all[i], errs[i] = s.play(ctx, one) })
	}
	playing.Wait()
	return figures(s.library, append(all, alone)), errors.Join(errs...)
}

// attempts is how often a scene is played at most.
const attempts = 3

// play plays a scene, and from its beginning again if it fails: where other
// programs keep the machine for as long as a TTL, leaders lose their leadership,
// and what was counted until then is worth nothing.
func (s *subject) play(ctx context.Context, one scene) (counted, error) {
	for i := 1; ; i++ {
		c, err := one(ctx)
		if err == nil || i == attempts || ctx.Err() != nil {
			return c, err
		}
		s.o.Log("cost: %s on %s: attempt %d of %d: %v", s.library.Name, s.library.Store, i, attempts, err)
	}
}

// newElection returns the name of an unused election, in which
// everything is there that the library needs.
func (s *subject) newElection(ctx context.Context) (string, error) {
	s.mutex.Lock()
	s.elections++
	name := fmt.Sprintf("%s_%d", s.prefix, s.elections)
	s.mutex.Unlock()
	c, err := s.open(ctx, name, s.store.Address)
	if err != nil {
		return "", err
	}
	return name, c.Close()
}

// open connects a candidate through an address.
func (s *subject) open(ctx context.Context, election, address string) (peers.Candidate, error) {
	s.mutex.Lock()
	s.ids++
	config := peers.Config{
		Name: election, ID: fmt.Sprintf("candidate_%d", s.ids),
		URL: s.store.Through(address), Address: address, TTL: s.o.TTL,
	}
	s.mutex.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it is not open after %v", patience))
	defer cancel()
	c, err := s.library.Open(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("opening a candidate: %w", err)
	}
	return c, nil
}

func (s *subject) proxy() (*wire.Proxy, error) { return wire.Start(s.store.Kind, s.store.Address) }

// through opens a candidate behind a proxy of its own, and closes both after use.
func (s *subject) through(ctx context.Context, election string, use func(peers.Candidate, *wire.Proxy) error) (err error) {
	p, err := s.proxy()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	c, err := s.open(ctx, election, p.Address())
	if err != nil {
		return err
	}
	defer c.Close()
	return use(c, p)
}

// campaign waits until the candidate leads.
func campaign(ctx context.Context, c peers.Candidate) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no other candidate leads, and it does not after %v", patience))
	defer cancel()
	if err := c.Campaign(ctx); err != nil {
		return fmt.Errorf("campaigning: %w", errors.Join(err, context.Cause(ctx)))
	}
	return nil
}

func resign(ctx context.Context, c peers.Candidate) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := c.Resign(ctx); err != nil {
		return fmt.Errorf("resigning: %w", err)
	}
	return nil
}

// pause waits by the clock.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A counter is a wire.Proxy.
type counter interface{ Counts() wire.Counts }

// windows counts what each of the counters counts from now on, in n windows
// that follow each other.
func windows(ctx context.Context, n int, every time.Duration, counters ...counter) ([][]wire.Counts, error) {
	all := make([][]wire.Counts, len(counters))
	last := make([]wire.Counts, len(counters))
	for i, c := range counters {
		last[i] = c.Counts()
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for range n {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		for i, c := range counters {
			now := c.Counts()
			all[i] = append(all[i], now.Since(last[i]))
			last[i] = now
		}
	}
	return all, nil
}

// quiet waits until nothing has come for a while: a twelfth of the TTL, which
// is less than the time between a leader's renewals with any library.
func quiet(ctx context.Context, ttl time.Duration, c counter) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("requests follow each other without a pause for %v", patience))
	defer cancel()
	for last := c.Counts(); ; {
		if err := pause(ctx, ttl/12); err != nil {
			return err
		}
		now := c.Counts()
		if now == last {
			return nil
		}
		last = now
	}
}

// A count is what was counted under one name, each time that it was.
type count struct {
	what     string
	waiters  int
	counts   []wire.Counts
	connects bool   // whether open connections are a figure too
	missing  string // why nothing was counted
}

type counted []count

// order is that of an election's life.
var order = []string{FirstAcquire, Opening, Acquire, Holding, Waiting, Observing, Resign, Handover, HandoverAndTTL, Closing}

// figures puts the counts of all scenes in order.
func figures(l peers.Library, scenes []counted) (all []results.Figure) {
	counts := slices.Concat(scenes...)
	slices.SortStableFunc(counts, func(a, b count) int { return slices.Index(order, a.what) - slices.Index(order, b.what) })
	for _, c := range counts {
		figure := func(unit, note string, of func(wire.Counts) int64) {
			all = append(all, results.Figure{
				Subject: results.Cost, Store: l.Store, Library: l.Name,
				What: c.what, Count: c.waiters, Unit: unit, Values: values(c.counts, of), Note: note,
			})
		}
		if c.missing != "" {
			figure("requests", c.missing, nil)
			figure("bytes", c.missing, nil)
			continue
		}
		figure("requests", pings(l.Store, c.counts), func(n wire.Counts) int64 { return n.Requests })
		figure("bytes", "both directions together", wire.Counts.Bytes)
		if c.connects {
			figure("connections", "", func(n wire.Counts) int64 { return n.Open })
		}
	}
	return all
}

func values(counts []wire.Counts, of func(wire.Counts) int64) (all []float64) {
	for _, n := range counts {
		all = append(all, float64(of(n)))
	}
	return all
}

// pings says how many of the requests are counted apart as well, if any are.
func pings(store string, counts []wire.Counts) string {
	f := results.Figure{Values: values(counts, func(n wire.Counts) int64 { return n.Pings })}
	if f.Most() == 0 {
		return ""
	}
	are := "pings that hold the session"
	switch store {
	case stores.NATS:
		are = "pings of the connection"
	case stores.Redis:
		are = "what opens a connection, pings of it, or an INFO in one pipeline with a read"
	}
	return fmt.Sprintf("of them %g (median) are %s", f.Median(), are)
}
