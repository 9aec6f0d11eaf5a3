package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/elector-go/elector/backends"
)

// loading returns handles on the store, the first of which is also returned as a
// BatchLoader; nil if the backend is not one.
func (s *suite) loading(n int) (backends.BatchLoader, []backends.Backend) {
	s.Helper()
	all := s.handles(n)
	b, ok := all[0].(backends.BatchLoader)
	if !ok {
		s.notApplicable("the backend is not a BatchLoader: it reads one record at a time")
		return nil, nil
	}
	if most := b.Describe().MaxLoads; most < 2 {
		s.Fatalf("a BatchLoader sets Description.MaxLoads, the most names that it takes at once, to 2 or more: it is %d", most)
	}
	return b, all
}

// loadMany reads many records in one request.
func (s *suite) loadMany(ctx context.Context, b backends.BatchLoader, names []string) []backends.Outcome {
	s.Helper()
	var outcomes []backends.Outcome
	err := s.together(1, "LoadMany returns when its context ends, or before", func(int) error {
		outcomes = b.LoadMany(ctx, slices.Clone(names))
		return nil
	})[0]
	s.must(err, "LoadMany of %d", len(names))
	if len(outcomes) != len(names) {
		s.Fatalf("LoadMany returns an Outcome for each name: it returned %d for %d names", len(outcomes), len(names))
	}
	return outcomes
}

// loadsAre reads many records in one request, which must be these. A name without
// one has no record.
func (s *suite) loadsAre(b backends.BatchLoader, names []string, want map[string]backends.Record, rule string) {
	s.Helper()
	for i, o := range s.loadMany(s.patient(), b, names) {
		name := names[i]
		if o.Err != nil {
			s.Fatalf("LoadMany reads every valid record: the outcome of %s, %d of %d names, is %v", name, i+1, len(names), o.Err)
		}
		if o.Record != want[name] {
			s.Fatalf("%s: the outcome of %s, %d of %d names, is %v instead of %v; they differ in %s", rule, name, i+1, len(names), o.Record, want[name], differences(o.Record, want[name]))
		}
	}
}

// load/each: of many records read in one request, each is what Load would return.
// Names without a record, foreign records and names that repeat do not affect the
// others.
func loadEach(s *suite) {
	b, all := s.loading(2)
	if b == nil {
		return
	}
	const rule = "LoadMany returns for each name, at its place, what Load would return"
	most := b.Describe().MaxLoads
	held := map[string]backends.Record{}
	names := make([]string, most)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", s.name, i)
	}
	// Every third one has no record.
	const written = "many elections are acquired at the same time"
	made := make([]backends.Record, min(most, s.rounds(100, 30)))
	ctx := s.patient()
	errs := s.together(len(made), written, func(i int) (err error) {
		if i%3 == 2 {
			return nil
		}
		r := acquisition("holder", uint64(i+1))
		r.Value = strings.Repeat("é\x01\"", i)
		made[i], err = all[i%2].Swap(ctx, names[i], backends.Record{}, r)
		return err
	})
	s.must(errors.Join(errs...), written)
	for i, r := range made {
		if r.Exists() {
			held[names[i]] = r
		}
	}
	s.loadsAre(b, names[:1], held, rule)
	s.loadsAre(b, names[:2], held, rule)
	s.loadsAre(b, names, held, "LoadMany takes as many names as Description.MaxLoads: "+rule)
	backwards := slices.Clone(names)
	slices.Reverse(backwards)
	s.loadsAre(b, backwards, held, rule)
	for _, name := range []string{names[0], names[most-1]} { // one has a record
		s.loadsAre(b, []string{name, name}, held, "names may repeat: "+rule)
	}

	// What another handle has written was written before.
	for range s.rounds(50, 10) {
		for _, name := range []string{names[0], names[1]} {
			held[name] = s.swap(all[1], name, held[name], renewal(held[name]))
		}
		s.loadsAre(b, names[:2], held, "LoadMany reflects every Swap that was acknowledged before it was called")
	}
	held[names[0]] = s.swap(all[1], names[0], held[names[0]], vacancy(held[names[0]]))
	s.loadsAre(b, names, held, rule)

	if o := s.loadMany(s.patient(), b, []string{names[0], "no/name"})[1]; !errors.Is(o.Err, backends.ErrName) {
		s.Fatalf("LoadMany refuses a name that no election can have: the outcome of one is %v", o)
	}

	raw := s.h.Raw
	if raw == nil {
		return
	}
	if spoilt := raw.Spoiled["bad/garbage"]; spoilt == nil {
		raw.Put(s, names[1], []byte("leader=host-1\n"))
	} else {
		spoilt[slices.Sorted(maps.Keys(spoilt))[0]](s, names[1])
	}
	for i, o := range s.loadMany(s.patient(), b, names) {
		name := names[i]
		switch {
		case name == names[1] && !errors.Is(o.Err, backends.ErrForeignRecord):
			s.Fatalf("a foreign record is ErrForeignRecord for its name: the outcome is %v", o)
		case name != names[1] && (o.Err != nil || o.Record != held[name]):
			s.Fatalf("a foreign record is an error for its name alone: the outcome of %s is %v instead of %v", name, o, held[name])
		}
	}
	raw.Delete(s, names[1])
	delete(held, names[1])
	s.loadsAre(b, names, held, rule)
}

// load/cancel: a LoadMany whose context ends returns, and has a record or an error
// for each name; the handle remains usable.
func loadCancel(s *suite) {
	b, all := s.loading(2)
	if b == nil {
		return
	}
	held := map[string]backends.Record{}
	names := make([]string, min(s.rounds(20, 5), b.Describe().MaxLoads))
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", s.name, i)
		held[names[i]] = s.swap(all[1], names[i], backends.Record{}, acquisition("holder", 1))
	}
	ending := func(ctx context.Context, end func()) {
		s.Helper()
		var outcomes []backends.Outcome
		errs := s.together(2, "LoadMany returns when its context ends", func(i int) error {
			if i == 1 {
				end()
				return nil
			}
			outcomes = b.LoadMany(ctx, slices.Clone(names))
			return nil
		})
		s.must(errors.Join(errs...), "LoadMany whose context ends")
		if len(outcomes) != len(names) {
			s.Fatalf("LoadMany returns an Outcome for each name: it returned %d for %d names when its context ended", len(outcomes), len(names))
		}
		for i, o := range outcomes {
			switch {
			case backends.Permanent(o.Err):
				s.Fatalf("an ended context must not be reported as a permanent error: %v", o.Err)
			case o.Err == nil && o.Record != held[names[i]]:
				s.Fatalf("a name that was not read is an error, never an empty record, which means that the election has no leader: with an ended context the outcome of %s is %v instead of %v", names[i], o.Record, held[names[i]])
			}
		}
	}
	for range s.rounds(20, 4) {
		s.withEnds(ending)
	}
	s.loadsAre(b, names, held, "after a LoadMany whose context ended the handle works")
}
