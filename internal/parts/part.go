package main

import "strings"

// A part is some of the tests, which one process runs.
type part struct {
	name     string
	module   string   // its folder; empty for the root's
	packages []string // patterns of packages; one package if shared is set
	run      string   // -run
	skip     string   // -skip
	tags     string
	modfile  string   // below the root, instead of the module's go.mod
	args     []string // of the test program
	plain    bool     // without the race detector, also where there is a compiler
	cached   bool     // a result that Go has kept will do, because no server or process takes part
	shared   bool     // other parts run tests of the same package: it is built once for all

	small   bool     // make test runs it too
	apart   bool     // it runs only if it is named
	long    bool     // it takes many minutes, so that a run which has few leaves it out
	busy    bool     // it keeps a processor busy, where the others mostly wait
	idle    bool     // it waits for times to pass and hardly needs a processor, so it begins at once
	stores  []string // the kinds of stores that it starts
	table   string   // of results, suite or faults
	columns []string // the stores that must be in it
	pages   bool     // it reads pages of documentation
}

func (p part) dir() string {
	if p.module == "" {
		return "."
	}
	return p.module
}

// build names the test program that parts share.
func (p part) build() string {
	return strings.Join([]string{p.dir(), strings.Join(p.packages, " "), p.tags, p.modfile}, "|")
}
