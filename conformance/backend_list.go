package conformance

import (
	"context"
	"slices"
	"strings"

	"github.com/elector-go/elector/backends"
)

// list/names: List returns the elections that have a record, in order, and no
// others. Other elections of the suite share the store, so the case looks at names
// that begin with its own.
func listNames(s *suite) {
	l, ok := s.open().(backends.Lister)
	if !ok {
		s.notApplicable("the backend is not a Lister: it does not name its elections")
		return
	}
	other := s.open()
	// A store may keep files, or children, beside a record.
	want := []string{s.name, s.name + "-b", s.name + ".json", s.name + "_", s.name + strings.Repeat("x", backends.MaxName-len(s.name))}
	s.load(l, s.name+"-absent")
	s.lists(l, nil, "an election without a record is not listed, not even after a Load")
	records := map[string]backends.Record{}
	for i, name := range slices.Backward(want) { // names come in order, whatever order the records came in
		records[name] = s.swap(other, name, backends.Record{}, acquisition("holder", uint64(i+1)))
	}
	s.lists(l, want, "List shows every record that was written before, through any handle, and nothing else")
	records[s.name] = s.swap(l, s.name, records[s.name], vacancy(records[s.name]))
	s.lists(l, want, "an election that is vacant still has a record")
	if s.h.Raw != nil {
		s.outside("Raw.Delete returns", func() { s.h.Raw.Delete(s, want[1]) })
		s.lists(l, slices.Delete(slices.Clone(want), 1, 2), "a record that was deleted is not listed")
	}
	ended, cancel := context.WithCancel(s.Context())
	cancel()
	err := s.together(1, "List returns when its context ends", func(int) error { _, err := l.List(ended); return err })[0]
	if err == nil || backends.Permanent(err) {
		s.Errorf("List with a context that has ended returns an error that may pass: it returned error %v", err)
	}
}

// lists fails the case unless List returns these names of all that begin with the
// case's.
func (s *suite) lists(l backends.Lister, want []string, rule string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), s.answer())
	defer cancel()
	var names []string
	err := s.together(1, "List returns when its context ends, or before", func(int) (err error) {
		names, err = l.List(ctx)
		return err
	})[0]
	s.must(err, "List")
	for i, name := range names {
		if err := backends.CheckName(name); err != nil {
			s.Fatalf("List returns names of elections: %v", err)
		}
		if i > 0 && names[i-1] >= name {
			s.Fatalf("List returns each name once, in order (backends.Base sees to it): %q comes before %q", names[i-1], name)
		}
	}
	ours := slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, s.name) })
	slices.Sort(want)
	if !slices.Equal(ours, want) {
		s.Fatalf("%s: List returned %q instead of %q", rule, ours, want)
	}
}
