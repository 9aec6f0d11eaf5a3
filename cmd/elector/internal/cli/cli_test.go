package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/elector-go/elector/backends"
	_ "github.com/elector-go/elector/backends/file"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/internal/storeurl"
)

// A result is what a run of the command left.
type result struct {
	out, err string
	code     int
}

// run runs the command with variables, as KEY=value, and arguments.
func run(t *testing.T, env []string, args ...string) result {
	t.Helper()
	var out, err bytes.Buffer
	tool := &tool{in: os.Stdin, out: &out, err: &err, env: environ(env)}
	code := tool.main(t.Context(), args)
	return result{out.String(), err.String(), code}
}

func environ(env []string) func(string) (string, bool) {
	return func(key string) (string, bool) {
		for _, variable := range env {
			if k, value, _ := strings.Cut(variable, "="); k == key {
				return value, true
			}
		}
		return "", false
	}
}

// commands are those that users see, besides cobra's own.
func commands(t *testing.T) (all []*cobra.Command) {
	t.Helper()
	for _, c := range (&tool{}).root().Commands() {
		if c.Name() != "help" && c.Name() != "completion" && !c.Hidden {
			all = append(all, c)
		}
	}
	if len(all) < 5 {
		t.Fatalf("there are only %d commands", len(all))
	}
	return all
}

// Every command's help has a description, and an example that begins with its own
// name.
func TestHelp(t *testing.T) {
	for _, c := range commands(t) {
		r := run(t, nil, "help", c.Name())
		if r.code != 0 || r.err != "" || c.Short == "" || c.Long == "" || !strings.Contains(r.out, "Examples:\n  elector "+c.Name()) {
			t.Errorf("help %s: code %d\n%s%s", c.Name(), r.code, r.out, r.err)
		}
		for line := range strings.Lines(c.Long + "\n" + c.Example) {
			if len(line) > 90 || strings.Contains(line, "\t") {
				t.Errorf("help %s: line %q", c.Name(), line)
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s has no help", c.Name(), f.Name)
			}
		})
	}
}

// Every flag has a variable; the flag goes before it, and a bad value is named.
func TestVariables(t *testing.T) {
	samples := map[string][]string{"duration": {"42s", "7s"}, "bool": {"true", "false"}, "int": {"42", "7"}, "uint64": {"42", "7"}, "string": {"forty-two", "seven"}}
	for i, c := range commands(t) {
		c.InheritedFlags() // merges the root's
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && f.Name != "url" { // address reads ELECTOR_URL, after --url-file
				names = append(names, f.Name)
			}
		})
		for _, name := range names {
			c := commands(t)[i] // whose flags are not set
			c.InheritedFlags()
			f := c.Flags().Lookup(name)
			sample, ok := samples[f.Value.Type()]
			if !ok {
				t.Errorf("%s --%s: this test knows no value of type %s", c.Name(), f.Name, f.Value.Type())
				continue
			}
			variable := "ELECTOR_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
			if err := (&tool{env: environ([]string{variable + "=" + sample[0]})}).variables(c.Flags()); err != nil || f.Value.String() != sample[0] {
				t.Errorf("%s: with %s=%s the flag is %s, error %v", c.Name(), variable, sample[0], f.Value, err)
			}
			c.Flags().Set(f.Name, sample[1])
			(&tool{env: environ([]string{variable + "=" + sample[0]})}).variables(c.Flags())
			if f.Value.String() != sample[1] {
				t.Errorf("%s: %s goes before --%s", c.Name(), variable, f.Name)
			}
		}
	}
	r := run(t, []string{"ELECTOR_URL=memory://", "ELECTOR_TTL=soon"}, "doctor")
	if r.code != exitUsage || !strings.Contains(r.err, "ELECTOR_TTL") {
		t.Errorf("a bad variable: code %d, %q", r.code, r.err)
	}
}

// Bad input has an exit code and one line that says what to do.
func TestBadInput(t *testing.T) {
	store := []string{"ELECTOR_URL=file://" + t.TempDir()}
	two := filepath.Join(t.TempDir(), "urls")
	if err := os.WriteFile(two, []byte("memory://a\nmemory://b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		env  []string
		args string
		code int
		says string
	}{
		{nil, "", exitUsage, "elector help"},
		{store, "elect", exitUsage, `unknown command "elect"`},
		{nil, "leader jobs", exitUsage, "ELECTOR_URL"},
		{nil, "list", exitUsage, "ELECTOR_URL"},
		{nil, "doctor", exitUsage, "ELECTOR_URL"},
		{store, "leader", exitUsage, "name of an election"},
		{store, "leader jobs invoices", exitUsage, "name of an election"},
		{store, "observe", exitUsage, "name of an election"},
		{store, "list jobs", exitUsage, "no arguments"},
		{store, "doctor jobs", exitUsage, "no arguments"},
		{store, "leader a/b", exitUsage, "election name"},
		{store, "leader jobs --out", exitUsage, "--out"},
		{store, "leader jobs -o yaml", exitUsage, "not table, tsv or json"},
		{store, "list -o yaml", exitUsage, "not table, tsv or json"},
		{store, "version -o yaml", exitUsage, "not table, tsv or json"},
		{store, "doctor -o yaml", exitUsage, "not table, tsv or json"},
		{store, "doctor --ttl -1s", exitUsage, "--ttl"},
		{store, "doctor --ttl 25h", exitUsage, "--ttl"},
		{nil, "list --url fyle:///tmp", exitUsage, "file"},
		{nil, "list --url memory:// --url-file " + two, exitUsage, "both"},
		{nil, "list --url-file " + two, exitUsage, "one URL"},
		{nil, "list --url-file /nowhere", exitUsage, "/nowhere"},
		{nil, "list --url file:///nowhere/elections", exitMisconfigured, "no election has ever used it"},
	} {
		r := run(t, test.env, strings.Fields(test.args)...)
		if r.code != test.code || r.out != "" || strings.Count(r.err, "\n") != 1 || !strings.HasPrefix(r.err, "elector: ") || !strings.Contains(r.err, test.says) {
			t.Errorf("elector %s: code %d, want %d; it prints %q and %q, want %q", test.args, r.code, test.code, r.out, r.err, test.says)
		}
	}
}

var signsIn atomic.Pointer[storeurl.Login] // of the last handle of signing://

func init() {
	backends.Register("signing", func(ctx context.Context, u *url.URL) (backends.Backend, error) {
		login, err := storeurl.LoginOf(ctx, u, "")
		signsIn.Store(&login)
		return memory.New(), err
	})
}

// The password in a --url-file can be rotated while a command runs.
func TestURLFileIsReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "url")
	for _, args := range []string{"leader jobs", "pause jobs", "run jobs -- true"} {
		for i, password := range []string{"old", "new"} {
			if err := os.WriteFile(file, []byte("signing://u:"+password+"@host\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				run(t, nil, append([]string{"--url-file", file}, strings.Fields(args)...)...)
			}
			if _, got, err := (*signsIn.Load())(); got != password || err != nil {
				t.Errorf("elector %s signs in with %q, %v; want %q", args, got, err, password)
			}
		}
	}
}

// A command that changes what exists creates nothing if the store is mistyped.
func TestTypoCreatesNothing(t *testing.T) {
	typo := filepath.Join(t.TempDir(), "typo")
	for _, args := range []string{"leader jobs", "list", "observe jobs", "history jobs", "doctor --read-only", "resign jobs", "pause jobs", "resume jobs",
		"partitions jobs", "partitions drain jobs m", "partitions undrain jobs m", "partitions resize jobs 2"} {
		if r := run(t, []string{"ELECTOR_URL=file://" + typo}, strings.Fields(args)...); r.code != exitMisconfigured || !strings.Contains(r.err+r.out, "no election has ever used it") {
			t.Errorf("elector %s: code %d, %s%s", args, r.code, r.out, r.err)
		}
		if _, err := os.Stat(typo); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("elector %s has made the directory: %v", args, err)
		}
	}
	if r := run(t, []string{"ELECTOR_URL=file://" + typo}, "run", "jobs", "--", "true"); r.code != 0 {
		t.Errorf("the first elector run of a store makes it: code %d, %s", r.code, r.err)
	}
}

// The shell is offered commands, forms of the output, and the store's elections.
func TestCompletion(t *testing.T) {
	env := []string{"ELECTOR_URL=file://" + t.TempDir()}
	if r := run(t, env, "doctor"); r.code != 0 {
		t.Fatal(r)
	}
	for args, want := range map[string][]string{
		"leader ":          {"elector-doctor"},
		"observe ":         {"elector-doctor"},
		"leader jobs ":     nil,
		"list --output ":   formats,
		"leader --output ": formats,
	} {
		r := run(t, env, append([]string{"__complete"}, strings.Split(args, " ")...)...)
		lines := strings.Split(strings.TrimSpace(r.out), "\n")
		if got := lines[:len(lines)-1]; r.code != 0 || !slices.Equal(got, want) {
			t.Errorf("elector %s<TAB>: got %q, want %q", args, got, want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if r := run(t, nil, "completion", shell); r.code != 0 || len(r.out) < 100 {
			t.Errorf("completion %s: code %d, %q", shell, r.code, r.err)
		}
	}
}

func TestVersion(t *testing.T) {
	r := run(t, nil, "version", "-o", "json")
	var b map[string]any
	if err := json.Unmarshal([]byte(r.out), &b); err != nil || r.code != 0 {
		t.Fatalf("%v: %+v", err, r)
	}
	for _, key := range []string{"version", "go", "system"} {
		if text := fmt.Sprint(b[key]); text == "" || text == "<nil>" {
			t.Errorf("%s is %q", key, text)
		}
	}
}
