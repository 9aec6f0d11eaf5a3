package handover

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/bench/results"
	"github.com/elector-go/elector/internal/proof/child"
	"github.com/elector-go/elector/internal/proof/stores"
)

// What the figures of a handover are called.
const afterResign = "from resign to the successor knowing"

// handover measures a row: so many rounds with so many waiters.
func (o Options) handover(ctx context.Context, l peers.Library, r rules, s *stores.Store, run string, waiters int) ([]results.Figure, error) {
	milliseconds := results.Figure{Subject: results.Handover, Store: l.Store, Library: l.Name, What: afterResign, Count: waiters, Unit: "ms"}
	trips := milliseconds
	trips.Unit = "round trips"
	if r.keeps != "" {
		milliseconds.Note, trips.Note = r.keeps, r.keeps
		return []results.Figure{milliseconds, trips}, nil
	}
	tries := 0
	fresh := func() *field {
		tries++
		f := &field{
			library: l,
			config:  peers.Config{Name: electionName("handover", l, run, 100*waiters+tries), URL: s.URL, Address: s.Address, TTL: o.TTL},
			poll:    r.poll,
			lookOut: r.lookOut,
			calm:    calm + r.bids,
			longest: 5*o.TTL + r.poll,
			written: o.Written,
		}
		if r.count != nil {
			f.count = func(ctx context.Context) (int, error) { return r.count(ctx, s) }
		}
		return f
	}
	if r.poll == 0 && waiters == o.waiters()[0] {
		// A store that was just started is slow at what it does for the first
		// time, ZooKeeper above all.
		if _, err := playAll(ctx, fresh, 10, 3); err != nil {
			return nil, fmt.Errorf("before the measurement: %w", err)
		}
	}
	trip, err := roundTrip(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("one round trip: %w", err)
	}
	rounds := o.handovers(r)
	all, err := playAll(ctx, fresh, waiters, rounds)
	if err != nil {
		return nil, fmt.Errorf("with %d waiting: %w", waiters, err)
	}
	for _, t := range all.times {
		milliseconds.Values = append(milliseconds.Values, float64(t)/float64(time.Millisecond))
		trips.Values = append(trips.Values, float64(t)/float64(trip))
	}
	milliseconds.Note = fmt.Sprintf("%d rounds; one round trip took %.2f ms; %s", rounds, float64(trip)/float64(time.Millisecond), r.handover)
	if n := len(all.kept); n > 0 {
		milliseconds.Note += fmt.Sprintf("; in %d of the rounds Resign failed, and the hold had to run out: %v", n, all.kept[0])
	}
	milliseconds.Note += again(all.disturbed)
	trips.Note = milliseconds.Note
	figures := []results.Figure{milliseconds, trips}
	if o.Written != nil {
		writes := results.Figure{Subject: results.Handover, Store: l.Store, Library: l.Name, What: "writes of all waiters", Count: waiters, Unit: "writes", Values: all.writes}
		figures = append(figures, writes)
	}
	return figures, nil
}

// again describes rounds that were not as they should be.
func again(disturbed []error) string {
	if len(disturbed) == 0 {
		return ""
	}
	// Without what a process printed.
	reason, _, _ := strings.Cut(disturbed[0].Error(), "\n")
	return fmt.Sprintf("; %d disturbed rounds were made anew; of the first: %s", len(disturbed), strings.TrimSuffix(reason, child.PrintedMark))
}

// A play is what so many rounds have shown.
type play struct {
	times     []time.Duration
	writes    []float64 // of the waiters, where they are counted
	kept      []error   // see field
	disturbed []error   // why rounds do not count
}

// mostDisturbed is how many rounds of a row may be made anew.
const mostDisturbed = 5

// playAll measures so many rounds. One that was disturbed does not count, and
// the next begins with candidates of a new election: on a machine that stands
// still for a TTL, leaders lose office before they can resign.
func playAll(ctx context.Context, fresh func() *field, waiters, rounds int) (play, error) {
	var all play
	for len(all.times) < rounds {
		f := fresh()
		err := f.play(ctx, waiters, len(all.times), rounds)
		all.times, all.writes, all.kept = append(all.times, f.times...), append(all.writes, f.writes...), append(all.kept, f.kept...)
		if err == nil {
			break
		}
		all.disturbed = append(all.disturbed, err)
		if ctx.Err() != nil {
			return all, context.Cause(ctx)
		}
		if len(all.disturbed) > mostDisturbed {
			return all, fmt.Errorf("%d rounds were disturbed: %w", len(all.disturbed), errors.Join(all.disturbed...))
		}
	}
	return all, nil
}

// roundTrip is how long a read of nothing takes, on a connection of its own: the
// median of 50. It is a read of our adapter, but for ZooKeeper, where that takes
// two round trips.
func roundTrip(ctx context.Context, s *stores.Store) (time.Duration, error) {
	const calls = 50
	if s.Kind == stores.ZooKeeper {
		conn, _, err := zk.Connect([]string{s.Address}, 10*time.Second, zk.WithLogInfo(false))
		if err != nil {
			return 0, err
		}
		defer conn.Close()
		return median(calls, func() error {
			_, _, err := conn.Exists("/handover_nobody")
			return err
		})
	}
	b, err := backends.Open(ctx, s.URL)
	if err != nil {
		return 0, err
	}
	defer b.Close()
	return median(calls, func() error {
		_, err := b.Load(ctx, "handover_nobody")
		return err
	})
}

// median is how long f takes, of so many calls.
func median(calls int, f func() error) (time.Duration, error) {
	var all []time.Duration
	for range calls {
		start := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		all = append(all, time.Since(start))
	}
	slices.Sort(all)
	return (all[(calls-1)/2] + all[calls/2]) / 2, nil
}

// A field is the candidates of one library in one election: one leads and the
// others wait.
type field struct {
	library peers.Library
	config  peers.Config // all but the ID

	// How to know that a candidate waits for sure. Where the store knows who
	// waits there, count tells how many do; lookOut is how many the leader
	// adds. Where waiters poll there is nothing to see: then each gets a
	// poll's longest pause from the call of Campaign, in which it has surely
	// read the store once, and calls again at some time within the next.
	poll    time.Duration
	count   func(ctx context.Context) (int, error)
	lookOut int

	// calm is a pause after the count is right: what a waiter does after the
	// store knows it (a read, say), and what the new connection costs the
	// machine, shall not be in the figure.
	calm time.Duration

	longest time.Duration // that a successor may take

	written func() int64 // what all candidates have written; may be nil

	times  []time.Duration
	writes []float64
	kept   []error // why a library, not ours, could not release: such rounds count

	made    int
	leader  *candidate
	waiting []*candidate
	decided chan *candidate // gets those whose Campaign has returned
}

// calm is what it is on real stores.
const calm = 100 * time.Millisecond

// A candidate is one whose Campaign was called.
type candidate struct {
	peers.Candidate
	id     string
	cancel context.CancelFunc
	done   chan struct{} // closed when Campaign has returned: the rest is set
	at     time.Time
	err    error
}

// play measures the rounds from the first one on, of so many, with so many
// waiters.
func (f *field) play(ctx context.Context, waiters, first, rounds int) error {
	f.decided = make(chan *candidate, waiters+rounds+1) // room for all: no send blocks
	defer f.leave()
	if err := f.enter(ctx); err != nil {
		return err
	}
	if err := f.elect(ctx, time.Minute); err != nil {
		return err
	}
	for i := first; i < rounds; i++ {
		if err := f.complete(ctx, waiters); err != nil {
			return err
		}
		// The instant of the resignation is anywhere in the interval of the
		// polls, evenly over the rounds.
		if err := f.pause(ctx, spread(f.poll, i, rounds, rand.Float64())); err != nil {
			return err
		}
		took, err := f.resign(ctx)
		if err != nil {
			return fmt.Errorf("round %d: %w", i+1, err)
		}
		f.times = append(f.times, took)
	}
	return nil
}

// spread is the i-th of n instants in an interval, each at random in its n-th
// part; random is from 0 to below 1.
func spread(interval time.Duration, i, n int, random float64) time.Duration {
	return time.Duration((float64(i) + random) / float64(n) * float64(interval))
}

// complete lets candidates in until so many wait, and blocks until all do for
// sure.
func (f *field) complete(ctx context.Context, waiters int) error {
	// First those who waited before, and see a new leader now: what a winner
	// leaves behind for a while, its own watch, is not to be taken for a
	// waiter.
	if err := f.counted(ctx, len(f.waiting)); err != nil {
		return err
	}
	for len(f.waiting) < waiters {
		if err := f.enter(ctx); err != nil {
			return err
		}
	}
	if err := f.counted(ctx, waiters); err != nil {
		return err
	}
	return f.pause(ctx, f.calm+f.poll)
}

// enter opens a candidate that campaigns.
func (f *field) enter(ctx context.Context) error {
	f.made++
	config := f.config
	config.ID = fmt.Sprintf("candidate-%d", f.made)
	opening, opened := context.WithTimeout(ctx, time.Minute)
	defer opened()
	opens, err := f.library.Open(opening, config)
	if err != nil {
		return fmt.Errorf("opening %s: %w", config.ID, err)
	}
	campaigning, cancel := context.WithCancel(ctx)
	c := &candidate{Candidate: opens, id: config.ID, cancel: cancel, done: make(chan struct{})}
	f.waiting = append(f.waiting, c)
	go func() {
		defer close(c.done)
		c.err = c.Campaign(campaigning)
		c.at = time.Now()
		f.decided <- c
	}()
	return nil
}

// elect waits for a leader.
func (f *field) elect(ctx context.Context, patience time.Duration) error {
	select {
	case c := <-f.decided:
		if c.err != nil {
			return fmt.Errorf("%s campaigns: %w", c.id, c.err)
		}
		f.leader = c
		f.waiting = slices.DeleteFunc(f.waiting, func(w *candidate) bool { return w == c })
		return nil
	case <-time.After(patience):
		return fmt.Errorf("no candidate was elected within %v", patience)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// resign lets the leader resign, and returns when there is a successor, and how
// long that took.
func (f *field) resign(ctx context.Context) (time.Duration, error) {
	old := f.leader
	if !old.Leads() {
		return 0, fmt.Errorf("%s has lost office before it could resign", old.id)
	}
	resigning, resigned := context.WithTimeout(ctx, f.longest)
	defer resigned()
	var written int64
	if f.written != nil {
		written = f.written()
	}
	start := time.Now()
	failed := old.Resign(resigning)
	if failed != nil {
		failed = fmt.Errorf("%s resigns: %w", old.id, failed)
		if f.library.Ours() || ctx.Err() != nil {
			return 0, failed
		}
	}
	if err := f.elect(ctx, f.longest); err != nil {
		return 0, errors.Join(failed, err)
	}
	if f.written != nil {
		f.writes = append(f.writes, float64(f.written()-written-1)) // one is the release
	}
	old.cancel()
	if err := old.Close(); err != nil && f.library.Ours() {
		return 0, fmt.Errorf("closing %s, which resigned: %w", old.id, err)
	}
	took := f.leader.at.Sub(start)
	if took < 0 {
		return 0, fmt.Errorf("%s was elected %v before %s resigned", f.leader.id, -took, old.id)
	}
	if failed != nil {
		f.kept = append(f.kept, failed)
	}
	return took, nil
}

// counted blocks until the store shows so many waiters.
func (f *field) counted(ctx context.Context, waiters int) error {
	if f.count == nil {
		return nil
	}
	for start := time.Now(); ; {
		is, err := f.count(ctx)
		if err != nil {
			return fmt.Errorf("asking the store who waits: %w", err)
		}
		if is == waiters+f.lookOut {
			return nil
		}
		if time.Since(start) > time.Minute {
			return fmt.Errorf("after a minute the store shows %d who wait, and not %d", is-f.lookOut, waiters)
		}
		if err := f.pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// pause lets some time pass in which no candidate may be elected.
func (f *field) pause(ctx context.Context, d time.Duration) error {
	select {
	case c := <-f.decided:
		if c.err != nil {
			return fmt.Errorf("%s campaigns: %w", c.id, c.err)
		}
		return fmt.Errorf("%s was elected although %s has not resigned", c.id, f.leader.id)
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave ends all candidates. No figure depends on how that goes.
func (f *field) leave() {
	all := f.waiting
	if f.leader != nil {
		all = append(all, f.leader)
	}
	for _, c := range all {
		c.cancel()
	}
	var closing sync.WaitGroup
	for _, c := range all {
		<-c.done
		closing.Go(func() { c.Close() })
	}
	closing.Wait()
}
