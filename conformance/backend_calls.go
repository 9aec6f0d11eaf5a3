package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/elector-go/elector/backends"
)

// ctx/cancel: a call whose context has ended returns, does not guess, and
// spoils nothing for later calls on the same handle.
func endedContext(s *suite) {
	all := s.handles(2)
	last := s.swap(all[0], s.name, backends.Record{}, acquisition("holder", 1))
	for range s.rounds(20, 3) {
		cancelled, cancel := context.WithCancel(s.Context())
		cancel()
		last = s.callWith(cancelled, all, last, 2, func() {})

		expired, cancel := context.WithDeadline(s.Context(), time.Now().Add(-time.Second))
		last = s.callWith(expired, all, last, 2, func() {})
		cancel()

		underWay, cancel := context.WithCancel(s.Context())
		last = s.callWith(underWay, all, last, 20, cancel)
		cancel()
	}
}

// callWith makes n calls at once on one handle, half of them Loads and half of
// them Swaps from last, while end is called. It returns what the record is
// afterwards.
func (s *suite) callWith(ctx context.Context, all []backends.Backend, last backends.Record, n int, end func()) backends.Record {
	s.Helper()
	rivals := make([]backends.Record, n)
	errs := s.together(n+1, "a call returns when its context ends", func(i int) error {
		if i == n {
			end()
			return nil
		}
		if i%2 == 0 {
			_, err := all[0].Load(ctx, s.name)
			return err
		}
		rivals[i] = acquisition("candidate", last.Token+1)
		_, err := all[0].Swap(ctx, s.name, last, rivals[i])
		return err
	})
	was, now := s.fence(all[0], s.name, last)
	applied := 0
	for i, err := range errs[:n] {
		switch {
		case errors.Is(err, errPanic) || backends.Permanent(err):
			s.Fatalf("an ended context must not look like an error that stays: %v", err)
		case errors.Is(err, backends.ErrConflict) && was == last:
			s.Fatalf("ErrConflict says that the store holds another version: it held version %q, as expected, and the answer was %v", last.Version, err)
		case i%2 == 1 && err == nil && content(was) != rivals[i]:
			s.Fatalf("a Swap that returns no error was applied, whatever became of its context: wrote %+v, found %+v", rivals[i], was)
		case i%2 == 1 && content(was) == rivals[i]:
			applied++
		}
	}
	if was != last && applied == 0 {
		s.Fatalf("a Swap whose context ends is applied whole or not at all: found %+v over %+v", was, last)
	}
	s.shows(all, s.name, now, "a call whose context ended leaves the handle usable")
	return now
}

// fence finds what the record is after calls with unknown outcome from last,
// and replaces it, so that none of them can be applied any more.
func (s *suite) fence(b backends.Backend, name string, last backends.Record) (was, now backends.Record) {
	s.Helper()
	for range 10 {
		was = s.load(b, name)
		now, err := b.Swap(s.patient(), name, was, acquisition("fence", was.Token+1))
		if err == nil {
			return was, now
		}
		if !errors.Is(err, backends.ErrConflict) {
			s.Fatalf("a call whose context ended leaves the handle usable: %v", err)
		}
	}
	s.Fatalf("of many Swaps from one version exactly one is applied: the record goes on changing after %+v", last)
	return was, now
}

// close/idempotent: Close may be called again and at the same time, ends what
// is under way, leaves nothing behind and other handles alone; and no call
// after it panics, hangs or writes.
func closeTwice(s *suite) {
	const rule = "Close may be called again, and at the same time, and then does nothing"
	other := s.open()
	last := s.swap(other, s.name, backends.Record{}, acquisition("holder", 1))
	s.closedHandle(other, last) // what is opened only once is open now
	s.settles(s.rounds(20, 10), "Close ends the goroutines that the backend started", func() {
		b := s.h.Open(s)
		s.shows([]backends.Backend{b}, s.name, last, "handles on one store show one record")
		errs := s.together(12, "Close returns, and so do the calls under way", func(i int) error {
			if i < 4 {
				return b.Close()
			}
			for range 5 {
				if err := calm(func() error { _, err := b.Load(s.Context(), s.name); return err }); errors.Is(err, errPanic) {
					return err
				}
			}
			return nil
		})
		s.must(errors.Join(errs...), rule)
		s.must(calm(b.Close), rule)
	})
	s.closedHandle(other, last)
}

// closedHandle makes every call on a closed handle.
func (s *suite) closedHandle(other backends.Backend, last backends.Record) {
	s.Helper()
	const rule = "after Close every call returns an error, and writes nothing"
	b := s.h.Open(s)
	s.must(b.Close(), "Close of a handle that was not used")
	calls := map[string]func() error{
		"Load": func() error { _, err := b.Load(s.Context(), s.name); return err },
		"Swap": func() error { _, err := b.Swap(s.Context(), s.name, last, renewal(last)); return err },
	}
	if w, ok := backends.AsWatcher(b); ok {
		calls["Watch"] = func() error { return w.Watch(s.Context(), s.name, func(backends.Record) {}) }
	}
	if m, ok := b.(backends.Batcher); ok {
		calls["RenewMany"] = func() error {
			return m.RenewMany(s.Context(), []backends.Renewal{{Name: s.name, Prev: last, Next: renewal(last)}})[0].Err
		}
	}
	for what, call := range calls {
		err := s.together(1, rule, func(int) error { return call() })[0]
		if err == nil || errors.Is(err, errPanic) || errors.Is(err, backends.ErrConflict) {
			s.Errorf("%s: %s returns %v", rule, what, err)
		}
	}
	s.shows([]backends.Backend{other}, s.name, last, rule)
}
