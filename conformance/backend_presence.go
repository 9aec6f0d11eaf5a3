package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/elector-go/elector/backends"
)

// noMark is why cases of a holder's presence do not apply.
const noMark = "the store shows no mark of a holder's presence besides the record"

// present returns a handle that can watch a holder's presence; nil if the store
// shows none.
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
		s.Fatal("the store shows a holder's presence, so the harness must give Raw.Depose")
	}
	s.h.Raw.Depose(s, name)
}

// presenceDeposed: a mark of presence is made with an acquisition, stays through
// renewals, and goes with the vacancy or the next acquisition. Who watches its
// own mark is told of its removal, and cannot renew after it; anybody can still
// take over or vacate.
func presenceDeposed(s *suite) {
	a := s.present()
	if a == nil {
		return
	}
	b := s.present()
	all := []backends.Backend{a, b}
	const deposed = "whoever removes a mark of presence deposes its holder"

	first := s.swap(a, s.name, backends.Record{}, acquisition("first", 1))
	w := s.attend(a, s.name, first)
	for range 3 {
		first = s.swap(a, s.name, first, renewal(first))
	}
	w.runs("a mark stays through renewals")
	s.depose(s.name)
	w.ends(deposed)
	r, err := a.Swap(s.patient(), s.name, first, renewal(first))
	if !errors.Is(err, backends.ErrDeposed) {
		s.Fatalf("who was deposed cannot renew: Swap must be ErrDeposed, got %+v and error %v", r, err)
	}
	s.shows(all, s.name, first, "a Swap of a deposed holder changes nothing, and the loss of a mark does not change the record")
	s.attend(a, s.name, first).ends("a Watch of a mark that is gone says so")

	// Nobody else is hindered.
	vacant := s.swap(a, s.name, first, vacancy(first))
	second := s.swap(a, s.name, vacant, acquisition("second", 2))
	w = s.attend(a, s.name, second)
	third := s.swap(b, s.name, second, acquisition("third", 3))
	w.ends("a takeover replaces the mark")
	s.conflicts(a, s.name, second, renewal(second), "the one who was replaced cannot renew")
	w = s.attend(b, s.name, third)
	third = s.swap(b, s.name, third, renewal(third))
	w.runs("the mark of who took over stays")
	s.depose(s.name)
	w.ends(deposed)
	fourth := s.swap(a, s.name, third, acquisition("fourth", 4))
	w = s.attend(a, s.name, fourth)
	s.swap(b, s.name, fourth, vacancy(fourth))
	w.ends("a vacancy removes the mark")
}

// presenceEnd: WatchPresence returns when its context or its handle ends and
// leaves nothing behind.
func presenceEnd(s *suite) {
	b := s.present()
	if b == nil {
		return
	}
	held := s.swap(b, s.name, backends.Record{}, acquisition("holder", 1))
	once := func() {
		w := s.attend(b, s.name, held)
		w.runs("the mark is there")
		w.end()
		if err := wait(s, w.result, "WatchPresence returns when its context ends"); errors.Is(err, backends.ErrDeposed) || errors.Is(err, errPanic) {
			s.Fatalf("WatchPresence whose context ends says nothing of the mark: %v", err)
		}
	}
	once() // what is opened only once is open now
	s.settles(s.rounds(200, 50), "nothing of a WatchPresence is left when it has returned", once)
	s.shows([]backends.Backend{b}, s.name, held, "a handle works on")

	closing := s.present()
	other := s.swap(closing, s.name+"-closing", backends.Record{}, acquisition("holder", 1))
	w := s.attend(closing, s.name+"-closing", other)
	s.must(closing.Close(), "Close while a WatchPresence runs")
	const rule = "WatchPresence returns the reason when its handle is closed"
	if err := wait(s, w.result, rule); err == nil {
		s.Errorf("%s: it returns no error", rule)
	}
}

// An attendance is a WatchPresence that runs.
type attendance struct {
	s      *suite
	end    context.CancelFunc
	result chan error
}

// attend starts to watch a mark, until the case ends at the latest.
func (s *suite) attend(b backends.PresenceWatcher, name string, held backends.Record) *attendance {
	a := &attendance{s: s, result: make(chan error, 1)}
	ctx, cancel := context.WithCancel(s.Context())
	a.end = cancel
	s.Cleanup(cancel)
	go func() { a.result <- calm(func() error { return b.WatchPresence(ctx, name, held) }) }()
	return a
}

// runs fails the case if the mark is said to be gone.
func (a *attendance) runs(rule string) {
	a.s.Helper()
	select {
	case err := <-a.result:
		a.s.Fatalf("%s: WatchPresence returned %v", rule, err)
	default:
	}
}

// ends waits until the mark is said to be gone. Another error than that may be
// a trouble that passes, but none is expected here.
func (a *attendance) ends(rule string) {
	a.s.Helper()
	if err := wait(a.s, a.result, fmt.Sprintf("%s: WatchPresence returns", rule)); !errors.Is(err, backends.ErrDeposed) {
		a.s.Fatalf("%s: WatchPresence must return ErrDeposed, it returned %v", rule, err)
	}
}
