package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/partition"
)

var (
	processes = flag.Int("processes", 20, "how many processes are simulated")
	owned     = flag.Int("owned", 20, "how many partitions there are for each of them")
	wave      = flag.Int("wave", 100, "how many processes start in a second")
	groups    = flag.Int("groups", 20, "in how many groups, one after the other, a deploy replaces the processes")
)

// simulated is a large group on a simulated clock.
type simulated struct {
	*testing.T
	store      *memory.Store
	partitions int
	counts     counts
	bytes      atomic.Int64
	members    sync.WaitGroup
	all        []*member
	joined     int

	mutex sync.Mutex
	owned map[*member]int
	moves int
}

// A member is a simulated process.
type member struct {
	meter *meter
	stop  context.CancelFunc
}

// A large group on a store in memory and a clock that is simulated: its requests and
// bytes, its moves, and how long it takes to settle. The store answers after answer, takes
// batches of a hundred and pushes the plan.
func TestSimulated(t *testing.T) {
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		f := &simulated{T: t, store: memory.NewStore(), partitions: *processes * *owned, owned: map[*member]int{}}
		f.Logf("%d processes with %d partitions, TTL %v, each answer after %v", *processes, f.partitions, ttl, answer)
		f.programme()
	})
	t.Logf("it took %.0f s of this machine", time.Since(began).Seconds())
}

func (f *simulated) programme() {
	f.step(fmt.Sprintf("all start, %d in a second", *wave), f.partitions, func() {
		for i := range *processes {
			if i > 0 && i%*wave == 0 {
				time.Sleep(time.Second)
			}
			f.join()
		}
	})
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f.Logf("memory of all processes: %d MB, of which stacks %d MB", (m.HeapAlloc+m.StackInuse)>>20, m.StackInuse>>20)
	f.rests()
	f.step("one joins", f.partitions/(*processes+1), func() { f.join() })
	f.step("it leaves", f.partitions/(*processes+1), func() { f.leave(len(f.all) - 1) })
	f.step("one crashes", f.partitions / *processes, func() {
		f.all[0].meter.cut.Store(true)
		f.leave(0)
	})
	f.step("one comes in its place", f.partitions / *processes, func() { f.join() })
	var longest, sum time.Duration
	moves, before, bytes := 0, f.counts.each(), f.bytes.Load()
	for range *groups {
		n := *processes / *groups
		took, moved := f.change(func() {
			for range n {
				f.leave(0)
			}
			for range n {
				f.join()
			}
		})
		longest, sum, moves = max(longest, took), sum+took, moves+moved
	}
	f.Logf("a deploy, %d processes at a time: %d moves, least possible %d; each group settles in %.1f s, the slowest in %.1f s; %v; %d KB", *processes / *groups, moves, f.partitions, sum.Seconds()/float64(*groups), longest.Seconds(), f.counts.since(before), (f.bytes.Load()-bytes)>>10)
	if moves != f.partitions {
		f.Errorf("a deploy: %d moves, and the least possible is %d", moves, f.partitions)
	}
	for len(f.all) > 0 {
		f.leave(0)
	}
	f.members.Wait()
	time.Sleep(time.Hour) // for what is on its way
}

// join starts a process.
func (f *simulated) join() {
	f.joined++
	m := &member{meter: &meter{Backend: &wire{f.store.Handle(), &f.bytes}, group: "orders", counts: &f.counts}}
	g, err := partition.New(m.meter, "orders", &partition.Options{Partitions: f.partitions, Elector: elector.Options{ID: fmt.Sprintf("host-%d", f.joined), TTL: ttl, Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		f.Fatal(err)
	}
	var ctx context.Context
	ctx, m.stop = context.WithCancel(f.Context())
	f.all = append(f.all, m)
	f.members.Go(func() {
		if err := g.Run(ctx, func(ctx context.Context, l *partition.Lease) error { return f.work(ctx, m) }); err != nil {
			f.Error(err)
		}
		g.Close()
	})
}

// leave stops a process.
func (f *simulated) leave(i int) {
	f.all[i].stop()
	f.all = append(f.all[:i:i], f.all[i+1:]...)
}

func (f *simulated) work(ctx context.Context, m *member) error {
	f.mutex.Lock()
	f.owned[m]++
	f.moves++
	f.mutex.Unlock()
	<-ctx.Done()
	f.mutex.Lock()
	f.owned[m]--
	f.mutex.Unlock()
	return nil
}

// step makes a change, and reports what it costs.
func (f *simulated) step(what string, least int, do func()) {
	before, bytes := f.counts.each(), f.bytes.Load()
	took, moves := f.change(do)
	f.Logf("%s: settles in %.1f s, %d moves, least possible %d; %v; %d KB", what, took.Seconds(), moves, least, f.counts.since(before), (f.bytes.Load()-bytes)>>10)
	if moves != least {
		f.Errorf("%s: %d moves, and the least possible is %d", what, moves, least)
	}
}

// change makes a change, and waits until the shares are even.
func (f *simulated) change(do func()) (took time.Duration, moves int) {
	moves = f.moved()
	start := time.Now()
	do()
	for !f.even() {
		if time.Since(start) > time.Hour {
			f.Fatal("the shares are not even after an hour")
		}
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(start), f.moved() - moves
}

func (f *simulated) moved() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.moves
}

func (f *simulated) even() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	sum := 0
	for _, m := range f.all {
		n := f.owned[m]
		if n != f.partitions/len(f.all) && n != (f.partitions-1)/len(f.all)+1 {
			return false
		}
		sum += n
	}
	return sum == f.partitions
}

// rests reports what the members do while nothing changes, for the time of all audits.
func (f *simulated) rests() {
	time.Sleep(time.Minute) // what is left of the start
	const rest = 6 * time.Minute
	before, bytes := f.counts.each(), f.bytes.Load()
	time.Sleep(rest)
	after := f.counts.each()
	each := func(n int64) float64 { return float64(n) / rest.Seconds() }
	sent := each(f.bytes.Load() - bytes)
	f.Logf("at rest: %.1f renewals and %.1f reads a second; %.1f KB a second, %.0f bytes a second for each process", each(after[0]-before[0]), each(after[2]-before[2]), sent/1024, sent/float64(*processes))
}
