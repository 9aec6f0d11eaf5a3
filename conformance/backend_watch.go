package conformance

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector/backends"
)

// noWatch is why the cases of Watch do not apply.
const noWatch = "the backend is not a Watcher"

// watch/subscribe: Watch reports the present record first, and then the last
// state after every change by any handle. It loses no change between reading and
// subscribing, and never reports an older state after a newer one.
func watchSubscribe(s *suite) {
	b, ok := backends.AsWatcher(s.open())
	if !ok {
		s.notApplicable(noWatch)
		return
	}
	s.subscribes(b)
}

// subscribes checks the rule of watch/subscribe.
func (s *suite) subscribes(b backends.Watcher) {
	writer := s.open()
	for i := range s.rounds(50, 5) {
		name := fmt.Sprintf("%s-%d", s.name, i)
		w := s.watch(b, name)
		made := s.swap(writer, name, backends.Record{}, acquisition("first", 1)) // while it subscribes
		const rule = "Watch loses no change between reading and subscribing: subscribe first, then read"
		w.until(rule, is(made))
		made = s.swap(writer, name, made, acquisition("second", 2)) // as soon as it has reported
		w.until(rule, is(made))
		w.stop()
		w.goesForward()
	}

	w := s.watch(b, s.name)
	w.until("Watch reports the present record first, even if there is none", isZero)

	first := acquisition("first", 1)
	valued := renewal(first)
	valued.Value = "a new value"
	extended := valued // by another process, which does not change the attempt
	extended.Extensions = `{"t_request":"1"}`
	second := acquisition("second", 2)
	states := []backends.Record{first, valued, extended, second, vacancy(second), acquisition("third", 3)}
	if b.Describe().PushesRenewals {
		for range 3 {
			states = append(states, renewal(states[len(states)-1]))
		}
	}
	var last backends.Record
	for _, next := range states {
		last = s.swap(writer, s.name, last, next)
		w.until("Watch reports the last state after every change, also by another handle", is(last))
	}
	late := s.watch(b, s.name)
	late.until("Watch reports the present record first", is(last))
	late.stop()
	for i := range s.rounds(100, 10) { // faster than they are reported
		last = s.swap(writer, s.name, last, acquisition("next", uint64(i+4)))
	}
	w.until("Watch may skip states but not the last one", is(last))
	w.stop()
	w.goesForward()
	if s.h.Raw != nil && b.Describe().PushesRenewals {
		s.watchOthers(b, last)
	}
}

// watchOthers deletes and damages a record without the backend.
func (s *suite) watchOthers(b backends.Watcher, last backends.Record) {
	w := s.watch(b, s.name)
	w.until("Watch reports the present record first", is(last))
	s.h.Raw.Delete(s, s.name)
	w.until("a Watch that pushes every change reports a deletion", isZero)
	last = s.swap(b, s.name, backends.Record{}, acquisition("again", last.Token+1))
	w.until("a Watch that pushes every change reports a record that was created anew", is(last))
	w.stop()
	if s.h.Raw.Spoiled != nil {
		return
	}
	w = s.watch(b, s.name)
	w.until("Watch reports the present record first", is(last))
	s.h.Raw.Put(s, s.name, []byte("not a record"))
	const rule = "Watch ends with ErrForeignRecord when the content is no longer a record"
	if err := wait(s, w.result, rule); !errors.Is(err, backends.ErrForeignRecord) {
		s.Errorf("%s: it ended with %v", rule, err)
	}
}

// watch/many: many Watches on one handle, several on the same election, each
// report their own election, and continue when others end.
func watchMany(s *suite) {
	b, ok := backends.AsWatcher(s.open())
	if !ok {
		s.notApplicable(noWatch)
		return
	}
	writer := s.open()
	const elections, each = 10, 4
	name := func(i int) string { return fmt.Sprintf("%s-%d", s.name, i) }
	var all []*watched
	for i := range elections * each {
		all = append(all, s.watch(b, name(i%elections)))
	}
	last := make([]backends.Record, elections)
	write := func(token uint64, running []*watched, rule string) {
		for i := range last {
			last[i] = s.swap(writer, name(i), last[i], acquisition(name(i), token))
		}
		for i, w := range running {
			w.until(rule, is(last[i%elections]))
		}
	}
	write(1, all, "each Watch reports its own election")
	running, ended := all[:2*elections], all[2*elections:]
	for _, w := range ended {
		w.stop()
	}
	write(2, running, "a Watch continues when others on the same handle, also on the same election, have ended")
	for _, w := range running {
		w.stop()
	}
	for i, w := range all {
		for _, r := range w.states {
			if r.Exists() && r.Holder != name(i%elections) {
				s.Errorf("a Watch reports no other election's record: that of %q reported %v", name(i%elections), r)
			}
		}
	}
}

// watch/end: Watch returns when its context ends or its handle is closed, and
// leaves nothing behind. After the former the handle still works.
func watchEnd(s *suite) {
	b, ok := backends.AsWatcher(s.open())
	if !ok {
		s.notApplicable(noWatch)
		return
	}
	closing, ok := backends.AsWatcher(s.open())
	if !ok {
		s.Fatal("either every handle on a store is a Watcher or none is")
	}
	s.endsWatches(b, closing)
}

// endsWatches checks the rule of watch/end. It closes the second handle.
func (s *suite) endsWatches(b, closing backends.Watcher) {
	once := func() {
		w := s.watch(b, s.name)
		w.until("Watch reports the present record first", isZero)
		w.stop()
	}
	once() // opens what is opened only once
	s.settles(s.rounds(200, 50), "a Watch that has returned leaves nothing behind", once)
	s.shows([]backends.Backend{b}, s.name, backends.Record{}, "a handle works after its Watches have ended")

	w := s.watch(closing, s.name)
	w.until("Watch reports the present record first", isZero)
	s.must(s.together(1, "Close returns while a Watch runs", func(int) error { return closing.Close() })[0], "Close while a Watch runs")
	const rule = "Watch returns an error when its handle is closed"
	if err := wait(s, w.result, rule); err == nil {
		s.Errorf("%s: it returned none", rule)
	}
}

// settles makes a call n times and fails the case if each leaves a goroutine
// behind. Other goroutines may start and end meanwhile.
func (s *suite) settles(n int, rule string, call func()) {
	s.Helper()
	before := runtime.NumGoroutine()
	for range n {
		call()
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for overdue := time.After(s.limit()); runtime.NumGoroutine() >= before+n/2; {
		select {
		case <-tick.C:
		case <-overdue:
			s.Fatalf("%s: after %d calls there are %d goroutines, and before them there were %d", rule, n, runtime.NumGoroutine(), before)
		}
	}
}

// watchRefuses starts a Watch that must end with an error and report nothing.
func (s *suite) watchRefuses(b backends.Watcher, name string, want error) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	var reports atomic.Int32
	rule := fmt.Sprintf("Watch of %s ends immediately with: %v", quote(name), want)
	err := s.together(1, rule, func(int) error {
		return b.Watch(ctx, name, func(backends.Record) { reports.Add(1); cancel() })
	})[0]
	if !errors.Is(err, want) || reports.Load() > 0 {
		s.Errorf("%s: it reported %d records and ended with %v", rule, reports.Load(), err)
	}
}

// A watched is a Watch that runs, and what it has reported.
type watched struct {
	s      *suite
	end    context.CancelFunc
	result chan error
	news   chan struct{} // has a value after a report

	calls atomic.Int32 // of changed, now
	over  atomic.Bool  // Watch has returned

	mutex  sync.Mutex
	states []backends.Record
	looked int // how many of them until has seen
	broken error
}

// watch starts a Watch. It ends with the case, or before.
func (s *suite) watch(b backends.Watcher, name string) *watched {
	w := &watched{s: s, result: make(chan error, 1), news: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(s.Context())
	w.end = cancel
	go func() {
		err := calm(func() error { return b.Watch(ctx, name, w.changed) })
		w.over.Store(true)
		w.result <- err
	}()
	s.Cleanup(func() {
		cancel()
		w.mutex.Lock()
		defer w.mutex.Unlock()
		if w.broken != nil {
			s.Error(w.broken)
		}
	})
	return w
}

func (w *watched) changed(r backends.Record) {
	if w.calls.Add(1) > 1 {
		w.fail(errors.New("the rule is: Watch calls changed from one goroutine at a time: it was called while it ran"))
	}
	defer w.calls.Add(-1)
	if w.over.Load() {
		w.fail(errors.New(readable("a Watch that has returned leaves nothing behind: it reported %v afterwards", r)))
	}
	runtime.Gosched() // for a concurrent call, if there is one
	w.mutex.Lock()
	w.states = append(w.states, r)
	w.mutex.Unlock()
	select {
	case w.news <- struct{}{}:
	default:
	}
}

func (w *watched) fail(err error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.broken == nil {
		w.broken = err
	}
}

func is(want backends.Record) func(backends.Record) bool {
	return func(r backends.Record) bool { return r == want }
}

func isZero(r backends.Record) bool { return r == backends.Record{} }

// until waits for a report that it has not seen.
func (w *watched) until(rule string, wanted func(backends.Record) bool) {
	w.s.Helper()
	limit := w.s.limit()
	overdue := time.After(limit)
	for !w.has(wanted) {
		select {
		case <-w.news:
		case err := <-w.result:
			w.s.Fatalf("Watch runs until its context ends: it returned %v", err)
		case <-overdue:
			w.mutex.Lock()
			defer w.mutex.Unlock()
			w.s.first.wait()
			w.s.Fatalf("%s: this did not happen within %v; it has reported %v", rule, limit.Round(time.Second), w.states)
		}
	}
}

func (w *watched) has(wanted func(backends.Record) bool) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for w.looked < len(w.states) {
		w.looked++
		if wanted(w.states[w.looked-1]) {
			return true
		}
	}
	return false
}

// stop ends the Watch and waits for it.
func (w *watched) stop() {
	w.s.Helper()
	w.end()
	if err := wait(w.s, w.result, "Watch returns when its context ends"); errors.Is(err, errPanic) {
		w.s.Fatal(err)
	}
}

// goesForward fails the case if an older state of a record that was not deleted
// was reported after a newer one. The Watch must have ended.
func (w *watched) goesForward() {
	w.s.Helper()
	var before backends.Record
	for _, r := range w.states {
		if r.Token < before.Token || r.Token == before.Token && r.Attempt.Sequence < before.Attempt.Sequence {
			w.s.Fatalf("Watch never reports an older state after a newer one: it reported %v after %v", r, before)
		}
		before = r
	}
}
