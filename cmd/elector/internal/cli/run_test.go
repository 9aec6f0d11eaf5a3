package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// said runs the command, and returns its exit code and what it wrote.
func said(t *testing.T, env map[string]string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e strings.Builder
	tool := &tool{in: os.Stdin, out: &o, err: &e, env: func(name string) (string, bool) {
		v, found := env[name]
		return v, found
	}}
	code = tool.main(context.Background(), args)
	return code, o.String(), e.String()
}

func TestRunBadInput(t *testing.T) {
	store := "file://" + t.TempDir()
	notExecutable := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(notExecutable, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args string
		env  string // of ELECTOR_URL
		code int
		want string
	}{
		{"no command of elector", "", store, 64, "no command; see elector help"},
		{"unknown command", "walk", store, 64, `unknown command "walk"; see elector help`},
		{"unknown flag", "run a --walk -- true", store, 64, "unknown flag: --walk"},
		{"no election", "run", store, 64, "no election: elector run NAME -- COMMAND"},
		{"no election before --", "run -- true", store, 64, "no election: elector run NAME -- COMMAND"},
		{"no command", "run a", store, 64, "no command: elector run a -- COMMAND"},
		{"no command after --", "run a --", store, 64, "no command: elector run a -- COMMAND"},
		{"no --", "run a true", store, 64, "put -- between the election's name and the command: elector run a -- true"},
		{"two elections", "run a b -- true", store, 64, "run takes one election before --, not 2"},
		{"no URL", "run a -- true", "", 64, "no store: set ELECTOR_URL, as in ELECTOR_URL=etcd://host:2379, or --url-file or --url"},
		{"unknown scheme", "run a -- true", "consul://host", 64, "consul"},
		{"no URL at all", "run a -- true", "host", 64, "URL"},
		{"bad name", "run a/../b -- true", store, 64, "name"},
		{"URL twice", "run a --url file:///tmp --url-file /tmp/x -- true", "", 64, "--url and --url-file are both given"},
		{"no URL file", "run a --url-file /nonexistent -- true", "", 64, "/nonexistent"},
		{"command that does not exist", "run a -- nonexistent-command", store, 127, "nonexistent-command cannot be started"},
		{"path that does not exist", "run a -- /nonexistent", store, 127, "/nonexistent cannot be started"},
		{"command that is no program", "run a -- " + notExecutable, store, 126, "cannot be started"},
		{"flags after -- are the command's", "run a -- nonexistent-command --ttl=1s --walk", store, 127, "nonexistent-command cannot be started"},
		{"store that does not answer", "run a --try -- true", "etcd://127.0.0.1:1", 69, "127.0.0.1:1"},
		{"TTL too short", "run a --ttl 400ms -- true", store, 64, "a lease is valid for 360ms; less 250ms for SIGKILL and 45ms for --loss-grace that leaves 65ms"},
		{"TTL of nothing", "run a --ttl 0s -- true", store, 64, "--ttl is 0s, not above 0"},
		{"TTL without unit", "run a --ttl 15 -- true", store, 64, `invalid argument "15" for "--ttl"`},
		{"grace too long", "run a --loss-grace 4s -- true", store, 64, "--loss-grace is 4s, more than 3.375s, a quarter of the lease's validity"},
		{"grace below 0", "run a --loss-grace -4s -- true", store, 64, "a time is below 0"},
		{"no time for a slow renewal", "run a --renew-every 8s --request-timeout 4s -- true", store, 64, "use a longer --ttl or a shorter one of these"},
		{"try and wait", "run a --try --wait 1s -- true", store, 64, "--try and --wait exclude each other"},
		{"restart and try", "run a --restart --try -- true", store, 64, "--restart campaigns again and again"},
		{"exit code", "run a --held-code 300 -- true", store, 64, "--held-code is 300, not between 0 and 255"},
		{"variable", "run a -- true", store, 64, `the variable ELECTOR_STOP_GRACE: invalid argument "soon"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := map[string]string{}
			if c.env != "" {
				env["ELECTOR_URL"] = c.env
			}
			if c.name == "variable" {
				env["ELECTOR_STOP_GRACE"] = "soon"
			}
			code, out, errs := said(t, env, strings.Fields(c.args)...)
			lines := strings.Split(strings.TrimSuffix(errs, "\n"), "\n")
			if code != c.code || out != "" || !strings.HasPrefix(errs, "elector: ") || len(lines) != 1 || !strings.Contains(errs, c.want) {
				t.Errorf("exit code %d, stdout %q, stderr %q; want %d and one line with %q", code, out, errs, c.code, c.want)
			}
		})
	}
}

func TestRunChecks(t *testing.T) {
	// The rule: H − K − G ≥ RenewEvery + RequestTimeout, K = max(250 ms, TTL/20), G ≤ H/4.
	f := &runFlags{ttl: 15 * time.Second, lossGrace: byDefault}
	o, err := f.options()
	if err != nil || f.hold != 13500*time.Millisecond || f.killBefore != 750*time.Millisecond || f.lossGrace != 1687500*time.Microsecond ||
		o.RenewEvery != 4500*time.Millisecond || o.RequestTimeout != 2250*time.Millisecond {
		t.Errorf("%+v, %+v, %v", f, o, err)
	}
	exact := &runFlags{ttl: 10 * time.Second, lossGrace: 500 * time.Millisecond, renewEvery: 6 * time.Second, requestTimeout: 2 * time.Second}
	if _, err := exact.options(); err != nil {
		t.Errorf("9 s - 0.5 s - 0.5 s = 6 s + 2 s: %v", err)
	}
	tight := *exact
	tight.requestTimeout++
	if _, err := tight.options(); err == nil {
		t.Error("a slow renewal takes longer than there is time, and that is accepted")
	}
}

// Inside elector run, ELECTOR_ID names the candidate outside.
func TestNestedID(t *testing.T) {
	for inside, want := range map[bool]string{false: "outer", true: ""} {
		env := map[string]string{"ELECTOR_ID": "outer", "ELECTOR_TTL": "20s"}
		if inside {
			env["ELECTOR_TOKEN"] = "7"
		}
		tool := &tool{out: &strings.Builder{}, err: &strings.Builder{}, env: func(n string) (string, bool) { v, ok := env[n]; return v, ok }}
		c := tool.runCommand()
		if err := tool.variables(c.Flags()); err != nil {
			t.Fatal(err)
		}
		if id, ttl := c.Flag("id").Value.String(), c.Flag("ttl").Value.String(); id != want || ttl != "20s" {
			t.Errorf("inside %v: id %q, ttl %s; want %q and 20s", inside, id, ttl, want)
		}
	}
}

func TestEnvironmentHasItsOwnToken(t *testing.T) {
	t.Setenv("ELECTOR_TOKEN", "1")
	last := ""
	for _, v := range environment(os.Environ(), false, "a", "id", 2) {
		if strings.HasPrefix(v, "ELECTOR_TOKEN=") {
			last = v // exec.Cmd takes the last one
		}
	}
	if last != "ELECTOR_TOKEN=2" {
		t.Errorf("the command gets %s", last)
	}
}
