package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/partition"
)

// A fleet is the processes of a group.
type fleet struct {
	ctx        context.Context
	url, name  string
	partitions int
	oneByOne   bool   // its processes see no batches
	beside     string // what it is; nothing is checked then
	counts     *counts
	all        []*process // that share the partitions, or are about to
	idle       float64    // requests a second at rest
	failed     []error

	mutex  sync.Mutex
	owners map[int]*process // of partitions
	owned  map[*process]int
	begun  int       // leases
	first  time.Time // when the first lease of a step began or ended
}

func newFleet(ctx context.Context, url, name string, partitions int) *fleet {
	return &fleet{ctx: ctx, url: url, name: name, partitions: partitions, counts: &counts{}, owners: make(map[int]*process, partitions), owned: map[*process]int{}}
}

// A cost is what a step takes.
type cost struct {
	took, moving time.Duration // from the change, and from the first move, until the shares are even
	moves        int
	requests     float64
}

// A process is a member.
type process struct {
	id    string
	group *partition.Group
	meter *meter
	stop  context.CancelFunc
	done  chan error
}

func (f *fleet) join(id string) (*process, error) {
	b, err := backends.Open(f.ctx, f.url)
	if err != nil {
		return nil, err
	}
	p := &process{id: id, meter: &meter{Backend: b, group: f.name, counts: f.counts, oneByOne: f.oneByOne}, done: make(chan error, 1)}
	p.group, err = partition.New(p.meter, f.name, &partition.Options{Partitions: f.partitions, Elector: elector.Options{ID: id, TTL: ttl, Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	var ctx context.Context
	ctx, p.stop = context.WithCancel(f.ctx)
	go func() {
		err := p.group.Run(ctx, func(ctx context.Context, l *partition.Lease) error {
			f.began(p, l.Partition())
			<-ctx.Done()
			f.ended(p, l.Partition())
			return nil
		})
		p.done <- errors.Join(err, p.group.Close(), b.Close())
	}()
	return p, nil
}

func (f *fleet) began(p *process, n int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.begun++
	f.note()
	f.owners[n] = p
	f.owned[p]++
}

func (f *fleet) ended(p *process, n int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.owned[p]--
	if !p.meter.cut.Load() {
		f.note()
	}
	if f.owners[n] == p {
		delete(f.owners, n)
	}
}

// note notes the first move of a step.
func (f *fleet) note() {
	if f.first.IsZero() {
		f.first = time.Now()
	}
}

// shared waits until the processes of the fleet own all partitions, evenly.
func (f *fleet) shared() error {
	all := f.all
	even := func() bool {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		sum := 0
		for _, p := range all {
			n := f.owned[p]
			if n != f.partitions/len(all) && n != (f.partitions-1)/len(all)+1 {
				return false
			}
			sum += n
		}
		return sum == f.partitions && len(f.owners) == f.partitions
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !even() {
		select {
		case <-tick.C:
		case <-f.ctx.Done():
			return fmt.Errorf("the shares are not even: %w", f.ctx.Err())
		}
	}
	return nil
}

// run makes a step and prints what it costs. It checks the moves, and the requests where
// the store takes batches. What the members do all the time is not the step's.
func (f *fleet) run(s step) (c cost, err error) {
	begun, before, parts := f.begin(), f.counts.total(), f.counts.each()
	start := time.Now()
	if err = s.do(); err == nil {
		err = f.shared()
	}
	if err != nil {
		return c, fmt.Errorf("%s: %w", s.what, err)
	}
	f.mutex.Lock()
	c = cost{took: time.Since(start), moving: time.Since(f.first), moves: f.begun - begun}
	f.mutex.Unlock()
	c.requests = float64(f.counts.total()-before) - f.idle*c.took.Seconds()
	verdict := ""
	if c.moves != s.moves && f.beside == "" {
		verdict += fmt.Sprintf("  MOVES: least possible %d", s.moves)
		f.failed = append(f.failed, fmt.Errorf("%s: %d moves, and the least possible is %d", s.what, c.moves, s.moves))
	}
	if most := 5*float64(c.moves)/100 + 50*float64(s.times); f.batches() && f.beside == "" && c.requests > most {
		verdict += fmt.Sprintf("  OVER: at most %.0f requests", most)
		f.failed = append(f.failed, fmt.Errorf("%s: %.0f requests for %d moves; at most %.0f", s.what, c.requests, c.moves, most))
	}
	fmt.Printf("%-40s %7.1f s, moving %6.2f s %7d moves %7.0f requests (in all %v)%s\n", f.beside+s.what, c.took.Seconds(), c.moving.Seconds(), c.moves, c.requests, f.counts.since(parts), verdict)
	return c, nil
}

// begin forgets the first move of the last step, and returns how many leases have begun.
func (f *fleet) begin() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.first = time.Time{}
	return f.begun
}

// batches reports whether the store takes many reads and writes in a request.
func (f *fleet) batches() bool {
	d := f.all[0].meter.Describe()
	return d.MaxLoads > 1 && d.MaxSwaps > 1
}
