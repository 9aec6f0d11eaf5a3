package peers

import (
	"fmt"
	"slices"
	"strings"
)

// Names are those of the libraries but ours.
func Names() (all []string) {
	for _, l := range All() {
		if !l.Ours() {
			all = append(all, l.Name)
		}
	}
	return all
}

// Choose returns the libraries that were named, with their variants, all if none
// was; and ours on the stores that they run on. Of these it returns those on the kinds
// of stores that were named, all if none was.
func Choose(wanted, kinds []string) (chosen []Library, err error) {
	matches := func(name, w string) bool { return name == w || strings.HasPrefix(name, w+"/") }
	for _, w := range wanted {
		if !slices.ContainsFunc(Names(), func(n string) bool { return matches(n, w) }) {
			return nil, fmt.Errorf("unknown library %q; known are %s", w, strings.Join(Names(), ", "))
		}
	}
	for _, kind := range kinds {
		if known := Stores(All()); !slices.Contains(known, kind) {
			return nil, fmt.Errorf("unknown store %q; known are %s", kind, strings.Join(known, ", "))
		}
	}
	named := func(l Library) bool {
		return !l.Ours() && (len(wanted) == 0 || slices.ContainsFunc(wanted, func(w string) bool { return matches(l.Name, w) }))
	}
	for _, l := range All() {
		if len(kinds) > 0 && !slices.Contains(kinds, l.Store) {
			continue
		}
		beside := func(other Library) bool { return other.Store == l.Store && named(other) }
		if named(l) || l.Ours() && (len(wanted) == 0 || slices.ContainsFunc(All(), beside)) {
			chosen = append(chosen, l)
		}
	}
	return chosen, nil
}

// Stores returns the kinds of stores that the libraries run on.
func Stores(libraries []Library) (all []string) {
	for _, l := range libraries {
		if !slices.Contains(all, l.Store) {
			all = append(all, l.Store)
		}
	}
	return all
}
