package conformance

import (
	"errors"
	"fmt"
	"slices"

	"github.com/elector-go/elector/backends"
)

// batch/mixed: renewals, acquisitions, creations and releases go in one batch, and each
// does what Swap would have done. One that conflicts harms no other.
func batchMixed(s *suite) {
	const kinds = 5
	f := s.fleet("", 2*kinds)
	if f == nil {
		return
	}
	n := len(f.names) / kinds * kinds
	if n == 0 {
		s.notApplicable(fmt.Sprintf("a batch has fewer than %d changes", kinds))
		return
	}
	tried := 0
	for round := range s.rounds(10, 3) {
		var changes []backends.Change
		var made []string
		for i := range n {
			// In each round an election has another kind.
			name, now := f.names[i], f.held[i]
			next := acquisition("successor", now.Token+1)
			kind := "a takeover"
			switch (i + round) % kinds {
			case 0:
				kind, next = "a renewal", renewal(now)
			case 1:
				kind, next = "a release", vacancy(now)
			case 2:
				kind = "an acquisition of a vacancy"
				now = s.swap(f.all[1], name, now, vacancy(now))
			case 3:
				kind = "a creation"
				name, now = fmt.Sprintf("%s-new-%d", name, round), backends.Record{}
				next.Token = 1
			}
			next.Value = fmt.Sprintf("%s %d of %s", kind, round, name)
			if next.Vacant() {
				next.Value = ""
			}
			changes, made = append(changes, backends.Change{Name: name, Prev: now, Next: next}), append(made, kind)
		}
		before := make([]backends.Record, n)
		for i, c := range changes {
			before[i] = c.Prev
		}
		// One of each kind, or none, comes too late.
		late := -1
		if round%2 == 1 {
			late = round % n
			c := changes[late]
			if c.Prev.Exists() && !c.Prev.Vacant() {
				before[late] = s.swap(f.b, c.Name, c.Prev, renewal(c.Prev))
			} else {
				before[late] = s.swap(f.b, c.Name, c.Prev, acquisition("other", c.Prev.Token+1))
			}
		}
		for i, o := range f.send(s.patient(), changes) {
			c := changes[i]
			applied := f.judge(c, o, before[i])
			switch {
			case applied && i == late:
				s.Fatalf("a change is applied only to the version that it replaces: %s of %s replaced another one", made[i], c.Name)
			case i == late && !errors.Is(o.Err, backends.ErrConflict) && !errors.Is(o.Err, backends.ErrNotTried):
				s.Fatalf("a change of a state that is gone is ErrConflict or ErrNotTried: the outcome of %s is %v", made[i], o.Err)
			case i == late:
				s.conflicts(f.all[1], c.Name, c.Prev, c.Next, "a change that conflicts in a batch conflicts as a Swap too")
				o.Record = before[i]
			case applied:
				tried++
			case !errors.Is(o.Err, backends.ErrNotTried):
				s.Fatalf("in a batch of changes of several kinds each is applied, or ErrNotTried, unless it conflicts: the outcome of %s is %v", made[i], o.Err)
			default:
				o.Record = s.swap(f.b, c.Name, c.Prev, c.Next)
			}
			s.continues(f.b, c.Name, o.Record, made[i])
			if c.Name == f.names[i] {
				f.held[i] = s.swap(f.b, c.Name, s.load(f.b, c.Name), acquisition("holder", c.Next.Token+2))
			}
		}
	}
	if tried == 0 {
		s.Errorf("changes of several kinds without a conflict are applied together: in all rounds none was")
	}
}

// continues renews what a change has acquired, in which it must have made all that a Swap
// makes, such as the mark of presence.
func (s *suite) continues(b backends.Backend, name string, held backends.Record, kind string) {
	s.Helper()
	if held.Vacant() {
		s.swap(b, name, held, acquisition("next", held.Token+1))
		return
	}
	if held.Holder == "other" {
		return
	}
	_, err := s.trySwap(b, name, held, renewal(held))
	s.must(err, "%s in a batch leaves what a Swap leaves, and can be renewed", kind)
}

// batch/creations: of several creations of a record, in batches in opposite orders and in
// Swaps, at most one is applied, and all calls return.
func batchCreations(s *suite) {
	b := s.batching()
	if b == nil {
		return
	}
	other, third := s.batching(), s.open()
	all := []backends.Backend{b, other, third}
	n := min(s.rounds(20, 8), b.Describe().MaxSwaps)
	for round := range s.rounds(50, 8) {
		by := func(who string) (changes []backends.Change) {
			for i := range n {
				changes = append(changes, backends.Change{Name: fmt.Sprintf("%s-%d-%d", s.name, round, i), Next: acquisition(who, 1)})
			}
			return changes
		}
		made := [][]backends.Change{by("first"), by("second"), by("third")}
		slices.Reverse(made[1])
		ctx := s.patient()
		outcomes := make([][]backends.Outcome, 3)
		errs := s.together(3, "batches that create the same records in opposite orders return", func(i int) error {
			switch i {
			case 0:
				outcomes[i] = b.SwapMany(ctx, slices.Clone(made[i]))
			case 1:
				outcomes[i] = other.SwapMany(ctx, slices.Clone(made[i]))
			case 2:
				for _, c := range made[i] {
					r, err := third.Swap(ctx, c.Name, c.Prev, c.Next)
					outcomes[i] = append(outcomes[i], backends.Outcome{Record: r, Err: err})
				}
			}
			return nil
		})
		s.must(errors.Join(errs...), "creating at the same time")
		winners := map[string]backends.Record{}
		for who, mine := range outcomes {
			if len(mine) != n {
				s.Fatalf("SwapMany returns an Outcome for each change: it returned %d for %d creations", len(mine), n)
			}
			for i, o := range mine {
				c := made[who][i]
				won, taken := winners[c.Name]
				switch {
				case o.Err == nil && taken:
					s.Fatalf("of many creations of a record at most one is applied: of %s both %v and %v were", c.Name, won, o.Record)
				case o.Err == nil:
					winners[c.Name] = o.Record
				case !errors.Is(o.Err, backends.ErrConflict) && (who == 2 || !errors.Is(o.Err, backends.ErrNotTried)):
					s.Fatalf("a creation that comes too late is ErrConflict, or ErrNotTried in a batch: its error is: %v", o.Err)
				}
			}
		}
		for _, c := range made[0] {
			s.shows(all, c.Name, winners[c.Name], "after a race of creations the record is the winner's")
		}
	}
}
