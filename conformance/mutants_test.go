package conformance

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// mutantVariable names the mutant that a child process runs cases on. A case on a
// mutant must fail, so it cannot run in this process.
const mutantVariable = "CONFORMANCE_MUTANT"

// TestMutants breaks the memory backend in one way after another. Each time the
// case that the table names must fail, and name the rule that was broken.
func TestMutants(t *testing.T) {
	if name := os.Getenv(mutantVariable); name != "" {
		m := mutants[name]
		if m.waits {
			patience = 3 * time.Second
		}
		h := m.harness()
		stage{"backend", basicCases, len(basicCases)}.run(t, h)
		stage{"backend", backendCases, len(backendCases)}.run(t, h)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	caught := map[string]bool{}
	for name, m := range mutants {
		caught[m.caughtBy] = true
		t.Run(name, func(t *testing.T) {
			group, of, _ := strings.Cut(m.caughtBy, "/")
			child := exec.CommandContext(t.Context(), self, "-test.v", "-test.timeout=2m", "-test.run=^TestMutants$/^backend$/^"+group+"$/^"+of+"$")
			child.Env = append(os.Environ(), mutantVariable+"="+name)
			var output strings.Builder
			child.Stdout, child.Stderr = &output, &output
			if !m.waits { // those that wait need no processor: start them all
				t.Parallel()
			}
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			if m.waits {
				t.Parallel()
			}
			err := child.Wait()
			if err == nil {
				t.Fatalf("%s does not catch it:\n%s", m.caughtBy, output.String())
			}
			if failed := "--- FAIL: TestMutants/backend/" + m.caughtBy; !strings.Contains(output.String(), failed) {
				t.Fatalf("the output has no %q (%v):\n%s", failed, err, output.String())
			}
			if !strings.Contains(output.String(), m.rule) {
				t.Fatalf("%s fails and does not name the rule %q:\n%s", m.caughtBy, m.rule, output.String())
			}
		})
	}
	for _, c := range slices.Concat(basicCases, backendCases) {
		if !caught[c.name] {
			t.Errorf("case %s has no mutant", c.name)
		}
	}
}

// A mutant is the memory backend with a defect.
type mutant struct {
	caughtBy string // the case
	rule     string // which the case must name
	waits    bool   // the case waits for what never happens

	// handle breaks a new handle. All handles on the store share the state.
	handle func(h *broken, state *state)
	reader func(h *broken, state *state)     // breaks one that was opened for reading alone
	raw    func(r *Raw)                      // breaks the raw access
	setups map[string]func(testing.TB) error // wrong set-ups
}

// mutants are all of them, by what is broken.
var mutants = merged(exclusionMutants, recordMutants, extensionMutants, nameMutants, watchMutants, presenceMutants, batchMutants, loadMutants, listMutants, readerMutants, callMutants)

func merged(tables ...map[string]mutant) map[string]mutant {
	all := map[string]mutant{}
	for _, table := range tables {
		for name, m := range table {
			if _, taken := all[name]; taken {
				panic("two mutants are called " + name)
			}
			all[name] = m
		}
	}
	return all
}
