package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/electortest"
	"github.com/elector-go/elector/internal/leak"
	"github.com/elector-go/elector/internal/proof/child"
	"github.com/elector-go/elector/internal/proof/stores"
)

func TestMain(m *testing.M) {
	var t task
	if is, err := child.Task(variable, &t); is {
		if err == nil {
			err = runChild(t)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	child.Prepare()
	leak.Main(m)
}

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := electortest.New(t, "scheduler", nil)
		runs := 0
		stop := s.Start(func(ctx context.Context) error {
			return run(ctx, s.Elector, "0 * * * * *", func(l *elector.Lease) {
				if l.Check() != nil || l.Token() == 0 {
					t.Error("the job has no lease")
				}
				runs++
			})
		})
		s.Win()
		time.Sleep(time.Hour + 30*time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if runs != 60 {
			t.Errorf("%d ticks ran in an hour", runs)
		}
	})
}

// ahead is how far the first process's clock is ahead of the last one's.
const ahead = 700 * time.Millisecond

// A process is a child, and what is known of its leadership.
type process struct {
	*child.Again
	led   []time.Time // since when
	until time.Time   // when it was told to stop, or killed
}

// A fleet is all processes, and what they have reported.
type fleet struct {
	t       *testing.T
	mutex   sync.Mutex
	changed chan struct{} // closed and replaced with each message
	all     []*process
	ready   int
	leader  *process
	latest  *process // to run a job under a lock
	runs    map[string]map[int64][]time.Time
	ran     map[string]map[int64]int
	refused map[string]map[int64][]string
}

func (f *fleet) start(url string, ahead time.Duration) *process {
	f.t.Helper()
	p := &process{}
	var err error
	p.Again, err = child.StartAgain(variable, task{url, ahead}, func(m message) { f.take(p, m) })
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(p.End)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.all = append(f.all, p)
	return p
}

func (f *fleet) take(p *process, m message) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	switch m.What {
	case "ready":
		f.ready++
	case "leads":
		f.leader = p
		p.led = append(p.led, m.At)
	case "run":
		f.runs[m.Kind][m.Tick] = append(f.runs[m.Kind][m.Tick], m.At)
		if m.Kind == byLocker {
			f.latest = p
		}
	case "ran":
		f.ran[m.Kind][m.Tick]++
	case "refused":
		if m.Kind == byElector { // it does not know the tick: any near
			for near := range int64(2 * jobs) {
				at := m.At.Unix() - jobs + near
				f.refused[m.Kind][at] = append(f.refused[m.Kind][at], m.Err)
			}
		} else {
			f.refused[m.Kind][m.Tick] = append(f.refused[m.Kind][m.Tick], m.Err)
		}
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// wait blocks until an event makes happened true.
func (f *fleet) wait(what string, happened func() bool) {
	f.t.Helper()
	late := time.NewTimer(2 * time.Minute)
	defer late.Stop()
	for {
		f.mutex.Lock()
		done, changed := happened(), f.changed
		f.mutex.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-late.C:
			f.t.Fatalf("not within two minutes: %s", what)
		}
	}
}

// over notes that a process does not lead any more.
func (f *fleet) over(p *process) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	p.until = time.Now()
}

// TestHundredTicks: ten jobs that run every ten seconds, one each second, in three
// processes whose clocks differ, once with an Elector and once with a Locker. In the
// middle the process that leads and runs a job is killed; later the next leader is
// stopped.
//
// No tick runs twice. With the Locker each runs. With the Elector a tick is missed only
// while no process leads.
func TestHundredTicks(t *testing.T) {
	const ticks, killAfter, stopAfter = 100, 40, 75
	store, err := stores.Start(t.Context(), "etcd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Stop(); err != nil {
			t.Error(err)
		}
	})
	f := &fleet{t: t, changed: make(chan struct{}), runs: map[string]map[int64][]time.Time{}, ran: map[string]map[int64]int{}, refused: map[string]map[int64][]string{}}
	for _, kind := range []string{byElector, byLocker} {
		f.runs[kind], f.ran[kind], f.refused[kind] = map[int64][]time.Time{}, map[int64]int{}, map[int64][]string{}
	}
	// The clock that is ahead strikes first, so this process locks every job too.
	first := f.start(store.URL, ahead)
	f.wait("the first process leads", func() bool { return f.leader == first })
	f.start(store.URL, 0)
	f.start(store.URL, 300*time.Millisecond)
	f.wait("all are ready", func() bool { return f.ready == 3 })
	from := time.Now().Unix() + 3
	reached := func(n int64) func() bool {
		return func() bool { return time.Now().Unix() >= from+n }
	}

	f.wait("the middle", reached(killAfter))
	f.mutex.Lock()
	f.latest = nil
	f.mutex.Unlock()
	f.wait("the leader runs a job", func() bool { return f.latest == first && f.leader == first })
	f.over(first)
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := first.until
	f.wait("another process leads", func() bool { return f.leader != first })
	f.wait("a planned stop", reached(stopAfter))
	second := f.leader
	f.over(second)
	second.End()
	f.wait("the last process leads", func() bool { return f.leader != second })
	f.wait("the last tick is over", reached(ticks+jobs))
	for _, p := range f.all {
		if p != first && p != second {
			f.over(p)
		}
		p.End()
	}

	for _, kind := range []string{byElector, byLocker} {
		f.judge(kind, from, ticks, killed, second.until)
	}
}

// judge counts the ticks of a scheduler.
func (f *fleet) judge(kind string, from, ticks int64, killed, stopped time.Time) {
	var once, unfinished, late int
	var missed []int64
	for tick := from; tick < from+ticks; tick++ {
		runs, at := f.runs[kind][tick], time.Unix(tick, 0)
		slices.SortFunc(runs, time.Time.Compare)
		switch {
		case len(runs) == 0:
			missed = append(missed, tick-from)
			if refused := f.refused[kind][tick]; len(refused) > 0 {
				f.t.Logf("%s: tick %d was refused: %s", kind, tick-from, refused[0])
			} else if p := f.covered(at); kind == byLocker || p != nil {
				f.t.Errorf("%s: tick %d did not run", kind, tick-from)
			}
		case len(runs) == 1:
			once++
		case runs[1].Before(at.Add(minHold - ahead)):
			f.t.Errorf("%s: tick %d ran %d times, at %v", kind, tick-from, len(runs), runs)
		default: // on a machine so slow that a timer was late by more than the minimum hold
			late++
		}
		if f.ran[kind][tick] < len(runs) {
			unfinished++
		}
	}
	since := func(t time.Time) float64 { return t.Sub(time.Unix(from, 0)).Seconds() }
	f.t.Logf("%s: of %d ticks %d ran once, %d of them killed under way; %d missed: %v; %d ran twice, later than promised for. A process was killed after %.1f s, another one stopped after %.1f s",
		kind, ticks, once, unfinished, len(missed), missed, late, since(killed), since(stopped))
}

// covered returns the process that led from well before a tick until after it.
func (f *fleet) covered(tick time.Time) *process {
	for _, p := range f.all {
		for i, since := range p.led {
			until := p.until
			if i+1 < len(p.led) {
				until = p.led[i+1].Add(-2 * ttl) // it lost that lease, some time before
			}
			if since.Before(tick.Add(-ahead-time.Second)) && until.After(tick.Add(2*time.Second)) {
				return p
			}
		}
	}
	return nil
}
