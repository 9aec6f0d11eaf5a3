package main

import (
	"path"
	"slices"
	"strings"

	"github.com/elector-go/elector/internal/choice"
)

// touched returns the mutants of changed files, and those whose case may be in a changed
// test: one in the folder of the case's package. The simulation has the cases of half of the
// mutants, and a change of it counts for none: make mutants has them all.
func touched(all []mutant, changed map[string]bool) (found []mutant) {
	tested := map[string]bool{}
	for file := range changed {
		if strings.HasSuffix(file, "_test.go") {
			tested[path.Dir(file)] = true
		}
	}
	for _, m := range all {
		if slices.ContainsFunc(m.edits, func(e edit) bool { return changed[e.File] }) || m.pkg != simulation && tested[path.Join(m.module, m.pkg)] {
			found = append(found, m)
		}
	}
	return found
}

// atMost returns no more than count of the mutants, spread over all of them, and others for
// each commit.
func atMost(all []mutant, count int, commit string) []mutant {
	if count == 0 || len(all) <= count {
		return all
	}
	all = choice.Turn(all, commit)
	var chosen []mutant
	for i := range count {
		chosen = append(chosen, all[i*len(all)/count])
	}
	return chosen
}
