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

// watch/subscribe: Watch reports the present record, and then the last state
// after every change, by whichever handle; no change gets lost between its
// reading and its subscribing, and none goes back.
func watchSubscribe(s *suite) {
	b, ok := backends.AsWatcher(s.open())
	if !ok {
		s.notApplicable("the store cannot tell of changes")
		return
	}
	writer := s.open()
	for i := range s.rounds(50, 5) {
		name := fmt.Sprintf("%s-%d", s.name, i)
		w := s.watch(b, name)
		made := s.swap(writer, name, backends.Record{}, acquisition("first", 1)) // while it subscribes
		const rule = "no change gets lost between Watch's reading and its subscribing"
		w.until(rule, is(made))
		made = s.swap(writer, name, made, acquisition("second", 2)) // as soon as it has reported
		w.until(rule, is(made))
		w.stop()
		w.goesForward()
	}

	w := s.watch(b, s.name)
	w.until("Watch reports at first what is there, also if nothing is", isZero)

	first := acquisition("first", 1)
	valued := renewal(first)
	valued.Value = "a new value"
	extended := valued // by another process, which leaves the attempt as it is
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
		w.until("Watch reports the last state after every change, by another handle too", is(last))
	}
	late := s.watch(b, s.name)
	late.until("Watch reports at first what is there", is(last))
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

// watchOthers deletes and spoils a record behind the backend's back.
func (s *suite) watchOthers(b backends.Watcher, last backends.Record) {
	w := s.watch(b, s.name)
	w.until("Watch reports at first what is there", is(last))
	s.h.Raw.Delete(s, s.name)
	w.until("a Watch that pushes every change reports a deletion", isZero)
	last = s.swap(b, s.name, backends.Record{}, acquisition("again", last.Token+1))
	w.until("a Watch that pushes every change reports a record made anew", is(last))
	w.stop()
	if s.h.Raw.Spoiled != nil {
		return
	}
	w = s.watch(b, s.name)
	w.until("Watch reports at first what is there", is(last))
	s.h.Raw.Put(s, s.name, []byte("not a record"))
	const rule = "Watch ends with ErrForeignRecord when the record is spoiled"
	if err := wait(s, w.result, rule); !errors.Is(err, backends.ErrForeignRecord) {
		s.Errorf("%s: it ends with %v", rule, err)
	}
}

// watch/many: many Watches on one handle, several of one election among them,
// each report their own election, and go on when others end.
func watchMany(s *suite) {
	b, ok := backends.AsWatcher(s.open())
	if !ok {
		s.notApplicable("the store cannot tell of changes")
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
	write(2, running, "a Watch goes on when others on the same handle, of the same election too, have ended")
	for _, w := range running {
		w.stop()
	}
	for i, w := range all {
		for _, r := range w.states {
			if r.Exists() && r.Holder != name(i%elections) {
				s.Errorf("a Watch reports no other election's record: that of %q reports %+v", name(i%elections), r)
			}
		}
	}
}

// watch/end: Watch returns when its context or its handle ends and leaves
// nothing behind, and the handle works on after the former.
func watchEnd(s *suite) {
	b, ok := backends.AsWatcher(s.open())
	if !ok {
		s.notApplicable("the store cannot tell of changes")
		return
	}
	once := func() {
		w := s.watch(b, s.name)
		w.until("Watch reports at first what is there", isZero)
		w.stop()
	}
	once() // what is opened only once is open now
	s.settles(s.rounds(200, 50), "nothing of a Watch is left when it has returned", once)
	s.shows([]backends.Backend{b}, s.name, backends.Record{}, "a handle works on after its Watches have ended")

	closing, ok := backends.AsWatcher(s.open())
	if !ok {
		s.Fatal("every handle on a store is a Watcher, or none is")
	}
	w := s.watch(closing, s.name)
	w.until("Watch reports at first what is there", isZero)
	s.must(closing.Close(), "Close while a Watch runs")
	const rule = "Watch returns the reason when its handle is closed"
	if err := wait(s, w.result, rule); err == nil {
		s.Errorf("%s: it returns no error", rule)
	}
}

// settles calls something n times and fails the case if it leaves goroutines
// behind each time. Others may come and go meanwhile.
func (s *suite) settles(n int, rule string, call func()) {
	s.Helper()
	before := runtime.NumGoroutine()
	for range n {
		call()
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for overdue := time.After(watchdog); runtime.NumGoroutine() >= before+n/2; {
		select {
		case <-tick.C:
		case <-overdue:
			s.Fatalf("%s: after %d times there are %d goroutines, before there were %d", rule, n, runtime.NumGoroutine(), before)
		}
	}
}

// watchRefuses makes a Watch that must end with an error, and report nothing.
func (s *suite) watchRefuses(b backends.Watcher, name string, want error) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	var reports atomic.Int32
	rule := fmt.Sprintf("Watch of %.60q ends at once with: %v", name, want)
	err := s.together(1, rule, func(int) error {
		return b.Watch(ctx, name, func(backends.Record) { reports.Add(1); cancel() })
	})[0]
	if !errors.Is(err, want) || reports.Load() > 0 {
		s.Errorf("%s: it reports %d records and ends with %v", rule, reports.Load(), err)
	}
}

// A watched is a Watch that runs, with what it has reported.
type watched struct {
	s      *suite
	end    context.CancelFunc
	result chan error
	news   chan struct{} // holds one value when something was reported

	calls atomic.Int32 // of changed, at this moment
	over  atomic.Bool  // Watch has returned

	mutex  sync.Mutex
	states []backends.Record
	looked int // how many of them until has looked at
	broken error
}

// watch starts a Watch, ended with the case at the latest.
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
		w.fail(errors.New("changed is called by one goroutine at a time: it was called while it ran"))
	}
	defer w.calls.Add(-1)
	if w.over.Load() {
		w.fail(fmt.Errorf("nothing of a Watch is left when it has returned: it reports %+v afterwards", r))
	}
	runtime.Gosched() // let another one come in, if there is one
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

// until waits for a report that was not looked at.
func (w *watched) until(rule string, wanted func(backends.Record) bool) {
	w.s.Helper()
	overdue := time.After(watchdog)
	for !w.has(wanted) {
		select {
		case <-w.news:
		case err := <-w.result:
			w.s.Fatalf("Watch runs until its context ends: it returned %v", err)
		case <-overdue:
			w.mutex.Lock()
			defer w.mutex.Unlock()
			w.s.Fatalf("nothing within %v: %s; it has reported %+v", watchdog, rule, w.states)
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

// goesForward fails the case if an older state was reported after a newer one,
// of a record that was not deleted. The Watch must have ended.
func (w *watched) goesForward() {
	w.s.Helper()
	var before backends.Record
	for _, r := range w.states {
		if r.Token < before.Token || r.Token == before.Token && r.Attempt.Sequence < before.Attempt.Sequence {
			w.s.Fatalf("Watch reports newer states, never an older one again: %+v after %+v", r, before)
		}
		before = r
	}
}
