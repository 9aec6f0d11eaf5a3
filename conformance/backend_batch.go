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

// noBatch is why cases of batches do not apply.
const noBatch = "the backend renews one record at a time: it is no Batcher"

// batching returns a handle that renews many at once; nil if the backend does
// not.
func (s *suite) batching() backends.Batcher {
	s.Helper()
	b, _ := s.open().(backends.Batcher)
	if b == nil {
		s.notApplicable(noBatch)
		return nil
	}
	if most := b.Describe().MaxBatch; most < 2 {
		s.Fatalf("a Batcher says how many renewals it takes at once, in MaxBatch: it says %d", most)
	}
	return b
}

// A fleet is elections held through one handle.
type fleet struct {
	s     *suite
	b     backends.Batcher
	all   []backends.Backend // that one and another, which read
	names []string
	held  []backends.Record // the present states
}

// fleet acquires elections, at most MaxBatch of them, whose names begin with
// the case's and a suffix; nil if the backend is no Batcher.
func (s *suite) fleet(suffix string, n int) *fleet {
	s.Helper()
	b := s.batching()
	if b == nil {
		return nil
	}
	f := &fleet{s: s, b: b, all: []backends.Backend{b, s.open()}}
	f.names = make([]string, min(n, b.Describe().MaxBatch))
	f.held = make([]backends.Record, len(f.names))
	ctx := s.patient()
	const rule = "elections are acquired side by side"
	errs := s.together(len(f.names), rule, func(i int) (err error) {
		f.names[i] = fmt.Sprintf("%s%s-%d", s.name, suffix, i)
		f.held[i], err = b.Swap(ctx, f.names[i], backends.Record{}, acquisition("holder", uint64(i+1)))
		return err
	})
	s.must(errors.Join(errs...), rule)
	return f
}

// renewals are the next ones of some of the elections, each with a value of its
// own.
func (f *fleet) renewals(of ...int) []backends.Renewal {
	renewals := make([]backends.Renewal, len(of))
	for i, k := range of {
		next := renewal(f.held[k])
		next.Value = fmt.Sprintf("renewal %d of %s", next.Attempt.Sequence, f.names[k])
		renewals[i] = backends.Renewal{Name: f.names[k], Prev: f.held[k], Next: next}
	}
	return renewals
}

// first are the numbers of the first n elections.
func first(n int) []int {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	return numbers
}

// send makes a batch and returns what became of each renewal.
func (f *fleet) send(ctx context.Context, renewals []backends.Renewal) []backends.Outcome {
	f.s.Helper()
	var outcomes []backends.Outcome
	err := f.s.together(1, "RenewMany returns", func(int) error {
		outcomes = f.b.RenewMany(ctx, slices.Clone(renewals))
		return nil
	})[0]
	f.s.must(err, "RenewMany of %d", len(renewals))
	f.each(renewals, outcomes)
	return outcomes
}

// each fails the case unless there is an outcome for each renewal.
func (f *fleet) each(renewals []backends.Renewal, outcomes []backends.Outcome) {
	f.s.Helper()
	if len(outcomes) != len(renewals) {
		f.s.Fatalf("RenewMany tells what became of each renewal: it tells of %d, and got %d", len(outcomes), len(renewals))
	}
}

// judge compares what a batch tells of a renewal with what the store holds,
// which was before, and returns whether it was applied. Errors that leave that
// open are not expected here.
func (f *fleet) judge(r backends.Renewal, o backends.Outcome, before backends.Record) bool {
	s := f.s
	s.Helper()
	switch {
	case o.Err == nil && content(o.Record) != content(r.Next):
		s.Fatalf("outcomes are in the order of the renewals, and each is what Swap would have returned: %s was renewed to %+v, and what is told is %+v", r.Name, r.Next, o.Record)
	case o.Err == nil && (!o.Record.Exists() || o.Record.Version == r.Prev.Version):
		s.Fatalf("a renewal in a batch returns the new record with a version of its own: %s was renewed over version %q, and what is told is %+v", r.Name, r.Prev.Version, o.Record)
	case o.Err == nil:
		s.shows(f.all, r.Name, o.Record, "a renewal that is said to be applied is there for every handle")
		return true
	case errors.Is(o.Err, backends.ErrConflict), errors.Is(o.Err, backends.ErrNotTried), errors.Is(o.Err, backends.ErrDeposed):
		s.shows(f.all, r.Name, before, fmt.Sprintf("a renewal that is said not to be applied is not (%v)", o.Err))
	default:
		s.Fatalf("a store that answers tells of each renewal whether it was applied: of %s it says %v", r.Name, o.Err)
	}
	return false
}

// number returns which election has the name.
func (f *fleet) number(name string) int { return slices.Index(f.names, name) }

// renewed makes a batch that nothing stands in the way of.
func (f *fleet) renewed(of ...int) {
	s := f.s
	s.Helper()
	renewals := f.renewals(of...)
	outcomes := f.send(s.patient(), renewals)
	for i, r := range renewals {
		if !f.judge(r, outcomes[i], r.Prev) {
			s.Fatalf("renewals that nothing stands in the way of are applied together: of %d that of %s is %v", len(of), r.Name, outcomes[i].Err)
		}
		f.held[of[i]] = outcomes[i].Record
	}
}

// largest makes a batch which the store may find too large: each is then not
// tried, and made by a Swap. It returns how many were not tried.
func (f *fleet) largest(renewals []backends.Renewal) (alone int) {
	s := f.s
	s.Helper()
	for i, o := range f.send(s.patient(), renewals) {
		r := renewals[i]
		if f.judge(r, o, r.Prev) {
			f.held[f.number(r.Name)] = o.Record
			continue
		}
		if !errors.Is(o.Err, backends.ErrNotTried) {
			s.Fatalf("a batch that is too large is ErrNotTried: that of %s is %v", r.Name, o.Err)
		}
		alone++
		f.held[f.number(r.Name)] = s.swap(f.b, r.Name, r.Prev, r.Next)
	}
	return alone
}

// batchEach: renewals in a batch are each what Swap would have made; one that
// conflicts is not applied, and each of the others is either applied and said
// so, or not applied and said so, and then made by a Swap.
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
	// which take much room in a store that escapes them.
	large := s.fleet("-large", f.b.Describe().MaxBatch)
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
	s.Logf("%d renewals in a batch; in five of the largest %d were not tried", len(large.names), alone)
}

// spoilt makes a batch in which the renewal of one election is of a state that
// the store holds no more.
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
			s.Fatalf("a renewal is applied only to the version that it replaces: %s, and %+v became %+v", what, now, o.Record)
		case i == k && !errors.Is(o.Err, backends.ErrConflict) && !errors.Is(o.Err, backends.ErrNotTried):
			s.Fatalf("a renewal of a state that is gone is ErrConflict or ErrNotTried: %s, and its outcome is %v", what, o.Err)
		case i == k:
			s.conflicts(f.b, r.Name, r.Prev, r.Next, "what a batch has not applied because of its version Swap does not apply either ("+what+")")
			f.held[i] = s.swap(f.b, r.Name, now, acquisition("holder", now.Token+1))
		case applied:
			f.held[i] = o.Record
		case !errors.Is(o.Err, backends.ErrNotTried):
			s.Fatalf("of a batch with a conflict each of the others is applied, or ErrNotTried: %s, and the outcome of another, %s, is %v", what, r.Name, o.Err)
		default:
			f.held[i] = s.swap(f.b, r.Name, r.Prev, r.Next)
		}
	}
}

// batchRace: of renewals from one version, in batches in opposite orders and
// in Swaps, at most one is applied, and nobody waits for ever.
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
		made := [][]backends.Renewal{mine, theirs, single}
		told := make([][]backends.Outcome, 3)
		errs := s.together(3, "batches of the same elections in opposite orders end", func(i int) error {
			switch i {
			case 0:
				told[i] = f.b.RenewMany(ctx, slices.Clone(mine))
			case 1:
				told[i] = other.RenewMany(ctx, slices.Clone(theirs))
			case 2:
				for k := 0; k < n; k += 3 {
					r, err := third.Swap(ctx, single[k].Name, single[k].Prev, single[k].Next)
					told[i] = append(told[i], backends.Outcome{Record: r, Err: err})
				}
			}
			return nil
		})
		s.must(errors.Join(errs...), "renewing at once")
		f.each(mine, told[0])
		f.each(theirs, told[1])
		winners := map[string]backends.Record{}
		for who, outcomes := range told {
			for i, o := range outcomes {
				r := made[who][i]
				if who == 2 {
					r = single[3*i]
				}
				switch won, taken := winners[r.Name]; {
				case o.Err == nil && taken:
					s.Fatalf("of many renewals from one version at most one is applied: over version %q of %s both %+v and %+v are said to be", r.Prev.Version, r.Name, won, o.Record)
				case o.Err == nil && content(o.Record) != content(r.Next):
					s.Fatalf("outcomes are in the order of the renewals: %s was renewed to %+v, and what is told is %+v", r.Name, r.Next, o.Record)
				case o.Err == nil:
					winners[r.Name] = o.Record
					if who < 2 {
						shared++
					}
				case !errors.Is(o.Err, backends.ErrConflict) && (who == 2 || !errors.Is(o.Err, backends.ErrNotTried)):
					s.Fatalf("a renewal that comes too late is ErrConflict, or in a batch ErrNotTried: got %v", o.Err)
				}
			}
		}
		for i, name := range f.names {
			if won, ok := winners[name]; ok {
				f.held[i] = won
			}
			s.shows(f.all, name, f.held[i], "after a race of batches the record is the winner's, or what it was if nobody won")
		}
	}
	if shared == 0 {
		s.Errorf("of two batches at once something is applied: in all rounds nothing was")
	}
}

// batchPresence: who was deposed is not renewed in a batch either, and the
// others are.
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
				s.Fatalf("who was deposed is not renewed in a batch either: its outcome must be ErrDeposed or ErrNotTried, and is %+v", o)
			case i == k:
				if _, err := f.b.Swap(s.patient(), r.Name, r.Prev, r.Next); !errors.Is(err, backends.ErrDeposed) {
					s.Fatalf("who was deposed cannot renew: Swap must be ErrDeposed, got %v", err)
				}
			case applied:
				f.held[i] = o.Record
			case !errors.Is(o.Err, backends.ErrNotTried):
				s.Fatalf("who was not deposed is renewed, or ErrNotTried: the outcome of another, %s, is %v", r.Name, o.Err)
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

// batchCancel: a batch whose context ends returns, does not guess, and spoils
// nothing for later calls on the same handle.
func batchCancel(s *suite) {
	f := s.fleet("", s.rounds(20, 5))
	if f == nil {
		return
	}
	n := len(f.names)
	start := time.Now()
	f.renewed(first(n)...)
	whole := time.Since(start) // and the reads after it: no measure, only a scale
	rounds := s.rounds(20, 4)
	for round := range rounds {
		cancelled, cancel := context.WithCancel(s.Context())
		cancel()
		f.ending(cancelled, func() {})

		expired, cancel := context.WithDeadline(s.Context(), time.Now().Add(-time.Second))
		f.ending(expired, func() {})
		cancel()

		underWay, cancel := context.WithCancel(s.Context())
		f.ending(underWay, cancel)
		cancel()

		later, cancel := context.WithTimeout(s.Context(), whole*time.Duration(round+1)/time.Duration(rounds*n))
		f.ending(later, func() {})
		cancel()
	}
	f.renewed(first(n)...)
}

// ending makes a batch while end is called.
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
		outcomes = f.b.RenewMany(ctx, slices.Clone(renewals))
		return nil
	})
	s.must(errors.Join(errs...), "RenewMany whose context ends")
	f.each(renewals, outcomes)
	for i, r := range renewals {
		err := outcomes[i].Err
		was, now := s.fence(f.b, r.Name, r.Prev)
		refused := errors.Is(err, backends.ErrConflict) || errors.Is(err, backends.ErrNotTried)
		switch applied := content(was) == content(r.Next); {
		case backends.Permanent(err) || errors.Is(err, backends.ErrDeposed):
			s.Fatalf("an ended context must not look like an error that stays: %v", err)
		case err == nil && !applied:
			s.Fatalf("a renewal that is said to be applied was, whatever became of the context: wrote %+v, found %+v", r.Next, was)
		case refused && applied:
			s.Fatalf("a renewal that is said not to be applied is not, and will not be, whatever became of the context: it was %v, and %+v was found", err, was)
		case errors.Is(err, backends.ErrConflict) && was == r.Prev:
			s.Fatalf("ErrConflict says that the store holds another version: it held version %q, as expected, and the outcome was %v", r.Prev.Version, err)
		case !applied && was != r.Prev:
			s.Fatalf("a renewal whose context ends is applied whole or not at all: found %+v over %+v", was, r.Prev)
		}
		f.held[i] = now
		s.shows(f.all, r.Name, now, "a batch whose context ended leaves the handle usable")
	}
}
