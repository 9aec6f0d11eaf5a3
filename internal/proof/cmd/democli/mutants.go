package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/elector-go/elector/internal/overlay"
)

const guardian = "cmd/elector/internal/guardian/"

// mutants are known ways to leave a command running; package mutants has more, with
// the cases that catch them.
var mutants = map[string][]overlay.Edit{
	"no-guardian": { // only the wrapper kills
		{File: guardian + "guard_unix.go", Old: `func (g *guard) killBy() Moment { return g.command.Deadline.Add(-g.command.Kill) }`, New: `func (g *guard) killBy() Moment { return never }`},
		{File: guardian + "guard_unix.go", Old: `return g.killBy().Add(-g.command.Grace)`, New: `return never`},
	},
	"pdeathsig-alone": {
		{File: guardian + "processes_linux.go", Old: "	chase()\n", New: ""},
		{File: guardian + "processes_linux.go", Old: `if leads[p.group] && !killed[p.group]`, New: `if false`},
		{File: guardian + "processes_linux.go", Old: "		if !spared(p.pid) {\n			p.kill()", New: "		if !spared(p.pid) && p.pid == command {\n			p.kill()"},
		{File: guardian + "follow_unix.go", Old: `		if childless() {`, New: "		if childless() || true {"},
		{File: guardian + "guard_unix.go", Old: "			g.running, g.killing = false, true\n			g.tell(report{Exit: &s})", New: "			g.tell(report{Exit: &s})\n			g.tell(report{Empty: true})\n			return nil"},
	},
	// The guardian is slow here, so that the break shows; slow alone breaks nothing.
	"resigned-before-the-reaping": append([]overlay.Edit{
		{File: guardian + "follow_unix.go", Old: `empty = empty || r.Empty || r.Failed != ""`, New: "empty = empty || r.Empty || r.Failed != \"\"\n			if r.Exit != nil {\n				g.note(r)\n				return\n			}"},
	}, slow...),
	"grace-beyond-h": {
		{File: guardian + "guard_unix.go", Old: `		return min(g.killBy(), g.killAt)`, New: `		return g.killAt`},
		{File: guardian + "guard_unix.go", Old: `now >= min(g.killBy(), g.killAt) {`, New: `now >= g.killAt {`},
	},
}

// slow is a guardian that begins late to kill what the command has left. It is no
// mutant: nothing may be found.
var slow = []overlay.Edit{{
	File: guardian + "guard_unix.go", Old: "			g.running, g.killing = false, true\n", New: "			g.running, g.killing = false, true\n			g.hunt.next = Now().Add(300 * time.Millisecond)\n",
}}

func overlayOf(root, dir, mutant string) (string, error) {
	edits, known := mutants[mutant]
	if mutant == "slow" {
		edits, known = slow, true
	}
	if !known {
		return "", fmt.Errorf("there is no mutant %q, only %s", mutant, strings.Join(slices.Sorted(maps.Keys(mutants)), ", "))
	}
	return overlay.Write(root, dir, "mutant", edits)
}
