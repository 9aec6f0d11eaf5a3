package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/elector-go/elector/backends"
)

// noMark is why the cases of presence do not apply.
const noMark = "the backend is not a PresenceWatcher: the store has no mark of a holder's presence besides the record"

// present returns a handle that is a PresenceWatcher, or nil if the backend is not
// one.
func (s *suite) present() backends.PresenceWatcher {
	p, _ := s.open().(backends.PresenceWatcher)
	if p == nil {
		s.notApplicable(noMark)
	}
	return p
}

// depose removes the mark of presence.
func (s *suite) depose(name string) {
	s.Helper()
	if s.h.Raw.Depose == nil {
		s.Fatal("the backend is a PresenceWatcher, so the harness must have Raw.Depose")
	}
	s.h.Raw.Depose(s, name)
}

// presence/deposed: an acquisition makes a mark of presence, renewals keep it,
// and a release or the next acquisition removes it. WatchPresence reports its
// removal to the holder, which then cannot renew. Any process can still take over
// or release.
func presenceDeposed(s *suite) {
	a := s.present()
	if a == nil {
		return
	}
	b := s.present()
	all := []backends.Backend{a, b}
	const deposed = "removing a mark of presence deposes its holder"

	first := s.swap(a, s.name, backends.Record{}, acquisition("first", 1))
	w := s.attend(a, s.name, first)
	for range 3 {
		first = s.swap(a, s.name, first, renewal(first))
	}
	w.runs("renewals keep the mark")
	s.depose(s.name)
	w.ends(deposed)
	r, err := s.trySwap(a, s.name, first, renewal(first))
	if !errors.Is(err, backends.ErrDeposed) {
		s.Fatalf("a deposed holder cannot renew: Swap must be ErrDeposed, and it returned %v and error %v", r, err)
	}
	s.shows(all, s.name, first, "a renewal by a deposed holder changes nothing, and neither does the removal of its mark")
	s.attend(a, s.name, first).ends("the mark is gone already")

	// Other candidates can still acquire.
	vacant := s.swap(a, s.name, first, vacancy(first))
	second := s.swap(a, s.name, vacant, acquisition("second", 2))
	w = s.attend(a, s.name, second)
	third := s.swap(b, s.name, second, acquisition("third", 3))
	w.ends("a takeover replaces the mark")
	s.conflicts(a, s.name, second, renewal(second), "a holder that was replaced cannot renew")
	w = s.attend(b, s.name, third)
	third = s.swap(b, s.name, third, renewal(third))
	w.runs("the successor's mark stays")
	s.depose(s.name)
	w.ends(deposed)
	fourth := s.swap(a, s.name, third, acquisition("fourth", 4))
	w = s.attend(a, s.name, fourth)
	s.swap(b, s.name, fourth, vacancy(fourth))
	w.ends("a release removes the mark")
}

// presence/end: WatchPresence returns when its context ends or its handle is
// closed, and leaves nothing behind.
func presenceEnd(s *suite) {
	b := s.present()
	if b == nil {
		return
	}
	held := s.swap(b, s.name, backends.Record{}, acquisition("holder", 1))
	once := func() {
		w := s.attend(b, s.name, held)
		w.runs("the mark exists")
		w.end()
		if err := wait(s, w.result, "WatchPresence returns when its context ends"); errors.Is(err, backends.ErrDeposed) || errors.Is(err, errPanic) {
			s.Fatalf("when its context ends, WatchPresence must not report that the mark is gone: %v", err)
		}
	}
	once() // opens what is opened only once
	s.settles(s.rounds(200, 50), "a WatchPresence that has returned leaves nothing behind", once)
	s.shows([]backends.Backend{b}, s.name, held, "a handle works after its WatchPresence has ended")

	closing := s.present()
	other := s.swap(closing, s.name+"-closing", backends.Record{}, acquisition("holder", 1))
	w := s.attend(closing, s.name+"-closing", other)
	s.must(s.together(1, "Close returns while a WatchPresence runs", func(int) error { return closing.Close() })[0], "Close while a WatchPresence runs")
	const rule = "WatchPresence returns an error when its handle is closed"
	if err := wait(s, w.result, rule); err == nil {
		s.Errorf("%s: it returned none", rule)
	}
}

// An attendance is a WatchPresence that runs.
type attendance struct {
	s      *suite
	end    context.CancelFunc
	result chan error
}

// attend starts to watch a mark. It ends with the case, or before.
func (s *suite) attend(b backends.PresenceWatcher, name string, held backends.Record) *attendance {
	a := &attendance{s: s, result: make(chan error, 1)}
	ctx, cancel := context.WithCancel(s.Context())
	a.end = cancel
	s.Cleanup(cancel)
	go func() { a.result <- calm(func() error { return b.WatchPresence(ctx, name, held) }) }()
	return a
}

// runs fails the case if WatchPresence has returned.
func (a *attendance) runs(rule string) {
	a.s.Helper()
	select {
	case err := <-a.result:
		a.s.Fatalf("%s, so WatchPresence runs: it returned %v", rule, err)
	default:
	}
}

// ends waits until WatchPresence returns ErrDeposed. No other error is expected
// here.
func (a *attendance) ends(rule string) {
	a.s.Helper()
	if err := wait(a.s, a.result, fmt.Sprintf("%s, so WatchPresence returns", rule)); !errors.Is(err, backends.ErrDeposed) {
		a.s.Fatalf("%s, so WatchPresence must return ErrDeposed: it returned %v", rule, err)
	}
}
