package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPage holds the page to the code and to the model, without spin.
func TestPage(t *testing.T) {
	if err := checkPage("../.."); err != nil {
		t.Error(err)
	}
}

func TestPageThatIsWrong(t *testing.T) {
	if err := namesCode("../..", "`renew.go:renew` and `renew.go:renewal`"); err == nil || !strings.Contains(err.Error(), "renew.go:renewal") {
		t.Errorf("a function that does not exist: %v", err)
	}
	if err := namesCode("../..", "`kept.go:renew`"); err == nil {
		t.Error("a file that does not exist passes")
	}
	if err := namesCode("../..", "nothing"); err == nil {
		t.Error("a page without any function passes")
	}
	const model = "inline see() {\n}\n#ifdef NO_FENCE\n"
	if err := namesModel("`election.pml:see` `NO_FENCE`", "election.pml", model); err != nil {
		t.Error(err)
	}
	for _, page := range []string{"`NO_FENCE`", "`election.pml:see`", "`election.pml:see` `election.pml:sea` `NO_FENCE`"} {
		if namesModel(page, "election.pml", model) == nil {
			t.Errorf("this page passes: %s", page)
		}
	}
}

// TestNames: a search has a directory of its name, and -show finds it by that.
func TestNames(t *testing.T) {
	models := map[string]string{}
	for _, c := range searches {
		if other, taken := models[c.name]; taken {
			t.Errorf("%s is a search of %s and of %s", c.name, other, c.model)
		}
		models[c.name] = c.model
	}
}

// TestMutantsAreChecked finds a mutant in a model that no check tries.
func TestMutantsAreChecked(t *testing.T) {
	for _, model := range models {
		text, err := os.ReadFile(filepath.Join("..", "..", "spec", model))
		if err != nil {
			t.Fatal(err)
		}
		tried := map[string]bool{}
		for _, c := range searches {
			for define := range strings.FieldsSeq(c.defines) {
				name, _, _ := strings.Cut(define, "=")
				tried[name] = tried[name] || c.model == model
			}
		}
		for _, name := range ifdef.FindAllStringSubmatch(string(text), -1) {
			if !tried[name[1]] {
				t.Errorf("no check of %s defines %s", model, name[1])
			}
		}
	}
}

const complete = `
Full statespace search for:
	never claim         	- (none specified)
	assertion violations	+
	invalid end states	+

State-vector 76 byte, depth reached 1495, errors: 0
   711765 states, stored
`

func TestVerdict(t *testing.T) {
	caught := "pan:1: assertion violated one_valid_lease (at depth 157)\npan: wrote election.pml.trail\n\n" +
		"Warning: Search not completed\n" + strings.ReplaceAll(complete, "errors: 0", "errors: 1")
	for _, c := range []struct{ name, out, found string }{
		{"complete", complete, holds},
		{"caught", caught, "one_valid_lease"},
		{"too deep", "error: max search depth too small\n" + complete, failed},
		{"no memory", "pan: reached -DMEMLIM bound\n" + "Warning: Search not completed\n" + complete, failed},
		{"bits", strings.ReplaceAll(complete, "Full statespace", "Bit statespace"), failed},
		{"deadlock", "pan:1: invalid end state (at depth 10)\n" + strings.ReplaceAll(complete, "errors: 0", "errors: 1"), failed},
		{"nothing", "", failed},
	} {
		if r := verdict(c.out); r.found != c.found {
			t.Errorf("%s: found %s, not %s", c.name, r.found, c.found)
		}
	}
}
