package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/elector-go/elector/backends"
)

// mx/attempt: a Swap that changes the attempt alone makes a new version. A
// renewal changes nothing else, and a new acquisition by the same holder changes
// only the nonce.
func attemptAlone(s *suite) {
	const rule = "a Swap that changes the attempt alone makes a new version, and a Swap from the version before conflicts"
	all := s.handles(2)
	first := acquisition("holder", 1)
	states := []backends.Record{s.swap(all[0], s.name, backends.Record{}, first)}
	for _, attempt := range []backends.Attempt{renewal(first).Attempt, acquisition("", 1).Attempt, acquisition("", 1).Attempt} {
		last := states[len(states)-1]
		next := content(last)
		next.Attempt = attempt
		made, err := s.trySwap(all[0], s.name, last, next)
		s.must(err, "a Swap from the version that the store holds is applied")
		for _, old := range states {
			if made.Version == old.Version {
				s.Fatalf("%s: %v and %v have one version", rule, old, made)
			}
			s.conflicts(all[1], s.name, old, renewal(next), rule)
		}
		s.returned(last, next, made)
		s.shows(all, s.name, made, rule)
		states = append(states, made)
	}
}

// mx/same-id: a candidate is known by its attempt. Two candidates with one ID,
// and even with one token, never both lead.
func sameID(s *suite) {
	all := s.handles(2)
	var prev backends.Record
	for round := range s.rounds(20, 3) {
		token := uint64(round + 1)
		rivals := []backends.Record{acquisition("twin", token), acquisition("twin", token)}
		won := s.contest(all, prev, rivals, "of two candidates with one ID exactly one becomes leader")
		renewed := s.swap(all[0], s.name, won, renewal(won))
		for _, rival := range rivals {
			s.conflicts(all[1], s.name, won, renewal(rival), "a renewal changes the version, and a candidate with the same ID and token must not replace it")
			s.conflicts(all[1], s.name, backends.Record{}, renewal(rival), "a Swap that expects no record must not replace one of the same ID")
		}
		s.shows(all, s.name, renewed, "a candidate with the holder's ID must not change the holder's record")
		prev = renewed
	}
}

// mx/race: of many Swaps from one version exactly one is applied, and the record
// is the winner's.
func race(s *suite) {
	all := s.handles(5)
	var prev backends.Record // at first there is none, and they race to create it
	for round := range s.rounds(20, 3) {
		rivals := make([]backends.Record, 50)
		for i := range rivals {
			rivals[i] = acquisition(fmt.Sprintf("candidate-%d", i), uint64(round+1))
		}
		prev = s.contest(all, prev, rivals, "of many Swaps from one version exactly one is applied")
	}
}

// contest makes rivals swap from one version at once, through all handles, and
// returns the winner's record.
func (s *suite) contest(all []backends.Backend, prev backends.Record, rivals []backends.Record, rule string) backends.Record {
	s.Helper()
	ctx := s.patient()
	made := make([]backends.Record, len(rivals))
	errs := s.together(len(rivals), rule, func(i int) (err error) {
		made[i], err = all[i%len(all)].Swap(ctx, s.name, prev, rivals[i])
		return err
	})
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			s.Fatalf("%s: from version %q both %v and %v were", rule, prev.Version, made[winner], made[i])
		case err == nil:
			winner = i
		case !errors.Is(err, backends.ErrConflict):
			s.Fatalf("a Swap that comes too late is ErrConflict: its error is: %v", err)
		}
	}
	if winner < 0 {
		s.Fatalf("%s: from version %q none of %d was", rule, prev.Version, len(rivals))
	}
	s.returned(prev, rivals[winner], made[winner])
	s.shows(all, s.name, made[winner], "after a race the record is the winner's")
	return made[winner]
}

// mx/aba: a version is never used again, not even after the record was deleted
// and created anew with the same content. Only the attempts differ: no attempt is
// ever written twice.
func recreated(s *suite) {
	all := s.handles(2)
	seen := map[backends.Version]bool{}
	var old []backends.Record
	var last backends.Record
	for range 3 {
		for i := range 3 {
			next := acquisition("same", 7)
			if i > 0 {
				next = renewal(last)
			}
			last = s.swap(all[0], s.name, last, next)
			if seen[last.Version] {
				s.Fatalf("a version is never used again, not even after the record was deleted and created anew: an earlier state had the version of %v", last)
			}
			seen[last.Version] = true
			for _, r := range old {
				s.conflicts(all[1], s.name, r, renewal(r), "a Swap from a version of before a deletion must conflict with the record that was created anew")
			}
			s.conflicts(all[1], s.name, backends.Record{}, acquisition("other", 8), "a Swap that expects no record must conflict with an existing one")
			s.shows(all, s.name, last, "a Swap that conflicts changes nothing")
			old = append(old, last)
		}
		s.h.Raw.Delete(s, s.name)
		s.shows(all, s.name, backends.Record{}, "a deleted record is the zero Record")
		s.conflicts(all[1], s.name, last, renewal(last), "a Swap from a version must conflict when the record is gone")
		s.shows(all, s.name, backends.Record{}, "a Swap that conflicts must not bring a deleted record back")
		last = backends.Record{}
	}
}

// res/foreign: a former holder's write never changes a successor's record,
// however late it comes and from whichever of its records.
func lateRelease(s *suite) {
	all := s.handles(2)
	former := []backends.Record{s.swap(all[0], s.name, backends.Record{}, acquisition("former", 1))}
	for i := range 3 {
		former = append(former, s.swap(all[0], s.name, former[i], renewal(former[i])))
	}
	last := former[len(former)-1]
	present := s.swap(all[1], s.name, last, acquisition("successor", last.Token+1))
	const rule = "a late release or renewal must not change a successor's record"
	for _, r := range former {
		s.conflicts(all[0], s.name, r, vacancy(last), rule)
		s.conflicts(all[0], s.name, r, renewal(last), rule)
	}
	s.shows(all, s.name, present, rule)

	// And at the same time as the successor's renewals.
	ctx := s.patient()
	n := s.rounds(100, 10)
	errs := s.together(2, rule, func(i int) error {
		for k := range n {
			if i == 0 {
				r := former[k%len(former)]
				if _, err := all[0].Swap(ctx, s.name, r, vacancy(last)); err == nil {
					return fmt.Errorf("the release from version %q was applied; it must be ErrConflict", r.Version)
				} else if !errors.Is(err, backends.ErrConflict) {
					return fmt.Errorf("the release from version %q must be ErrConflict: %w", r.Version, err)
				}
				continue
			}
			r, err := all[1].Swap(ctx, s.name, present, renewal(present))
			if err != nil {
				return fmt.Errorf("renewal %d of the successor: %w", k+1, err)
			}
			present = r
		}
		return nil
	})
	s.must(errors.Join(errs...), rule)
	s.shows(all, s.name, present, rule)
}

// part/read-after-write: many pairs of handles at once. In each pair one handle
// writes, and as soon as its Swap is acknowledged the other one reads.
func readAfterWrite(s *suite) {
	const rule = "a Load reflects every Swap that was acknowledged before it began, through any handle, and a Swap is acknowledged only when it has been applied"
	const pairs = 8
	all := s.handles(4)
	ctx := s.patient()
	rounds := s.rounds(200, 10)
	failures := s.together(pairs, rule, func(i int) error {
		name := fmt.Sprintf("%s-%d", s.name, i)
		writer, reader := all[i%len(all)], all[(i+1+i/len(all))%len(all)]
		var last backends.Record
		for round := range rounds {
			made, err := writer.Swap(ctx, name, last, acquisition("writer", uint64(round+1)))
			if err != nil {
				return fmt.Errorf("a Swap from the version that the store holds is applied: %w", err)
			}
			switch got, err := reader.Load(ctx, name); {
			case err != nil:
				return fmt.Errorf("Load of election %q: %w", name, err)
			case content(got) == content(last):
				return errors.New(readable("after write %d of %d another handle reads the state before, %v, and not %v", round+1, rounds, got, made))
			case got != made:
				return errors.New(readable("after write %d of %d another handle reads %v, and Swap returned %v; they differ in %s", round+1, rounds, got, made, differences(got, made)))
			}
			last = made
		}
		return nil
	})
	s.must(errors.Join(failures...), rule)
}

// part/stale-read: while records are written, no Load through any handle goes
// back to a state before one that was read or acknowledged.
func staleRead(s *suite) {
	const rule = "a Load reflects every Swap that was acknowledged before it began, and never goes back, through any handle"
	all := s.handles(3)
	var acknowledged atomic.Uint64
	reading, stop := context.WithCancel(s.patient())
	readers := make(chan error, len(all))
	for _, b := range all {
		go func() { readers <- calm(func() error { return readForward(reading, b, s.name, &acknowledged) }) }()
	}
	var last backends.Record
	for round := range s.rounds(200, 20) {
		writer := all[round%len(all)]
		last = s.swap(writer, s.name, last, acquisition("writer", uint64(round+1)))
		acknowledged.Store(last.Token)
		s.shows(all, s.name, last, rule)
	}
	stop()
	for range all {
		if err := wait(s, readers, "a Load returns when its context ends"); err != nil {
			s.Errorf("%s: %v", rule, err)
		}
	}
}

// readForward reads until ctx ends. It returns an error if it reads an older
// state than was acknowledged or read before.
func readForward(ctx context.Context, b backends.Backend, name string, acknowledged *atomic.Uint64) error {
	var seen uint64
	for {
		least := max(seen, acknowledged.Load())
		r, err := b.Load(ctx, name)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, backends.ErrUnavailable): // it shows nothing: fake-gcs-server sends the sum of one state with the text of the next
		case err != nil:
			return err
		case r.Token < least:
			return fmt.Errorf("the record had token %d before, and now Load returns token %d", least, r.Token)
		default:
			seen = r.Token
		}
	}
}
