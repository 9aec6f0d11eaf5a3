package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/operate"
)

// list --watch prints what changes: a lease that lapses, an election that comes, one that
// goes, and a store that fails and comes back.
func TestListWatch(t *testing.T) {
	watchEvery, listEvery = 20*time.Millisecond, 20*time.Millisecond
	defer func() { watchEvery, listEvery = 2*time.Second, 10*time.Second }()
	dir := t.TempDir()
	abandon(t, dir, "dead", "300ms")
	vacate := lead(t, "file://"+dir, "jobs", "v", time.Minute)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, said := &lockedBuffer{wrote: func() {}}, &lockedBuffer{wrote: func() {}}
	tool := &tool{in: os.Stdin, out: out, err: said, env: environ([]string{"ELECTOR_URL=file://" + dir}), output: "json"}
	ended := make(chan error, 1)
	go func() { ended <- tool.watchList(ctx, false) }()
	shows := func(b *lockedBuffer, text string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			b.mutex.Lock()
			found := strings.Contains(b.String(), text)
			b.mutex.Unlock()
			if found {
				return
			}
		}
		t.Fatalf("it does not print %s, but %q and %q", text, out, said)
	}
	shows(out, `"election":"dead","state":"held","id":"dead"`)
	shows(out, `"election":"jobs","state":"held","id":"a"`)
	shows(out, `"election":"dead","state":"lapsed"`)
	if err := vacate.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	shows(out, `"election":"jobs","state":"vacant"`)
	lead(t, "file://"+dir, "late", "", time.Minute)
	shows(out, `"election":"late","state":"held"`)
	if err := os.Remove(filepath.Join(dir, "dead.json")); err != nil {
		t.Fatal(err)
	}
	shows(out, `"election":"dead","state":"gone"`)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	var states []string
	for line := range strings.Lines(out.String()) {
		var r struct {
			Time, Election, State string
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Time == "" {
			t.Errorf("%q: %v", line, err)
		}
		if r.Election == "dead" {
			states = append(states, r.State)
		}
	}
	if !slices.Equal(states, []string{"held", "lapsed", "gone"}) {
		t.Errorf("the states of one election are %q", states)
	}
	if r := run(t, []string{"ELECTOR_URL=file://" + dir}, "list", "--watch", "--names"); r.code != exitUsage {
		t.Errorf("--watch and --names: %+v", r)
	}
}

// A table says what a single read does not show.
func TestOneReadDoesNotKnow(t *testing.T) {
	dir := t.TempDir()
	env := []string{"ELECTOR_URL=file://" + dir}
	abandon(t, dir, "dead", "10s")
	for _, args := range []string{"list -o table", "leader dead -o table"} {
		if r := run(t, env, strings.Fields(args)...); r.code != 0 || !strings.Contains(r.err, "--watch shows within 11s") {
			t.Errorf("%s: %+v", args, r)
		}
	}
	if r := run(t, env, "list"); r.err != "" {
		t.Errorf("for programs: %+v", r)
	}
}

// --to is completed with the candidates that have led, without the leader.
func TestCompleteCandidate(t *testing.T) {
	url := "file://" + t.TempDir()
	for _, id := range []string{"x", "y", "z"} {
		e, err := elector.Open(t.Context(), url, "jobs", &elector.Options{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		l, err := e.Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if id != "z" {
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	r := run(t, []string{"ELECTOR_URL=" + url}, "__complete", "resign", "jobs", "--to", "")
	if lines := strings.Split(r.out, "\n"); r.code != 0 || !slices.Equal(lines[:2], []string{"y", "x"}) || !strings.HasPrefix(lines[2], ":") {
		t.Errorf("%+v", r)
	}
}

func TestLasted(t *testing.T) {
	start := time.Unix(1e9, 0)
	now := start.Add(time.Hour)
	for _, c := range []struct {
		term  operate.Term
		want  time.Duration
		known bool
	}{
		{operate.Term{Start: start, End: start.Add(90 * time.Second), Reason: "resigned"}, 90 * time.Second, true},
		{operate.Term{Start: start}, time.Hour, true},
		{operate.Term{Start: start, Reason: "unknown"}, 0, false},
		{operate.Term{End: start, Reason: "expired"}, 0, false},
		{operate.Term{Start: start, End: start.Add(-time.Second), Reason: "expired"}, 0, false},
	} {
		if d, known := lasted(c.term, now); d != c.want || known != c.known {
			t.Errorf("%+v: %v, %v; want %v, %v", c.term, d, known, c.want, c.known)
		}
	}
}
