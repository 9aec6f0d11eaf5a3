package conformance

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fault"
)

// leak/rounds: many elections leave no goroutine, descriptor or memory behind.
func roundsLeak(s *suite) {
	el := s.election("")
	shared := s.open()
	o := s.long()
	o.Logger = slog.New(slog.DiscardHandler)
	round := func(i int) {
		b := shared
		if i%10 == 0 {
			b = s.unclosed()
			defer func() { s.must(b.Close(), "closing a handle") }()
		}
		ctx, cancel := context.WithTimeout(context.Background(), watchdog)
		defer cancel()
		e, err := elector.New(b, el.name, &o)
		s.must(err, "elector.New")
		l, err := e.Campaign(ctx)
		s.must(err, "round %d", i)
		other, err := elector.New(b, el.name, &o)
		s.must(err, "elector.New")
		for leader, err := range other.Observe(ctx) {
			if err != nil || leader.Token != l.Token() {
				s.Errorf("round %d: an observer sees the leader: it saw %+v, %v", i, leader, err)
			}
			break
		}
		s.must(l.Release(ctx), "round %d", i)
		s.must(e.Close(), "round %d", i)
		s.must(other.Close(), "round %d", i)
	}
	warmUp := s.rounds(100, 20)
	for i := range warmUp {
		round(i)
	}
	before := measure()
	n := s.rounds(1000, 50)
	for i := range n {
		round(i)
	}
	// What ends by itself may take a while.
	var after usage
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(watchdog / 4); time.Now().Before(end); <-tick.C {
		if after = measure(); after.within(before, n) {
			return
		}
	}
	s.Errorf("many elections leave nothing behind: before %d rounds %+v, after them %+v", n, before, after)
	if after.goroutines > before.goroutines {
		stacks := make([]byte, 1<<18)
		s.Logf("the goroutines:\n%s", stacks[:runtime.Stack(stacks, true)])
	}
}

// usage is what this process uses.
type usage struct {
	goroutines, descriptors int
	heap                    uint64 // bytes
}

func measure() usage {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{runtime.NumGoroutine(), descriptors(), m.HeapAlloc}
}

// within reports whether n rounds have left nothing behind. A client may keep a few
// buffers and connections; a leak grows with the rounds.
func (u usage) within(before usage, n int) bool {
	slack := min(n/10, 10)
	return u.goroutines <= before.goroutines+slack && u.descriptors <= before.descriptors+slack && u.heap <= before.heap+1<<19
}

// descriptors counts the open files of this process, on systems that list them.
func descriptors() int {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(files)
}

// many/candidates: of many candidates one leads, the others write nothing, and few
// write when a takeover is possible.
func manyCandidates(s *suite) {
	el := s.election("")
	n := s.rounds(100, 20)
	var handles []backends.Backend
	for range 5 {
		handles = append(handles, s.open())
	}
	o := s.expiring(3)
	o.Logger = slog.New(slog.DiscardHandler)
	// Requests take a while, as over a network. Without a delay candidates would
	// never write at the same time.
	wire := func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
		if s.h.Slow {
			return send(ctx)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
		}
		r, err := send(ctx)
		return r, err
	}
	join := func(o elector.Options) *candidate {
		c := el.joinOn(handles[len(el.candidates)%len(handles)], o)
		c.faults.Always(wire)
		return c
	}
	steady := s.observable() // the first leader must not lose its lease on a slow machine
	steady.Logger = o.Logger
	first := join(steady)
	l := first.lead()
	ctx, cancel := context.WithCancel(s.context())
	type winner struct {
		c   *candidate
		l   *elector.Lease
		err error
	}
	winners := make(chan winner, n)
	for range n - 1 {
		c := join(o)
		go func() {
			l, err := c.Campaign(ctx)
			winners <- winner{c, l, err}
		}()
	}
	writes := func() (sum int) {
		for _, c := range el.candidates {
			sum += c.writes.acquiring()
		}
		return sum
	}
	reads := func() (sum int) {
		for _, c := range el.candidates {
			sum += c.faults.Count("load")
		}
		return sum
	}
	led := map[*candidate]bool{}
	// A leader that a slow machine costs its lease need not have been seen by all.
	saw := func(leader winner) {
		s.Helper()
		led[leader.c] = true
		for _, c := range el.candidates {
			if !led[c] {
				c.events.await(s, 0, "a waiter sees who leads", func(e event) bool {
					return e.what == "observed" && e.leader.ID == leader.c.ID() || leader.l.Check() != nil
				})
			}
		}
	}
	leader := winner{c: first, l: l}
	saw(leader)
	idle, start := reads(), time.Now()
	first.renewals(4)
	if w := writes() - 1; w != 0 {
		s.Errorf("waiters write nothing while a candidate leads: %d waiters wrote %d times", n-1, w)
	}
	// How many waiters may bid, or write in a takeover, at the same time: a quarter,
	// or half of a small number, where chance has more weight.
	some := max(n/4, 10)
	// Two for each interval, averaged over ten, where nothing is pushed. A slow
	// machine renews later than it reads.
	every := max(steady.RenewEvery, steady.TTL/20)
	most := (n - 1) * (4 + int(3*time.Since(start)/every))
	if handles[0].Describe().PushesRenewals {
		most = n - 1 + some // a bid takes a read
	}
	if r := reads() - idle; r > most {
		s.Errorf("waiters read at most twice in a renewal interval, and seldom where changes are pushed: %d waiters read %d times in %v, more than %d", n-1, r, time.Since(start), most)
	}
	s.must(l.Check(), "the leader's lease")

	waiters := n - 1
	// few is a takeover in which few waiters write. A machine that stalls when they
	// wake delays all of them alike, so one takeover of three must pass.
	few := func(what string, leave func()) {
		s.Helper()
		var wrote []int
		for range 3 {
			before := writes()
			leave()
			leader = wait(s, winners, "one of the waiters leads after "+what)
			s.must(leader.err, "campaigning")
			waiters--
			saw(leader)
			w := writes() - before
			if w <= some {
				return
			}
			wrote = append(wrote, w)
		}
		s.Errorf("few waiters write in a takeover: after %s %d waiters wrote %v times", what, waiters+1, wrote)
	}
	few("a release", func() { leader.l.Release(s.context()) })
	var crashed winner
	few("a crash", func() { crashed = leader; crashed.c.crash() })
	s.is(crashed.l.Check(), elector.ErrLost, "Check of a crashed leader")
	crashed.c.cutOff()

	cancel()
	for range waiters {
		if w := wait(s, winners, "every campaign ends with its context"); w.err == nil {
			w.l.Release(s.context())
		}
	}
}

// many/elections: many successive leaders in different processes.
func manyElections(s *suite) {
	el := s.election("")
	o := s.long()
	o.Logger = slog.New(slog.DiscardHandler)
	candidates := []*candidate{el.join(o), el.join(o), el.join(o)}
	n := s.rounds(10_000, 100)
	var last *elector.Lease
	for i := range n {
		c, next := candidates[i%3], candidates[(i+1)%3]
		l, err := c.TryCampaign(s.T.Context())
		s.must(err, "election %d", i)
		if last != nil && (l.Token() <= last.Token() || last.Check() == nil) {
			s.Fatalf("election %d has token %d after token %d, whose Check returned %v", i, l.Token(), last.Token(), last.Check())
		}
		if i%50 == 0 {
			_, err := next.TryCampaign(s.T.Context())
			s.is(err, elector.ErrHeld, "TryCampaign while another candidate leads")
		}
		s.must(l.Check(), "election %d", i)
		s.must(l.Release(s.T.Context()), "election %d", i)
		last = l
	}
	if el.acquisitions() != n {
		s.Errorf("the history has %d acquisitions, and there were %d", el.acquisitions(), n)
	}
}

// many/names: many elections on one handle do not affect each other.
func manyNames(s *suite) {
	b := s.open()
	n := s.rounds(1000, 100)
	o := s.brisk()
	o.RenewEvery = 2 * time.Second
	o.RequestTimeout = o.RenewEvery
	o.Logger = slog.New(slog.DiscardHandler)
	var leaders []*candidate
	var leases []*elector.Lease
	few := 0
	for i := range n {
		o.Value = fmt.Sprint(i)
		c := s.election(fmt.Sprintf("-%d", i)).joinOn(b, o)
		leaders, leases = append(leaders, c), append(leases, c.lead())
		if i == n/10 {
			few = descriptors()
		}
	}
	if all := descriptors(); all > few+16 {
		s.Errorf("the number of connections does not grow with the elections on one handle: %d descriptors for %d elections, %d for %d", all, n, few, n/10)
	}
	leaders[n/2].el.overwrite(s.open(), usurper)
	wait(s, leases[n/2].Context().Done(), "a leader whose record was replaced loses its lease")
	for i, c := range leaders {
		if i == n/2 {
			s.is(leases[i].Check(), elector.ErrLost, "Check of the lease that was lost")
			continue
		}
		c.await(0, "renewed", "each lease is renewed")
		s.must(leases[i].Check(), "lease %d after another one was lost", i)
		r := c.el.record(b)
		if r.Holder != c.ID() || r.Value != fmt.Sprint(i) || r.Token != uint64(leases[i].Token()) {
			s.Fatalf("elections on one handle do not affect each other: election %d has the record %v", i, r)
		}
	}
}
