package conformance

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/elector-go/elector/backends"
)

// TestReadable: a message is text that a terminal shows and a person can read.
func TestReadable(t *testing.T) {
	r := acquisition("a\x1b[31m", 7)
	r.Attempt.Nonce, r.Value, r.Version = "n", strings.Repeat("v", backends.MaxText), "3"
	r.Extensions = `{"k_a":"1","t_b":"two"}`
	got := readable("%v and %v and %v and %s", r, backends.Record{}, backends.Encode("e", acquisition("b", 1))[:34], "\x1b]0;\xff é\n\ttab\u200b")
	want := `(holder "a\x1b[31m", token 7, TTL 15s, renewed every 4.5s, attempt n.1, value "` + strings.Repeat("v", longest) + `"… (4096 bytes), ` +
		`extensions k_a="1" t_b="two", version "3") and (no record) and {"schema":1,"election":"e","holder and \x1b]0;\xff é` + "\n\ttab" + `\u200b`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	other := r
	other.Token, other.Value = 8, "w"
	if d := differences(r, other); d != "token, value" {
		t.Errorf("the records differ in %s", d)
	}
}

// TestAlmostOver: the suite ends before go test's -timeout does, and says so.
func TestAlmostOver(t *testing.T) {
	if os.Getenv(mutantVariable) != "" {
		Run(t, mutant{}.harness())
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.timeout=20s", "-test.run=^TestAlmostOver$")
	child.Env = append(os.Environ(), mutantVariable+"=none")
	out, err := child.CombinedOutput()
	for _, text := range []string{"go test's -timeout is almost over: set a longer one", "backend/store/describe: there was no time to run it"} {
		if err == nil || !strings.Contains(string(out), text) {
			t.Errorf("the output does not have %q (%v):\n%s", text, err, out)
		}
	}
}
