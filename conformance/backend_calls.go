package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/elector-go/elector/backends"
)

// ctx/cancel: a call whose context has ended returns, does not guess its outcome,
// and leaves the handle usable.
func endedContext(s *suite) {
	all := s.handles(2)
	last := s.swap(all[0], s.name, backends.Record{}, acquisition("holder", 1))
	for range s.rounds(20, 3) {
		s.withEnds(func(ctx context.Context, end func()) {
			n := 2
			if ctx.Err() == nil {
				n = 20
			}
			last = s.callWith(ctx, all, last, n, end)
		})
	}
}

// withEnds calls a function with a context that was cancelled, with one whose
// deadline has passed, and with one that ends when end is called.
func (s *suite) withEnds(call func(ctx context.Context, end func())) {
	s.Helper()
	cancelled, cancel := context.WithCancel(s.Context())
	cancel()
	call(cancelled, func() {})

	expired, cancel := context.WithDeadline(s.Context(), time.Now().Add(-time.Second))
	call(expired, func() {})
	cancel()

	underWay, cancel := context.WithCancel(s.Context())
	call(underWay, cancel)
	cancel()
}

// callWith makes n calls at once on one handle, half of them Loads and half of
// them Swaps from last, and calls end at the same time. It returns the record
// afterwards.
func (s *suite) callWith(ctx context.Context, all []backends.Backend, last backends.Record, n int, end func()) backends.Record {
	s.Helper()
	rivals, read := make([]backends.Record, n), make([]backends.Record, n)
	errs := s.together(n+1, "a call returns when its context ends", func(i int) (err error) {
		if i == n {
			end()
			return nil
		}
		if i%2 == 0 {
			read[i], err = all[0].Load(ctx, s.name)
			return err
		}
		rivals[i] = acquisition("candidate", last.Token+1)
		_, err = all[0].Swap(ctx, s.name, last, rivals[i])
		return err
	})
	was, now := s.fence(all[0], s.name, last)
	applied := 0
	for i, err := range errs[:n] {
		switch {
		case backends.Permanent(err):
			s.Fatalf("an ended context must not be reported as a permanent error: %v", err)
		case i%2 == 0 && err == nil && !read[i].Exists():
			s.Fatalf("a Load that cannot read returns an error, never an empty record, which means that the election has no leader: with an ended context it returned no error and no record, and the store holds %v", was)
		case errors.Is(err, backends.ErrConflict) && was == last:
			s.Fatalf("ErrConflict means that the store holds another version, and no other error may be reported as one: the store held version %q, as expected, and the error was: %v", last.Version, err)
		case i%2 == 1 && err == nil && content(was) != rivals[i]:
			s.Fatalf("a Swap that returns no error was applied, even if its context has ended: it wrote %v, and the store holds %v", rivals[i], was)
		case i%2 == 1 && content(was) == rivals[i]:
			applied++
		}
	}
	if was != last && applied == 0 {
		s.Fatalf("a Swap whose context ends is applied completely or not at all: the store holds %v after %v", was, last)
	}
	s.shows(all, s.name, now, "after a call whose context ended the handle works")
	return now
}

// fence returns the record as it was after calls of unknown outcome from last,
// and replaces it, so that none of them can be applied later.
func (s *suite) fence(b backends.Backend, name string, last backends.Record) (was, now backends.Record) {
	s.Helper()
	for range 10 {
		was = s.load(b, name)
		now, err := s.trySwap(b, name, was, acquisition("fence", was.Token+1))
		if err == nil {
			return was, now
		}
		if !errors.Is(err, backends.ErrConflict) {
			s.Fatalf("after a call whose context ended the handle works: %v", err)
		}
	}
	s.Fatalf("of many Swaps from one version exactly one is applied: the record still changes after %v", last)
	return was, now
}

// close/idempotent: Close may be called again and concurrently, ends the calls
// under way, leaves nothing behind and does not affect other handles. A call
// after it returns an error and writes nothing.
func closeTwice(s *suite) {
	const rule = "Close may be called again and concurrently, and then does nothing"
	other := s.open()
	last := s.swap(other, s.name, backends.Record{}, acquisition("holder", 1))
	s.closedHandle(other, last) // opens what is opened only once
	s.settles(s.rounds(20, 10), "Close ends the goroutines that the backend started", func() {
		b := s.unclosed()
		s.shows([]backends.Backend{b}, s.name, last, "all handles on one store read the same record")
		errs := s.together(12, "Close returns, and the calls under way return too", func(i int) error {
			if i < 4 {
				return b.Close()
			}
			for range 5 {
				b.Load(s.Context(), s.name) // may fail
			}
			return nil
		})
		s.must(errors.Join(errs...), rule)
		s.must(s.together(1, rule, func(int) error { return b.Close() })[0], rule)
	})
	s.closedHandle(other, last)
}

// closedHandle makes every call on a closed handle.
func (s *suite) closedHandle(other backends.Backend, last backends.Record) {
	s.Helper()
	const rule = "after Close every call returns an error, and writes nothing (backends.Base sees to it)"
	b := s.unclosed()
	s.must(s.together(1, rule, func(int) error { return b.Close() })[0], "Close of a handle that was not used")
	calls := map[string]func() error{
		"Load": func() error { _, err := b.Load(s.Context(), s.name); return err },
		"Swap": func() error { _, err := b.Swap(s.Context(), s.name, last, renewal(last)); return err },
	}
	if w, ok := backends.AsWatcher(b); ok {
		calls["Watch"] = func() error { return w.Watch(s.Context(), s.name, func(backends.Record) {}) }
	}
	if m, ok := b.(backends.BatchSwapper); ok {
		calls["SwapMany"] = func() error {
			return m.SwapMany(s.Context(), []backends.Change{{Name: s.name, Prev: last, Next: renewal(last)}})[0].Err
		}
	}
	if l, ok := b.(backends.BatchLoader); ok {
		calls["LoadMany"] = func() error { return l.LoadMany(s.Context(), []string{s.name})[0].Err }
	}
	if l, ok := b.(backends.Lister); ok {
		calls["List"] = func() error { _, err := l.List(s.Context()); return err }
	}
	if i, ok := b.(backends.Inspector); ok {
		calls["Inspect"] = func() error { _, err := i.Inspect(s.Context(), 15*time.Second); return err }
	}
	for what, call := range calls {
		err := s.together(1, rule, func(int) error { return call() })[0]
		if err == nil || errors.Is(err, backends.ErrConflict) {
			s.Errorf("%s: %s returned error %v", rule, what, err)
		}
	}
	s.shows([]backends.Backend{other}, s.name, last, rule)
}
