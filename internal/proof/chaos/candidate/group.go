package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/partition"
)

// A group is this process's part in a group. Each partition is an election in the
// history; what happens to the process is told under the group's name.
type group struct {
	*partition.Group
	c       *candidate
	tenures []tenure
	asked   atomic.Uint64 // the partition whose owner was read last
}

// A tenure is what this process reports about one partition.
type tenure struct {
	history.Recorder
	mutex sync.Mutex
	lease lease // nil unless a worker has one
}

// join connects to the store.
func (c *candidate) join(ctx context.Context) (office, error) {
	g := &group{c: c, tenures: make([]tenure, c.task.Partitions)}
	for i := range g.tenures {
		g.tenures[i].Election = fmt.Sprintf("%s.p.%d", c.task.Election, i)
		g.tenures[i].Candidate, g.tenures[i].Tell = c.task.Candidate, c.recorder.Tell
	}
	o := &partition.Options{Partitions: c.task.Partitions, Elector: c.options()}
	o.Elector.Trace = &elector.Trace{Request: c.recorder.Request, Renewed: func(context.Context, elector.LeaseInfo) { g.renewed() }}
	var err error
	g.Group, err = partition.Join(ctx, c.task.URL, c.task.Election, o)
	return g, err
}

func (g *group) run(ctx, late context.Context) error {
	return g.Run(ctx, func(ctx context.Context, l *partition.Lease) error {
		t := &g.tenures[l.Partition()]
		t.begin(l)
		defer t.end(l)
		g.c.work(ctx, late, &t.Recorder, l)
		g.c.finish(late, &t.Recorder, l)
		return nil
	})
}

// longestDrain is for how long a worker goes on that was told to stop, in TTLs, at most:
// much less than ReleaseTimeout.
const longestDrain = 0.3

// finish does what a worker has begun, while its lease stays valid.
func (c *candidate) finish(late context.Context, r *history.Recorder, l lease) {
	due := time.Now().Add(time.Duration(rand.Float64() * longestDrain * float64(c.task.TTL)))
	for time.Now().Before(due) && c.writes(late, r, l) {
		pause(context.Background(), c.task.WriteEvery/4)
	}
}

// renewed tells that all leases were renewed, with that of the seat.
func (g *group) renewed() {
	for i := range g.tenures {
		t := &g.tenures[i]
		t.mutex.Lock()
		if t.lease != nil {
			t.Look(history.Renewed, t.lease, 0)
		}
		t.mutex.Unlock()
	}
}

func (t *tenure) begin(l lease) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.lease = l
}

// end tells that the lease is over: it is once the worker has returned.
func (t *tenure) end(l lease) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.lease == l {
		t.lease = nil
	}
	err := l.Check()
	if err == nil {
		err = fmt.Errorf("%w: the worker returns", elector.ErrResigned)
	}
	t.Over(l.Token(), err)
}

// read reads the owner of one partition after the other.
func (g *group) read(ctx context.Context) {
	i := int(g.asked.Add(1)) % len(g.tenures)
	before := history.BootTime()
	if o, err := g.Owner(ctx, i); err == nil {
		g.tenures[i].Event(history.Event{Kind: history.Observed, Before: before, Token: o.Token, Holder: o.ID})
	}
}
