package conformance

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// rejected are backends as a newcomer may write them, and the case and the rule
// that must be named when their author runs the suite.
var rejected = map[string]mutant{
	"a Swap that ignores prev": {caughtBy: "mx/attempt", rule: "a Swap from the version before conflicts",
		handle: mutants["Swap ignores prev"].handle},
	"a stale Load": {caughtBy: "part/read-after-write", rule: "a Load reflects every Swap that was acknowledged before it began, through any handle",
		handle: mutants["each handle reads its own cache"].handle},
	"success before the commit": {caughtBy: "part/read-after-write", rule: "a Swap is acknowledged only when it has been applied",
		handle: mutants["Swap succeeds before it commits"].handle},
	"any error reported as a conflict": {caughtBy: "ctx/cancel", rule: "ErrConflict means that the store holds another version, and no other error may be reported as one",
		handle: mutants["every error is a conflict"].handle},
	"any error of the client reported as a conflict": {caughtBy: "amb/client", rule: "ErrConflict means that the store holds another version, and no other error may be reported as one",
		handle: mutants["every error of the client is a conflict"].handle},
	"versions reused": {caughtBy: "mx/aba", rule: "a version is never used again, not even after the record was deleted and created anew",
		handle: mutants["versions start again after a deletion"].handle},
	"a failed Load reported as an empty record": {caughtBy: "ctx/cancel", rule: "a Load that cannot read returns an error, never an empty record",
		handle: mutants["a failed Load is an empty record"].handle},

	"a Load that never returns": {caughtBy: "part/read-after-write", rule: "this did not happen within", waits: true, handle: func(b *broken, _ *state) {
		b.load = func(context.Context, string) (backends.Record, error) { select {} }
	}},
	"a Swap that panics": {caughtBy: "part/read-after-write", rule: "a call panicked, and no call may", handle: func(b *broken, _ *state) {
		b.swap = func(context.Context, string, backends.Record, backends.Record) (backends.Record, error) {
			panic("not written yet")
		}
	}},
	"a Close that never returns": {caughtBy: "store/describe", rule: "Close returns", waits: true, handle: func(b *broken, _ *state) {
		b.close = func() error { select {} }
	}},
}

// TestRejected runs the whole suite on each of them, as its author would. It must
// end within a minute, name the rule and what was not run, and print no dump.
func TestRejected(t *testing.T) {
	if name := os.Getenv(mutantVariable); name != "" {
		m := rejected[name]
		if m.waits {
			patience = 3 * time.Second
		}
		Run(t, m.harness())
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range rejected {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			child := exec.CommandContext(t.Context(), self, "-test.timeout=1m", "-test.run=^TestRejected$")
			child.Env = append(os.Environ(), mutantVariable+"="+name)
			started := time.Now()
			out, err := child.CombinedOutput()
			output := string(out)
			t.Logf("rejected after %v", time.Since(started).Round(10*time.Millisecond))
			if err == nil {
				t.Fatalf("the suite passes:\n%s", output)
			}
			ends := "because they rest on the rules that were broken:\n        backend/" + m.caughtBy + ": "
			for _, text := range []string{"--- FAIL: TestRejected/backend/" + m.caughtBy, ends, m.rule, "not run: ", " of group elector"} {
				if !strings.Contains(output, text) {
					t.Errorf("the output does not have %q", text)
				}
			}
			for _, text := range []string{"test timed out", "\ngoroutine ", "TestRejected/elector"} {
				if strings.Contains(output, text) {
					t.Errorf("the output has %q", text)
				}
			}
			if t.Failed() {
				t.Logf("the output:\n%s", output)
			}
		})
	}
}
