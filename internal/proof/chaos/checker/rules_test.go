package checker

import (
	"slices"
	"strings"
	"testing"

	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// A ruleCase is a history, and the rule that it breaks.
type ruleCase struct {
	name string
	rule string // none for a good history; two with a space
	tell func(*story)
}

// TestRules shows that each rule finds what breaks it, and nothing else does,
// and that what comes near to that breaks none.
func TestRules(t *testing.T) {
	for _, c := range slices.Concat(exclusionRules, editRules, takeoverRules, backRules, fenceRules, orderRules) {
		t.Run(c.name, func(t *testing.T) {
			var s story
			c.tell(&s)
			h := s.history()
			found := Check(h)
			if got := strings.Join(rulesOf(found), " "); got != c.rule {
				t.Fatalf("found %q, want %q\n%v", got, c.rule, texts(found))
			}
			for _, v := range found {
				t.Log(v)
				checkKept(t, h, v)
			}
		})
	}
}

// rulesOf returns the rules that are broken, each once.
func rulesOf(found []Violation) (rules []string) {
	for _, v := range found {
		if !slices.Contains(rules, v.Rule) {
			rules = append(rules, v.Rule)
		}
	}
	slices.Sort(rules)
	return rules
}

func texts(found []Violation) string {
	var all []string
	for _, v := range found {
		all = append(all, v.String())
	}
	return strings.Join(all, "\n")
}

// checkKept fails if a violation that was kept is not found again.
func checkKept(t *testing.T, h *history.History, v Violation) {
	t.Helper()
	path, err := Keep(t.TempDir(), h, v)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{path, strings.TrimSuffix(path, ".history") + "-whole.history"} {
		loaded, err := history.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		again := func(w Violation) bool { return w.Rule == v.Rule && w.Text == v.Text }
		if found := Check(loaded); !slices.ContainsFunc(found, again) {
			t.Errorf("%s does not show %q any more:\n%s", file, v.Text, texts(found))
		}
	}
}
