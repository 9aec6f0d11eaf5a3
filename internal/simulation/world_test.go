package simulation

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

const election = "simulated"

// A world is one simulation: a store, nodes and the checker.
type world struct {
	*testing.T
	seed     uint64
	watch    watchKind
	store    *memory.Store
	others   *memory.Store // of other elections
	check    *checker
	history  *history
	mutex    sync.Mutex
	nodes    []*node       // their number grows while the world lasts: see all
	over     bool          // no node joins any more
	reported atomic.Bool   // a broken rule
	alone    bool          // only the replays judge
	random   bool          // what happens is drawn
	lasted   time.Duration // how much time was simulated
}

// simulate runs one simulation in a bubble of its own, in which time passes
// when everybody waits. It returns the world for a look at what happened.
func simulate(t *testing.T, seed uint64, watch watchKind, run func(w *world)) *world {
	t.Helper()
	var w *world
	synctest.Test(t, func(t *testing.T) {
		w = &world{T: t, seed: seed, watch: watch, alone: *aloneFlag, store: memory.NewStore(), others: memory.NewStore(), history: &history{start: time.Now()}}
		w.check = newChecker(w)
		defer w.end()
		run(w)
	})
	return w
}

// broken reports a rule that does not hold, with the history so far.
func (w *world) broken(rule, format string, args ...any) {
	w.Helper()
	if w.alone && rule != bySpecification {
		return
	}
	if !w.reported.CompareAndSwap(false, true) {
		return // what follows from it shows nothing new
	}
	w.Errorf("seed %d (%v): %s: %s\nreplay: go test ./internal/simulation -run '%s' -seed=%d\n%s", w.seed, w.watch,
		rule, fmt.Sprintf(format, args...), w.Name(), w.seed, w.history.tail(70))
}

// assert fails the case at once if a rule does not hold.
func (w *world) assert(ok bool, rule string, args ...any) {
	w.Helper()
	if !ok && !w.alone {
		w.broken(fmt.Sprintf(rule, args...), "it does not hold at %v", w.now())
		w.FailNow()
	}
}

func (w *world) now() time.Duration { return time.Since(w.history.start) }

// pass lets true time go by.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// passUntil lets true time go by until some instant since the start.
func (w *world) passUntil(at time.Duration) { w.pass(at - w.now()) }

// end lets everything run out.
func (w *world) end() {
	w.check.stop()
	w.history.close()
	w.lasted = w.now()
	w.mutex.Lock()
	w.over = true
	w.mutex.Unlock()
	for _, n := range w.all() {
		n.retire()
	}
	for _, n := range w.all() {
		n.elector.Close()
		for _, e := range n.others {
			e.Close()
		}
	}
	time.Sleep(time.Hour) // for requests that are still on their way
}

// all returns the nodes that there are now.
func (w *world) all() []*node {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return slices.Clip(w.nodes)
}

// record is what the store holds.
func (w *world) record() backends.Record {
	r, err := w.store.Handle().Load(context.Background(), election)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

var kinds = []watchKind{pushesAll, pushesSome, polled}

// everyKind runs a simulation on each kind of store.
func everyKind(t *testing.T, run func(w *world)) {
	t.Helper()
	for _, k := range kinds {
		simulate(t, *seedFlag, k, run)
	}
}
