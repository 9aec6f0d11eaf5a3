package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/internal/leak"
	"github.com/elector-go/elector/internal/proof/chaos/ledger"
	"github.com/elector-go/elector/internal/proof/child"
)

func TestMain(m *testing.M) {
	child.Prepare()
	leak.Main(m)
}

// campaigns returns a soak whose program is a shell script. It has $seed, $out and
// $ledger; line FAULTS VIOLATIONS PROBLEM appends to the ledger.
func campaigns(t *testing.T, script string) (*soak, *bytes.Buffer) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "chaos")
	head := `#!/bin/sh
seed=$4 out=$6 ledger=$8
line() { printf '2031-01-01T00:00:00Z\tabc\t%s\t1ms\tetcd\t%s\t7\t0\t0\t%s\t%s\n' $seed $1 $2 "$3" >> $ledger; }
echo seed $seed
touch $TMPDIR/left
[ "$(stat -c %a $TMPDIR)" = 755 ] || exit 9
`
	if err := os.WriteFile(program, []byte(head+script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", filepath.Join(dir, "tmp"))
	if err := os.Mkdir(os.TempDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
			t.Errorf("a campaign's temporary files are left: %v, %v", left, err)
		}
	})
	out := &bytes.Buffer{}
	return &soak{length: time.Hour, round: time.Millisecond, dir: filepath.Join(dir, "out"), ledger: filepath.Join(dir, "ledger.tsv"),
		keep: 2, goal: 1000, seed: 5, out: out, program: program}, out
}

// until ends a soak once its ledger has so many campaigns.
func until(t *testing.T, s *soak, n int) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	s.out = writer{s.out, func() {
		if all, _, err := ledger.Read(s.ledger); err != nil || len(all) >= n {
			cancel()
		}
	}}
	return ctx
}

// A writer calls after when something was written.
type writer struct {
	to    interface{ Write([]byte) (int, error) }
	after func()
}

func (w writer) Write(b []byte) (int, error) {
	defer w.after()
	return w.to.Write(b)
}

func seeds(t *testing.T, s *soak) (all []uint64) {
	t.Helper()
	entries, bad, err := ledger.Read(s.ledger)
	if err != nil || len(bad) > 0 {
		t.Fatal(err, bad)
	}
	for _, e := range entries {
		all = append(all, e.Seed)
	}
	return all
}

func folders(t *testing.T, s *soak) (names []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(s.dir, "seed-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		names = append(names, filepath.Base(path))
	}
	return names
}

func TestSoakGoesOn(t *testing.T) {
	s, out := campaigns(t, "line 40 0 ''")
	for range 2 {
		if err := s.run(until(t, s, 3+len(seeds(t, s)))); err != nil {
			t.Fatal(err)
		}
	}
	if got := seeds(t, s); !slices.Equal(got, []uint64{5, 6, 7, 8, 9, 10}) {
		t.Errorf("the seeds are %v", got)
	}
	if got := folders(t, s); len(got) > 0 {
		t.Errorf("folders of campaigns that passed are left: %v", got)
	}
	if !strings.Contains(out.String(), "240 of 1000 faults, 42 elections, 0 overlaps of valid leases, 0 stale writes accepted, 0 violations; 0 campaigns did not pass.") {
		t.Error(out)
	}
}

func TestSoakViolation(t *testing.T) {
	s, out := campaigns(t, `if [ $seed = 6 ]; then
	touch $out/etcd-3-mx-two-valid-12.history $out/etcd-3-mx-two-valid-12-whole.history
	line 40 1 "1 violations"
	exit 1
fi
line 40 0 ''`)
	if err := s.run(until(t, s, 4)); err == nil || err.Error() != "1 of 4 campaigns did not pass" {
		t.Errorf("run returned %v", err)
	}
	if got := folders(t, s); !slices.Equal(got, []string{"seed-000006"}) {
		t.Errorf("the folders are %v", got)
	}
	if got := regexp.MustCompile("(?m)^VIOLATION with seed 6: .*/seed-000006/etcd-3-mx-two-valid-12.history$").FindAllString(out.String(), -1); len(got) != 1 {
		t.Errorf("%d lines for the violation:\n%v", len(got), out)
	}
	if said, err := os.ReadFile(filepath.Join(s.dir, "seed-000006", "chaos.txt")); err != nil || string(said) != "seed 6\n" {
		t.Errorf("the campaign printed %q, %v", said, err)
	}
}

// A campaign that dies is counted as one that did not pass, and the next one has another
// seed. Of the folders the latest are kept, and those with a violation for longer.
func TestSoakCrash(t *testing.T) {
	s, out := campaigns(t, `if [ $seed = 5 ]; then touch $out/a.history; line 40 1 "1 violations"; exit 1; fi
if [ $(($seed % 3)) = 0 ]; then kill -9 $$; fi
line 40 0 ''
`)
	if err := s.run(until(t, s, 12)); err == nil {
		t.Error("run returned no error")
	}
	all, _, err := ledger.Read(s.ledger)
	if err != nil || len(all) != 12 || all[1].Seed != 6 || all[1].Problem != "it ended without a line in the ledger: signal: killed" {
		t.Errorf("%v, %v\n%v", all, err, out)
	}
	if got := folders(t, s); !slices.Equal(got, []string{"seed-000005", "seed-000015"}) {
		t.Errorf("the folders are %v", got)
	}
}

func TestSoakGivesUp(t *testing.T) {
	s, _ := campaigns(t, "exit 3")
	if err := s.run(t.Context()); err == nil || !strings.Contains(err.Error(), "3 campaigns in a row ended without a fault") {
		t.Errorf("run returned %v", err)
	}
	if got := seeds(t, s); len(got) != 3 {
		t.Errorf("the seeds are %v", got)
	}
}

// SIGINT to the campaign lets it end in order, and a campaign cut off is not counted. What
// it has found is kept nevertheless.
func TestSoakInterrupted(t *testing.T) {
	for name, found := range map[string]bool{"nothing found": false, "a violation": true} {
		t.Run(name, func(t *testing.T) {
			s, out := campaigns(t, `trap 'echo in order >> $out/../told; exit 1' INT
if [ $seed = 6 ]; then
	`+map[bool]string{true: "touch $out/a.history"}[found]+`
	touch $out/../begun
	while true; do sleep 0.01; done
fi
line 40 0 ''`)
			ctx, cancel := context.WithCancel(t.Context())
			watched := make(chan bool)
			go func() {
				defer close(watched)
				for t.Context().Err() == nil {
					if _, err := os.Stat(filepath.Join(s.dir, "begun")); err == nil {
						cancel()
						return
					}
					time.Sleep(time.Millisecond)
				}
			}()
			err := s.run(ctx)
			<-watched
			if told, readErr := os.ReadFile(filepath.Join(s.dir, "told")); err != nil != found || readErr != nil || string(told) != "in order\n" {
				t.Errorf("run returned %v; the campaign had time to say %q, %v", err, told, readErr)
			}
			if got := seeds(t, s); !slices.Equal(got, []uint64{5}) {
				t.Errorf("the seeds are %v", got)
			}
			if got := folders(t, s); len(got) > 0 != found || strings.Contains(out.String(), "VIOLATION with seed 6: ") != found {
				t.Errorf("the folders are %v\n%v", got, out)
			}
		})
	}
}

func TestSoakBadLine(t *testing.T) {
	s, out := campaigns(t, "line 40 0 ''")
	if err := os.WriteFile(s.ledger, []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.run(until(t, s, 1)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `not counted: `+s.ledger+`:1: "hello"`) {
		t.Error(out)
	}
	if content, err := os.ReadFile(s.page()); err != nil || !strings.Contains(string(content), "1 lines of the ledger cannot be read") {
		t.Errorf("%v\n%s", err, content)
	}
}

func TestPage(t *testing.T) {
	var all []ledger.Entry
	write := func() string {
		t.Helper()
		var b strings.Builder
		if err := writePage(&b, all, 0, 100_000); err != nil {
			t.Fatal(err)
		}
		if out := b.String(); strings.Contains(out, "http:") || strings.Contains(out, "https:") || strings.Contains(out, "<script>") || strings.Contains(out, "src=") {
			t.Error("the page needs something else")
		}
		return b.String()
	}
	wants := func(text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%q is missing in\n%s", part, text)
			}
		}
	}
	wants(write(), "0 campaigns", `verdict bad`)
	for i := range 3 {
		all = append(all, ledger.Entry{Commit: fmt.Sprint("commit", i/2), Seed: uint64(i), Duration: time.Hour, Places: []string{"etcd", "file"}, Faults: 100 * (i + 1), Elections: 10})
	}
	text := write()
	wants(text, "verdict good", "3 campaigns in 3.0 h: 600 of 100000 faults", "<td class=\"text\">commit0<td>2<td>0<td>2.0<td>300", "seed 2: 300 faults")
	if strings.Contains(text, "did not pass</h2>") || strings.Count(text, `<rect class="faults"`) != 3 {
		t.Error(text)
	}
	all[1].Problem = "a guard <b>was</b> not tried"
	wants(write(), "verdict good", `<rect class="failed"`, "a guard &lt;b&gt;was&lt;/b&gt; not tried", "etcd, file")
	all[1].Violations = 4
	wants(write(), "verdict bad", `<rect class="bad"`, ">4</text>")
	for range 10 {
		all = append(all, all...)
	}
	if text := write(); strings.Count(text, "<rect ") > mostColumns || !strings.Contains(text, "And 824 earlier ones.") {
		t.Errorf("%d columns for %d campaigns", strings.Count(text, "<rect "), len(all))
	}
}
