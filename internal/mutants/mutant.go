package main

import (
	"strings"

	"github.com/elector-go/elector/internal/overlay"
)

// A mutant is the code broken in one way that a case must catch.
type mutant struct {
	name   string
	breaks string // which guarantee of the design, by its number
	catch  string // the case: group/case
	edits  []edit
	pkg    string // of the test that holds the case, and the test's name;
	parent string // by default those of the simulation
	alone  bool   // the replays of steps must catch it, and nothing else judges
	module string // the folder of the package's module, if that is not the root
}

// simulation is the package that most cases are in.
const simulation = "./internal/simulation"

// An edit is an overlay.Edit that is shorter to write.
type edit struct{ File, Old, New string }

func (m mutant) changes() (edits []overlay.Edit) {
	for _, e := range m.edits {
		edits = append(edits, overlay.Edit(e))
	}
	return edits
}

// test is the full name of the case. One that is a test itself has no parent.
func (m mutant) test() string { return strings.TrimPrefix(m.parent+"/"+m.catch, "/") }

// pattern is the -run pattern that selects the case alone.
func (m mutant) pattern() string {
	return "^" + strings.ReplaceAll(m.test(), "/", "$/^") + "$"
}

func init() {
	for i := range mutants {
		if m := &mutants[i]; m.pkg == "" {
			m.pkg, m.parent = simulation, "TestSimulation"
		}
	}
}
