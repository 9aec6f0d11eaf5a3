package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A check is one search of a model's states.
type check struct {
	name    string
	defines string // of the model, separated by spaces
	expect  string // holds, or the property that must fail
	about   string
	large   bool // only with -large
}

// A search is a check of one model.
type search struct {
	check
	model string // its file in spec
}

// The models, files in spec.
var models = []string{"election.pml", "partition.pml"}

var searches = slices.Concat(of(models[0], elections), of(models[1], partitions))

func of(model string, checks []check) (list []search) {
	for _, c := range checks {
		list = append(list, search{c, model})
	}
	return list
}

// holds is found when every state was searched and no property failed.
const holds = "holds"

type result struct {
	found  string
	states string
	detail string        // what went wrong with the search itself
	time   time.Duration // of processors: the same on a busy machine
}

// failed is found when a search says nothing about the model.
const failed = "FAILED"

func (c check) arguments() []string {
	var list []string
	for define := range strings.FieldsSeq(c.defines) {
		list = append(list, "-D"+define)
	}
	return list
}

// run makes a program of the model in a new directory, and lets it search.
func (c search) run(spec, dir string) (r result) {
	var spent time.Duration
	defer func() { r.time = spent }()
	if err := os.CopyFS(dir, os.DirFS(spec)); err != nil {
		return result{found: failed, detail: err.Error()}
	}
	// What is searched for long is worth an optimizing compiler, which takes
	// longer than the other searches.
	optimize := "-O0"
	if c.expect == holds {
		optimize = "-O1"
	}
	compile := []string{"gcc", optimize, "-w", "-DSAFETY", "-DNOREDUCE", "-DMEMLIM=8192", "-o", "pan", "pan.c"}
	if c.large {
		compile = append(compile, "-DCOLLAPSE") // slower, and half the memory
	}
	for _, command := range [][]string{
		append(append([]string{"spin"}, c.arguments()...), "-a", c.model),
		compile,
		{"./pan", "-m100000"},
	} {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if p := cmd.ProcessState; p != nil {
			spent += p.UserTime() + p.SystemTime()
		}
		if command[0] == "./pan" {
			return verdict(string(out))
		}
		if err != nil {
			return result{found: failed, detail: fmt.Sprintf("%s: %v\n%s", command[0], err, out)}
		}
	}
	return r
}

var (
	violated  = regexp.MustCompile(`(?m)^pan:\d+: assertion violated \(?(\w+)\)? \(at depth \d+\)$`)
	stored    = regexp.MustCompile(`(?m)^\s*(\d+) states, stored`)
	errorsRun = regexp.MustCompile(`errors: (\d+)`)
)

// verdict reads what the search printed. A mutant is caught only by an assertion;
// the good model holds only if the search was not cut short in any way.
func verdict(out string) result {
	r := result{found: failed}
	if m := stored.FindStringSubmatch(out); m != nil {
		r.states = m[1]
	}
	if m := violated.FindStringSubmatch(out); m != nil {
		r.found = m[1]
		return r
	}
	count := errorsRun.FindStringSubmatch(out)
	complete := strings.Contains(out, "Full statespace search for:")
	for _, sign := range []string{"max search depth too small", "out of memory", "memory bound", "Search not completed", "interrupted", "Bit statespace", "error:", "invalid end state (at"} {
		complete = complete && !strings.Contains(out, sign)
	}
	if complete && count != nil && count[1] == "0" && r.states != "" {
		r.found = holds
		return r
	}
	r.detail = "the search is not complete, or found what it did not look for:\n" + out
	return r
}
