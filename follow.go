package elector

import (
	"context"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
)

// A follower sees an election's record change: by what the store pushes, where
// it does, and by reading in step with the holder's renewals otherwise. Only
// the latest state is kept, in the Elector's sighting, so one that is not asked
// costs nothing.
type follower struct {
	e      *Elector
	ctx    context.Context
	cancel context.CancelFunc
	woken  chan struct{} // holds one value when something was pushed

	// Owned by the goroutine that waits.
	rhythm  rhythm
	known   backends.Version // the state that rhythm has heard of
	last    time.Duration    // when the last read was sent
	trouble *trouble

	mutex  sync.Mutex
	live   bool  // a Watch runs and has shown the record
	doubt  bool  // what was pushed may be out of date: only a read can tell
	broken error // why watching makes no sense any more
}

// follow starts to watch, if the backend can. The follower must be stopped.
func (e *Elector) follow(ctx context.Context) *follower {
	f := &follower{e: e, woken: make(chan struct{}, 1), trouble: e.newTrouble("reading the record")}
	f.ctx, f.cancel = context.WithCancel(ctx)
	f.rhythm.offset = e.random()
	w, ok := e.backend.(backends.Watcher)
	if ok && e.begin() == nil {
		go f.watch(w)
	}
	return f
}

func (f *follower) stop() { f.cancel() }

// watch keeps a Watch running until the follower is stopped.
func (f *follower) watch(w backends.Watcher) {
	e := f.e
	defer e.active.Done()
	trouble := e.newTrouble("watching the record")
	for f.ctx.Err() == nil {
		start := e.clock.Now().Mono
		err := w.Watch(f.ctx, e.name, f.pushed)
		if f.ctx.Err() != nil {
			return
		}
		f.mutex.Lock()
		if f.live && e.clock.Now().Mono-start > e.o.RenewEvery {
			trouble.over() // one that breaks at once each time is still trouble
		}
		f.live = false
		if permanent(err) {
			f.broken = err
		}
		f.mutex.Unlock()
		f.wake()
		e.traceRequest("watch", e.clock.Now().Mono-start, err)
		if permanent(err) || trouble.pause(f.ctx, err) != nil {
			return
		}
	}
}

// pushed takes what the store pushes as what it is: an answer that may have
// been overtaken. A state that goes back is settled by a read. (If it did go
// back, and changes again before that read, only the later change is seen: a
// store that loses a write and shows another state at once is outside of what
// we promise. That it vanished is believed in any case.)
func (f *follower) pushed(r backends.Record) {
	believed := (!r.Exists() || r.Validate() == nil) && f.e.note(r, ignoreOlder)
	if !believed && !r.Exists() {
		f.e.vanished()
	}
	if !believed && r.Exists() {
		f.e.doubted(r)
	}
	f.mutex.Lock()
	f.live = true
	f.doubt = f.doubt || !believed
	f.mutex.Unlock()
	f.wake()
}

func (f *follower) wake() {
	select {
	case f.woken <- struct{}{}:
	default:
	}
}

// wait blocks until the record has another version than the one given, until
// a monotonic time (0 for none), or until ctx ends. It reports whether the
// record changed. It rides out troubles that may pass.
func (f *follower) wait(ctx context.Context, since backends.Version, until time.Duration) (changed bool, err error) {
	e := f.e
	for {
		e.mutex.Lock()
		record, at := e.sighting.record, e.sighting.since
		e.mutex.Unlock()
		if record.Version != since {
			if record.Version != f.known { // pushed, or read by somebody else
				f.known = record.Version
				f.rhythm.changed(at, at, interval(record))
			}
			return true, nil
		}
		f.mutex.Lock()
		live, doubt, broken := f.live, f.doubt, f.broken
		f.mutex.Unlock()
		if broken != nil {
			return false, broken
		}
		now := e.clock.Now().Mono
		if until != 0 && now >= until {
			return false, nil
		}
		next := f.nextRead(record, now)
		if live && e.pushes {
			next = forever
		}
		if doubt {
			next = now
		}
		if next <= now {
			if _, err := f.read(ctx); err != nil {
				return false, err
			}
			continue
		}
		if until != 0 {
			next = min(next, until)
		}
		if err := f.sleep(ctx, next-now); err != nil {
			return false, err
		}
	}
}

// forever is longer than any wait.
const forever = time.Duration(1<<63 - 1)

// nextRead returns when to read the record in case nothing is pushed.
func (f *follower) nextRead(r backends.Record, now time.Duration) time.Duration {
	if r.Vacant() {
		return max(f.last, f.rhythm.by) + f.e.o.RenewEvery
	}
	if every := interval(r); f.rhythm.every != every {
		f.rhythm.changed(now, now, every)
	}
	return f.rhythm.next()
}

// interval is how often the holder renews. A record may ask for no more than
// 20 reads in a TTL.
func interval(r backends.Record) time.Duration {
	return max(r.RenewEvery, r.TTL/20, 5*time.Millisecond)
}

// readNow reads the record until that succeeds or cannot.
func (f *follower) readNow(ctx context.Context) error {
	for {
		if ok, err := f.read(ctx); ok || err != nil {
			return err
		}
	}
}

// read reads the record once. It returns an error if trying again cannot help,
// and pauses after one that may pass.
func (f *follower) read(ctx context.Context) (ok bool, err error) {
	e := f.e
	if err := e.begin(); err != nil {
		return false, err
	}
	defer e.active.Done()
	f.mutex.Lock()
	f.doubt = false
	f.mutex.Unlock()
	e.mutex.Lock()
	seen := e.sighting.record.Version
	e.mutex.Unlock()
	sent := e.clock.Now().Mono
	f.last = sent
	r, err := e.load(ctx, e.o.RequestTimeout)
	switch {
	case err == nil:
		f.trouble.over()
	case ctx.Err() != nil || permanent(err):
		return false, err
	default:
		return false, f.trouble.pause(ctx, err)
	}
	if r.Version == seen {
		f.rhythm.same(sent)
	} else {
		f.known = r.Version
		f.rhythm.changed(sent, e.clock.Now().Mono, interval(r))
	}
	return true, nil
}

func (f *follower) sleep(ctx context.Context, d time.Duration) error {
	var due <-chan struct{}
	if d < forever/2 {
		var stop func() bool
		due, stop = f.e.after(d)
		defer stop()
	}
	select {
	case <-due:
	case <-f.woken:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
