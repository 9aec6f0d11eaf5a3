package elector

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/rule"
	"github.com/elector-go/elector/internal/store"
)

// A watcher follows an election's record: by what the store pushes, or by reading
// in step with the holder's renewals. Only the latest state is kept, in the
// Elector's view, so a watcher that nothing waits on costs nothing.
type watcher struct {
	e      *Elector
	ctx    context.Context
	cancel context.CancelFunc
	rank   store.Rank    // of its reads
	woken  chan struct{} // holds one value when wait is to look again

	// Owned by the goroutine that waits.
	rhythm  rhythm
	learnt  backends.Attempt // the latest that rhythm knows
	last    time.Duration    // when the last read was sent
	backoff *backoff
	fault   *failure     // of the last read, if that failed
	patient bool         // what the store refuses is tried again
	waits   *candidacy   // learns of refusals, unless nil
	place   *store.Place // among those that read

	pushing
}

// A pushing is what a watcher knows of the Watch that it runs.
type pushing struct {
	doubts   atomic.Uint64           // what was pushed so often may be out of date: only a read can settle that
	settled  uint64                  // how many of them a read has settled; owned by the goroutine that waits
	live     atomic.Bool             // a Watch runs and has shown the record
	broken   atomic.Pointer[failure] // why the last Watch ended, if that passes only when somebody changes something
	readable atomic.Bool             // a read has succeeded since a Watch has shown the record
}

// reading returns a place among those that read the record again and again; nil if
// the store pushes what they would read.
func (e *Elector) reading() *store.Place {
	if e.pushes {
		return nil
	}
	return e.requests.Reading()
}

// watch starts to watch, if the backend can. The watcher must be cancelled. All its
// waits have the same ctx.
func (e *Elector) watch(ctx context.Context, rank store.Rank, what string, place *store.Place) *watcher {
	w := &watcher{e: e, rank: rank, woken: make(chan struct{}, 1), backoff: e.newBackoff(what + ": reading the record"), place: place}
	w.ctx, w.cancel = context.WithCancel(ctx)
	context.AfterFunc(w.ctx, func() { w.wake(); w.backoff.close() })
	w.rhythm.offset = e.random()
	if e.requests.Watches() && e.begin(ctx) == nil {
		go e.keepWatching(w.ctx, watching, e.newBackoff(what+": watching the record"), w.watch, w.live.Load, w.broke)
	}
	return w
}

// keepWatching keeps a watch running until ctx ends, or until broke reports for its error that
// it is over. A watch that lasts works, if works says so; one that breaks at once each time
// does not. The caller has registered with begin.
func (e *Elector) keepWatching(ctx context.Context, why string, backoff *backoff, watch func() error, works func() bool, broke func(*failure) (over bool)) {
	defer e.active.Done()
	defer backoff.close()
	for ctx.Err() == nil {
		start := e.now()
		stop := e.clock.AfterFunc(e.o.RenewEvery, func() {
			if works() {
				backoff.over()
			}
		})
		err := watch()
		stop()
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errWatchEnded
		}
		f := &failure{kindOf(err), err}
		over := broke(f)
		e.traceRequest(ctx, why, e.now()-start, f)
		if over || !backoff.pause(ctx, f) {
			return
		}
	}
}

// watch is a Watch of the record.
func (w *watcher) watch() error { return w.e.requests.Watch(w.ctx, w.e.name, w.pushed) }

// broke notes that the Watch has ended.
func (w *watcher) broke(f *failure) (over bool) {
	w.live.Store(false)
	if f.permanent() {
		w.broken.Store(f)
	}
	w.wake()
	return f.kind == hopeless
}

// errWatchEnded is the error of a Watch that returned none.
var errWatchEnded = fmt.Errorf("%w: the watch ended without a reason", ErrUnavailable)

// pushed takes what the store pushes. It never blocks: the goroutine that waits
// does the rest.
func (w *watcher) pushed(r backends.Record) {
	if r.Exists() && r.Validate() != nil || !w.e.view.Pushed(r, w.e.now()) {
		w.doubts.Add(1)
	}
	w.broken.Store(nil)
	w.readable.Store(false)
	w.live.Store(true)
	w.wake()
}

// doubt reports whether only a read can show what was pushed.
func (w *watcher) doubt() bool { return w.doubts.Load() != w.settled }

func (w *watcher) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// wait blocks until the record has another version than the one given, until
// a monotonic time (0 for none), or until ctx ends. It reports whether the
// record changed. It waits out transient failures.
func (w *watcher) wait(ctx context.Context, since backends.Version, until time.Duration) (changed bool, err error) {
	for {
		pause, changed, err := w.check(ctx, since, until)
		if pause == 0 || err != nil {
			return changed, err
		}
		if ctx.Err() == nil {
			w.sleep(pause)
		}
		if ctx.Err() != nil {
			return false, w.e.ended(ctx, w.failure())
		}
	}
}

// check returns how long wait sleeps before it checks again, 0 if wait is done. It
// reads the record if that is due.
func (w *watcher) check(ctx context.Context, since backends.Version, until time.Duration) (pause time.Duration, changed bool, err error) {
	e := w.e
	for {
		seen := e.view.Snapshot()
		e.traceNews(ctx)
		if seen.Record.Version != since {
			if seen.Record.Attempt != w.learnt { // pushed, or read elsewhere
				w.learn(seen.Record, seen.Since)
			}
			return 0, true, nil
		}
		if broken := w.broken.Load(); w.ends(broken) {
			return 0, false, broken.err
		}
		w.tell()
		now := e.clock.Now().Mono
		if until != 0 && now >= until {
			return 0, false, nil
		}
		next, doubt := w.nextRead(seen.Record, now), w.doubt()
		if w.live.Load() && e.pushes {
			next = rule.Never
		}
		if doubt {
			next = now
		}
		if next <= now {
			if _, err := w.read(ctx, !doubt); err != nil {
				return 0, false, err
			}
			continue
		}
		if until != 0 {
			next = min(next, until)
		}
		return next - now, false, nil
	}
}

// learn passes a renewal to rhythm.
func (w *watcher) learn(r backends.Record, answered time.Duration) {
	w.learnt = r.Attempt
	w.rhythm.changed(answered, interval(r))
}

// nextRead returns when to read the record if nothing is pushed before.
func (w *watcher) nextRead(r backends.Record, now time.Duration) time.Duration {
	if r.Vacant() {
		return w.place.After(max(w.last, w.rhythm.by)+w.e.o.RenewEvery, w.e.o.RenewEvery)
	}
	every := interval(r)
	if w.rhythm.every != every {
		w.rhythm.changed(now, every)
	}
	return w.place.After(w.rhythm.next(), every)
}

// interval is how often the holder renews, limited to 20 reads in a TTL.
func interval(r backends.Record) time.Duration {
	return max(r.RenewEvery, r.TTL/20, 5*time.Millisecond)
}

// readNow reads the record until that succeeds or cannot succeed.
func (w *watcher) readNow(ctx context.Context) error {
	for {
		if ok, err := w.read(ctx, false); ok || err != nil {
			return err
		}
	}
}

// failure returns why the record is not known any more, nil if it is: what is pushed is as
// good as a read, and a Watch that is refused does not matter to one that can read.
func (w *watcher) failure() *failure {
	switch {
	case w.live.Load() && !w.doubt():
		w.fault = nil
	case w.fault == nil && !w.readable.Load():
		return w.broken.Load()
	}
	return w.fault
}

// tell tells a campaign whether the store refuses what its wait needs.
func (w *watcher) tell() {
	if w.waits != nil {
		w.waits.refusal(w.ctx, w.failure())
	}
}

// ends reports whether a failure ends the wait.
func (w *watcher) ends(f *failure) bool {
	return f.permanent() && (f.kind == hopeless || !w.patient)
}

// read reads the record once, and may wait for others that read now. It returns an error
// that ends the wait, and pauses after any other.
func (w *watcher) read(ctx context.Context, gather bool) (ok bool, err error) {
	e := w.e
	if err := e.begin(ctx); err != nil {
		return false, err
	}
	defer e.active.Done()
	doubts, seen, sent := w.doubts.Load(), e.view.Snapshot().Record.Attempt, e.now()
	w.last = sent
	r, f := e.load(ctx, e.asks(loading, w.rank).gathers(gather))
	if f == nil || f.kind != cancelled {
		w.fault = f
	}
	switch {
	case f == nil:
		w.settled = doubts
		w.readable.Store(true)
		w.backoff.over()
	case ctx.Err() != nil:
		return false, e.ended(ctx, w.failure())
	case w.ends(f):
		return false, f.err
	default:
		w.tell()
		if !w.backoff.pause(ctx, f) {
			return false, e.ended(ctx, f)
		}
		return false, nil
	}
	if r.Attempt == seen {
		w.rhythm.same(sent)
	} else {
		w.learn(r, e.clock.Now().Mono)
	}
	return true, nil
}

// sleep blocks for d, until the watcher is woken, or until the context that it was
// made with ends.
func (w *watcher) sleep(d time.Duration) {
	if d < rule.Never/2 {
		defer w.e.clock.AfterFunc(d, w.wake)()
	}
	<-w.woken
}
