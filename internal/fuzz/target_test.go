package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRead(t *testing.T) {
	const line = "fuzz: elapsed: 3s, execs: 1000 (300/sec), new interesting: 2 (total: 20)\nfuzz: elapsed: 5s, execs: 1234 (100/sec), new interesting: 5 (total: 23)\n"
	for _, c := range []struct {
		what, printed string
		exit, failed  bool
		input         string
	}{
		{"clean", line + "PASS\nok  \tx\t5.0s\n", false, false, ""},
		{"a new input", line + "--- FAIL: FuzzA (2.11s)\n    --- FAIL: FuzzA (0.00s)\n        a_test.go:9: bad\n    \n    Failing input written to testdata/fuzz/FuzzA/771e938e4458e983\n", true, true, "testdata/fuzz/FuzzA/771e938e4458e983"},
		{"a kept input", "failure while testing seed corpus entry: FuzzA/771e938e4458e983\nfuzz: elapsed: 0s, gathering baseline coverage: 0/2 completed\n--- FAIL: FuzzA (0.10s)\n", true, true, "testdata/fuzz/FuzzA/771e938e4458e983"},
		{"a seed", "failure while testing seed corpus entry: FuzzA/seed#3\n--- FAIL: FuzzA (0.10s)\n", true, true, ""},
		{"its time is over", line + "--- FAIL: FuzzA (5.03s)\n    context deadline exceeded\nFAIL\nexit status 1\n", true, false, ""},
		{"a context of its own", line + "--- FAIL: FuzzA (3.03s)\n    context deadline exceeded\nFAIL\nexit status 1\n", true, true, ""},
		{"it says so itself", line + "--- FAIL: FuzzA (5.03s)\n    --- FAIL: FuzzA (0.00s)\n        a_test.go:9: context deadline exceeded\n    \n    Failing input written to testdata/fuzz/FuzzA/1\n", true, true, "testdata/fuzz/FuzzA/1"},
		{"it does not build", "# x\n./a_test.go:3:1: syntax error\nFAIL\tx [build failed]\n", true, true, ""},
		{"it did not run", "testing: warning: no fuzz tests to fuzz\nPASS\nok  \tx\t0.0s\n", false, true, ""},
		{"its time was too short", "fuzz: elapsed: 0s, gathering baseline coverage: 0/9 completed\nPASS\nok  \tx\t1.1s\n", false, true, ""},
		{"a leak", line + "PASS\nleak: 5 goroutines, 2 at the start\nFAIL\n", true, true, ""},
	} {
		r := read(c.printed, c.exit, 5*time.Second)
		if r.failed != c.failed || r.input != c.input {
			t.Errorf("%s: failed %v with input %q, want %v with %q", c.what, r.failed, r.input, c.failed, c.input)
		}
		if idle := !c.exit && r.executions == 0; r.idle != idle {
			t.Errorf("%s: idle %v, want %v", c.what, r.idle, idle)
		}
		if strings.Contains(c.printed, "1234") && (r.executions != 1234 || r.interesting != 5) {
			t.Errorf("%s: %d executions, %d interesting", c.what, r.executions, r.interesting)
		}
	}
}

// A module with a target that fails and one that does not. The last is not one.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":        "module example.com/m\n\ngo 1.26\n",
		"p/p.go":        "package p\n",
		"p/p_test.go":   "package p\n\nimport \"testing\"\n\nfunc FuzzGood(f *testing.F) { f.Fuzz(func(*testing.T, []byte) {}) }\n\nfunc FuzzBad(f *testing.F) {\n\tf.Add(\"a\")\n\tf.Fuzz(func(t *testing.T, s string) {\n\t\tif s != \"a\" {\n\t\t\tt.Error(\"not a\")\n\t\t}\n\t})\n}\n",
		"q/q.go":        "package q\n",
		"q/q_test.go":   "package q\n\nimport \"testing\"\n\nfunc TestNothing(*testing.T) {}\n\nfunc helper(f *testing.F) {}\n\nvar _ = helper\n",
		"r/r.go":        "package r\n",
		"r/bad_test.go": "package r // is not built: it has no such function\n\nvar _ = missing\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOWORK", "off")
	all, err := targets(t.Context(), dir)
	if err != nil || len(all) != 2 || all[0].name != "FuzzGood" || all[1].name != "FuzzBad" {
		t.Fatalf("the targets are %v, %v", all, err)
	}
	if r := all[0].run(t.Context(), time.Second); r.failed || r.executions == 0 || r.verdict() != "clean" {
		t.Errorf("a target that does not fail: %+v", r)
	}
	bad := all[1].run(t.Context(), time.Minute)
	if !bad.failed || filepath.Dir(bad.input) != filepath.Join(dir, "p/testdata/fuzz/FuzzBad") {
		t.Errorf("a target that fails: %+v", bad)
	}
	if _, err := os.Stat(bad.input); err != nil {
		t.Errorf("the input that fails is not there: %v", err)
	}
	if again := all[1].run(t.Context(), time.Minute); !again.failed || again.input != bad.input {
		t.Errorf("a target that fails still, with an input that was kept: %+v", again)
	}
	if report([]result{bad}) {
		t.Error("a failure is reported as none")
	}
}
