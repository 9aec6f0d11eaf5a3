package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/elector-go/elector/backends"
)

// noBatch is why the cases of batches do not apply.
const noBatch = "the backend is not a BatchSwapper: it renews one record at a time"

// batching returns a handle that is a BatchSwapper, or nil if the backend is not one.
func (s *suite) batching() backends.BatchSwapper {
	s.Helper()
	b, _ := s.open().(backends.BatchSwapper)
	if b == nil {
		s.notApplicable(noBatch)
		return nil
	}
	if most := b.Describe().MaxSwaps; most < 2 {
		s.Fatalf("a BatchSwapper sets Description.MaxSwaps, the most renewals that it takes at once, to 2 or more: it is %d", most)
	}
	return b
}

// A fleet is a number of elections held through one handle.
type fleet struct {
	s     *suite
	b     backends.BatchSwapper
	all   []backends.Backend // b and another handle, to read
	names []string
	held  []backends.Record // the present states
}

// fleet acquires n elections, at most MaxSwaps. Their names begin with the
// case's name and a suffix. It returns nil if the backend is not a BatchSwapper.
func (s *suite) fleet(suffix string, n int) *fleet {
	s.Helper()
	b := s.batching()
	if b == nil {
		return nil
	}
	f := &fleet{s: s, b: b, all: []backends.Backend{b, s.open()}}
	f.names = make([]string, min(n, b.Describe().MaxSwaps))
	f.held = make([]backends.Record, len(f.names))
	ctx := s.patient()
	const rule = "many elections are acquired at the same time"
	errs := s.together(len(f.names), rule, func(i int) (err error) {
		f.names[i] = fmt.Sprintf("%s%s-%d", s.name, suffix, i)
		f.held[i], err = b.Swap(ctx, f.names[i], backends.Record{}, acquisition("holder", uint64(i+1)))
		return err
	})
	s.must(errors.Join(errs...), rule)
	return f
}

// renewals returns the next renewals of some of the elections, each with a
// different value.
func (f *fleet) renewals(of ...int) []backends.Change {
	renewals := make([]backends.Change, len(of))
	for i, k := range of {
		next := renewal(f.held[k])
		next.Value = fmt.Sprintf("renewal %d of %s", next.Attempt.Sequence, f.names[k])
		renewals[i] = backends.Change{Name: f.names[k], Prev: f.held[k], Next: next}
	}
	return renewals
}

// first returns the numbers of the first n elections.
func first(n int) []int {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	return numbers
}

// send makes a batch and returns the outcomes.
func (f *fleet) send(ctx context.Context, renewals []backends.Change) []backends.Outcome {
	f.s.Helper()
	var outcomes []backends.Outcome
	err := f.s.together(1, "SwapMany returns when its context ends, or before", func(int) error {
		outcomes = f.b.SwapMany(ctx, slices.Clone(renewals))
		return nil
	})[0]
	f.s.must(err, "SwapMany of %d", len(renewals))
	f.each(renewals, outcomes)
	return outcomes
}

// each fails the case unless there is an outcome for each renewal.
func (f *fleet) each(renewals []backends.Change, outcomes []backends.Outcome) {
	f.s.Helper()
	if len(outcomes) != len(renewals) {
		f.s.Fatalf("SwapMany returns an Outcome for each renewal: it returned %d for %d renewals", len(outcomes), len(renewals))
	}
}

// judge compares the outcome of a renewal with the store, which held before
// until then, and reports whether the renewal was applied. Errors that leave that
// open are not expected here.
func (f *fleet) judge(r backends.Change, o backends.Outcome, before backends.Record) bool {
	s := f.s
	s.Helper()
	switch {
	case o.Err == nil && content(o.Record) != content(r.Next):
		s.Fatalf("outcomes are in the order of the renewals, and each is what Swap would have returned: %s was renewed to %v, and its outcome is %v", r.Name, r.Next, o.Record)
	case o.Err == nil && (!o.Record.Exists() || o.Record.Version == r.Prev.Version):
		s.Fatalf("a renewal in a batch returns the new record with a new version: %s was renewed from version %q, and its outcome is %v", r.Name, r.Prev.Version, o.Record)
	case o.Err == nil:
		s.shows(f.all, r.Name, o.Record, "a renewal whose outcome has no error was applied, and every handle reads it")
		return true
	case errors.Is(o.Err, backends.ErrConflict), errors.Is(o.Err, backends.ErrNotTried), errors.Is(o.Err, backends.ErrDeposed):
		s.shows(f.all, r.Name, before, fmt.Sprintf("a renewal that was refused is not applied (%v)", o.Err))
	default:
		s.Fatalf("the outcome of a renewal is no error, ErrConflict, ErrNotTried or ErrDeposed while the store works: that of %s is %v", r.Name, o.Err)
	}
	return false
}

// number returns the number of the election with this name.
func (f *fleet) number(name string) int { return slices.Index(f.names, name) }

// renewed makes a batch that has no conflict.
func (f *fleet) renewed(of ...int) {
	s := f.s
	s.Helper()
	renewals := f.renewals(of...)
	outcomes := f.send(s.patient(), renewals)
	for i, r := range renewals {
		if !f.judge(r, outcomes[i], r.Prev) {
			s.Fatalf("renewals without a conflict are applied together: of %d renewals the outcome of %s is %v", len(of), r.Name, outcomes[i].Err)
		}
		f.held[of[i]] = outcomes[i].Record
	}
}

// largest makes a batch that may be too large for the store. Renewals that were
// not tried are then made by a Swap; largest returns how many.
func (f *fleet) largest(renewals []backends.Change) (alone int) {
	s := f.s
	s.Helper()
	for i, o := range f.send(s.patient(), renewals) {
		r := renewals[i]
		if f.judge(r, o, r.Prev) {
			f.held[f.number(r.Name)] = o.Record
			continue
		}
		if !errors.Is(o.Err, backends.ErrNotTried) {
			s.Fatalf("a batch that is too large is ErrNotTried: the outcome of %s is %v", r.Name, o.Err)
		}
		alone++
		f.held[f.number(r.Name)] = s.swap(f.b, r.Name, r.Prev, r.Next)
	}
	return alone
}

// batch/each: each renewal in a batch does what Swap would have done. One that
// conflicts is not applied. Each of the others is applied, or is ErrNotTried and
// not applied, and is then made by a Swap.
func batchEach(s *suite) {
	f := s.fleet("", s.rounds(100, 20))
	if f == nil {
		return
	}
	n := len(f.names)
	for range s.rounds(10, 3) {
		f.renewed(0)
		f.renewed(n-1, 0)
		f.renewed(first(n)...)
		backwards := first(n)
		slices.Reverse(backwards)
		f.renewed(backwards...)
	}
	for _, k := range []int{0, n / 2, n - 1} {
		f.spoilt(k, "one was renewed meanwhile", func(r backends.Record) { s.swap(f.all[1], f.names[k], r, renewal(r)) })
	}
	k := n / 2
	f.spoilt(k, "one was taken over", func(r backends.Record) {
		s.swap(f.all[1], f.names[k], r, acquisition("successor", r.Token+1))
	})
	f.spoilt(k, "one was vacated", func(r backends.Record) { s.swap(f.b, f.names[k], r, vacancy(r)) })
	if raw := s.h.Raw; raw != nil {
		f.spoilt(k, "one was deleted", func(backends.Record) { raw.Delete(s, f.names[k]) })
		old := raw.Get(s, f.names[k])
		f.renewed(k)
		f.spoilt(k, "one was put back to what it was before", func(backends.Record) { raw.Put(s, f.names[k], old) })
	}
	f.renewed(first(n)...)

	// As large as the elector makes them: 128 KiB of values before and after,
	// which take much more space in a store that escapes them.
	large := s.fleet("-large", f.b.Describe().MaxSwaps)
	alone := 0
	for _, step := range []struct {
		values int // that are not empty
		of     string
	}{{32, "\x01"}, {0, ""}, {16, "v"}, {16, "\x01"}, {32, ""}} {
		renewals := large.renewals(first(len(large.names))...)
		for i := range renewals {
			renewals[i].Next.Value = ""
			if i < step.values {
				renewals[i].Next.Value = strings.Repeat(step.of, backends.MaxText)
			}
		}
		alone += large.largest(renewals)
	}
	s.Logf("%d renewals in a batch; in the five largest batches %d were not tried", len(large.names), alone)
}

// spoilt makes a batch in which one renewal replaces a state that the store no
// longer holds.
func (f *fleet) spoilt(k int, what string, spoil func(r backends.Record)) {
	s := f.s
	s.Helper()
	renewals := f.renewals(first(len(f.names))...)
	spoil(f.held[k])
	now := s.load(f.b, f.names[k])
	for i, o := range f.send(s.patient(), renewals) {
		r := renewals[i]
		before := r.Prev
		if i == k {
			before = now
		}
		applied := f.judge(r, o, before)
		switch {
		case i == k && applied:
			s.Fatalf("a renewal is applied only to the version that it replaces: %s, and %v became %v", what, now, o.Record)
		case i == k && !errors.Is(o.Err, backends.ErrConflict) && !errors.Is(o.Err, backends.ErrNotTried):
			s.Fatalf("a renewal of a state that is gone is ErrConflict or ErrNotTried: %s, and the outcome is %v", what, o.Err)
		case i == k:
			s.conflicts(f.b, r.Name, r.Prev, r.Next, "a renewal that conflicts in a batch conflicts as a Swap too ("+what+")")
			f.held[i] = s.swap(f.b, r.Name, now, acquisition("holder", now.Token+1))
		case applied:
			f.held[i] = o.Record
		case !errors.Is(o.Err, backends.ErrNotTried):
			s.Fatalf("in a batch with a conflict each of the others is applied, or ErrNotTried: %s, and the outcome of another, %s, is %v", what, r.Name, o.Err)
		default:
			f.held[i] = s.swap(f.b, r.Name, r.Prev, r.Next)
		}
	}
}

// batch/race: of several renewals from one version, in batches in opposite orders
// and in Swaps, at most one is applied, and all calls return.
func batchRace(s *suite) {
	f := s.fleet("", s.rounds(20, 8))
	if f == nil {
		return
	}
	other, third := s.batching(), s.open()
	n := len(f.names)
	shared := 0 // renewals applied in a batch
	for range s.rounds(200, 20) {
		mine := f.renewals(first(n)[:n-n/4]...)
		theirs := f.renewals(first(n)[n/4:]...)
		slices.Reverse(theirs)
		single := f.renewals(first(n)...)
		for i := range theirs {
			theirs[i].Next = renewal(theirs[i].Next)
			theirs[i].Next.Value = "another's"
		}
		for i := range single {
			single[i].Next = renewal(renewal(single[i].Next))
			single[i].Next.Value = "by itself"
		}
		ctx := s.patient()
		made := [][]backends.Change{mine, theirs, single}
		all := make([][]backends.Outcome, 3)
		errs := s.together(3, "batches of the same elections in opposite orders return", func(i int) error {
			switch i {
			case 0:
				all[i] = f.b.SwapMany(ctx, slices.Clone(mine))
			case 1:
				all[i] = other.SwapMany(ctx, slices.Clone(theirs))
			case 2:
				for k := 0; k < n; k += 3 {
					r, err := third.Swap(ctx, single[k].Name, single[k].Prev, single[k].Next)
					all[i] = append(all[i], backends.Outcome{Record: r, Err: err})
				}
			}
			return nil
		})
		s.must(errors.Join(errs...), "renewing at the same time")
		f.each(mine, all[0])
		f.each(theirs, all[1])
		winners, doubtful := map[string]backends.Record{}, map[string]backends.Record{}
		for who, outcomes := range all {
			for i, o := range outcomes {
				r := made[who][i]
				if who == 2 {
					r = single[3*i]
				}
				switch won, taken := winners[r.Name]; {
				case o.Err == nil && taken:
					s.Fatalf("of many renewals from one version at most one is applied: from version %q of %s both %v and %v were", r.Prev.Version, r.Name, won, o.Record)
				case o.Err == nil && content(o.Record) != content(r.Next):
					s.Fatalf("outcomes are in the order of the renewals: %s was renewed to %v, and its outcome is %v", r.Name, r.Next, o.Record)
				case o.Err == nil:
					winners[r.Name] = o.Record
					if who < 2 {
						shared++
					}
				case who == 2 && errors.Is(o.Err, backends.ErrUnavailable): // a row that a batch has locked, say
					doubtful[r.Name] = r.Next
				case !errors.Is(o.Err, backends.ErrConflict) && (who == 2 || !errors.Is(o.Err, backends.ErrNotTried)):
					s.Fatalf("a renewal that comes too late is ErrConflict, or ErrNotTried in a batch: its error is: %v", o.Err)
				}
			}
		}
		for i, name := range f.names {
			won, ok := winners[name]
			if next, doubt := doubtful[name]; doubt && !ok {
				won = s.load(f.b, name)
				ok = content(won) == content(next)
			}
			if ok {
				f.held[i] = won
			}
			s.shows(f.all, name, f.held[i], "after a race of batches the record is the winner's, or unchanged if none won")
		}
	}
	if shared == 0 {
		s.Errorf("when two batches meet, some renewals are applied: in all rounds none was")
	}
}

// batch/presence: a deposed holder is not renewed in a batch, and the others are.
func batchPresence(s *suite) {
	if s.present() == nil {
		return
	}
	f := s.fleet("", s.rounds(20, 8))
	if f == nil {
		return
	}
	n := len(f.names)
	f.renewed(first(n)...)
	for _, k := range []int{n / 2, 0} {
		s.depose(f.names[k])
		renewals := f.renewals(first(n)...)
		for i, o := range f.send(s.patient(), renewals) {
			r := renewals[i]
			applied := f.judge(r, o, r.Prev)
			switch {
			case i == k && (applied || errors.Is(o.Err, backends.ErrConflict)):
				s.Fatalf("a deposed holder is not renewed in a batch: the outcome must be ErrDeposed or ErrNotTried, and it is %v", o)
			case i == k:
				if _, err := s.trySwap(f.b, r.Name, r.Prev, r.Next); !errors.Is(err, backends.ErrDeposed) {
					s.Fatalf("a deposed holder cannot renew: Swap must be ErrDeposed, and its error is: %v", err)
				}
			case applied:
				f.held[i] = o.Record
			case !errors.Is(o.Err, backends.ErrNotTried):
				s.Fatalf("a holder that was not deposed is renewed, or ErrNotTried: the outcome of %s is %v", r.Name, o.Err)
			default:
				f.held[i] = s.swap(f.b, r.Name, r.Prev, r.Next)
			}
		}
		others := slices.DeleteFunc(first(n), func(i int) bool { return i == k })
		f.renewed(others...)
		// A new acquisition has a mark again.
		f.held[k] = s.swap(f.b, f.names[k], f.held[k], acquisition("holder", f.held[k].Token+1))
		f.renewed(first(n)...)
	}
}

// batch/cancel: a batch whose context ends returns, does not guess its outcome,
// and leaves the handle usable.
func batchCancel(s *suite) {
	f := s.fleet("", s.rounds(20, 5))
	if f == nil {
		return
	}
	n := len(f.names)
	start := time.Now()
	f.renewed(first(n)...)
	whole := time.Since(start) // with the reads after it: only a scale
	rounds := s.rounds(20, 4)
	for round := range rounds {
		s.withEnds(f.ending)
		later, cancel := context.WithTimeout(s.Context(), whole*time.Duration(round+1)/time.Duration(rounds*n))
		f.ending(later, func() {})
		cancel()
	}
	f.renewed(first(n)...)
}

// ending makes a batch and calls end at the same time.
func (f *fleet) ending(ctx context.Context, end func()) {
	s := f.s
	s.Helper()
	renewals := f.renewals(first(len(f.names))...)
	var outcomes []backends.Outcome
	errs := s.together(2, "a batch returns when its context ends", func(i int) error {
		if i == 1 {
			end()
			return nil
		}
		outcomes = f.b.SwapMany(ctx, slices.Clone(renewals))
		return nil
	})
	s.must(errors.Join(errs...), "SwapMany whose context ends")
	f.each(renewals, outcomes)
	for i, r := range renewals {
		err := outcomes[i].Err
		was, now := s.fence(f.b, r.Name, r.Prev)
		refused := errors.Is(err, backends.ErrConflict) || errors.Is(err, backends.ErrNotTried)
		switch applied := content(was) == content(r.Next); {
		case backends.Permanent(err) || errors.Is(err, backends.ErrDeposed):
			s.Fatalf("an ended context must not be reported as a permanent error: %v", err)
		case err == nil && !applied:
			s.Fatalf("a renewal whose outcome has no error was applied, even if the context has ended: it wrote %v, and the store holds %v", r.Next, was)
		case refused && applied:
			s.Fatalf("a renewal that was refused is not applied, then or later, even if the context has ended: it was %v, and the store holds %v", err, was)
		case errors.Is(err, backends.ErrConflict) && was == r.Prev:
			s.Fatalf("ErrConflict means that the store holds another version, and no other error may be reported as one: it held version %q, as expected, and the outcome was %v", r.Prev.Version, err)
		case !applied && was != r.Prev:
			s.Fatalf("a renewal whose context ends is applied completely or not at all: the store holds %v after %v", was, r.Prev)
		}
		f.held[i] = now
		s.shows(f.all, r.Name, now, "after a batch whose context ended the handle works")
	}
}
