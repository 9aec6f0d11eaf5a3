package conformance

import (
	"context"
	"errors"

	"github.com/elector-go/elector/backends"
)

// auth/reader: a handle that was opened for reading alone shows every record. Its writes
// are ErrReadOnly, and nothing is written or created.
func readerOnly(s *suite) {
	if s.h.OpenReadOnly == nil {
		s.notApplicable("the harness has no OpenReadOnly")
		return
	}
	other := s.open()
	made := s.swap(other, s.name, backends.Record{}, acquisition("holder", 1))
	absent := s.name + "-absent"

	var b backends.Backend
	s.outside("Harness.OpenReadOnly returns", func() { b = s.h.OpenReadOnly(s) })
	if b == nil {
		s.Fatal("Harness.OpenReadOnly returns a handle on the store: it returned nil")
	}
	s.closes(b)
	if !b.Describe().ReadOnly {
		s.Error("the Description of a handle that only reads has ReadOnly set, so that a campaign on it fails at once")
	}
	const shows = "a handle that only reads shows every record"
	s.shows([]backends.Backend{b}, s.name, made, shows)
	s.shows([]backends.Backend{b}, absent, backends.Record{}, shows)
	if many, ok := b.(backends.BatchLoader); ok {
		s.loadsAre(many, []string{s.name, absent}, map[string]backends.Record{s.name: made}, shows)
	}
	if w, ok := backends.AsWatcher(b); ok {
		watch := s.watch(w, s.name)
		watch.until(shows, is(made))
		made = s.swap(other, s.name, made, acquisition("second", 2))
		watch.until(shows, is(made))
		watch.stop()
	}
	if l, ok := b.(backends.Lister); ok {
		s.lists(l, []string{s.name}, shows)
	}

	refused := func(call string, err error) {
		if !errors.Is(err, backends.ErrReadOnly) {
			s.Errorf("a write through a handle that only reads is ErrReadOnly: the error of %s is %v", call, err)
		}
	}
	next := renewal(made)
	_, err := s.trySwap(b, absent, backends.Record{}, acquisition("reader", 3))
	refused("a creation", err)
	_, err = s.trySwap(b, s.name, made, next)
	refused("a renewal", err)
	if many, ok := b.(backends.BatchSwapper); ok {
		_, err := s.request("SwapMany", func(ctx context.Context) (backends.Record, error) {
			outcome := many.SwapMany(ctx, []backends.Change{{Name: s.name, Prev: made, Next: next}})[0]
			return outcome.Record, outcome.Err
		})
		refused("a batch", err)
	}
	const writes = "a handle that only reads writes and creates nothing"
	s.shows([]backends.Backend{other}, s.name, made, writes)
	s.shows([]backends.Backend{other}, absent, backends.Record{}, writes)
	if l, ok := other.(backends.Lister); ok {
		s.lists(l, []string{s.name}, writes)
	}
	if s.h.Raw != nil {
		var content []byte
		s.outside("Raw.Get returns", func() { content = s.h.Raw.Get(s, absent) })
		if content != nil {
			s.Fatalf("%s: of an election that it has only read the store keeps %q", writes, content)
		}
	}
}
