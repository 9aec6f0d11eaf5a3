package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector"
)

// lead leads an election on the store, without a goroutine that outlives the test.
func lead(t *testing.T, url, name, value string, ttl time.Duration) *elector.Lease {
	t.Helper()
	e, err := elector.Open(t.Context(), url, name, &elector.Options{ID: "a", Value: value, TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	lease, err := e.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// abandon leaves the record of a leader that died.
func abandon(t *testing.T, dir, name string, ttl string) {
	t.Helper()
	record := `{"schema":1,"election":"` + name + `","holder":"dead","token":7,"ttl":"` + ttl + `","renew_every":"1ms","attempt":"n.1","value":"v"}`
	if err := os.WriteFile(filepath.Join(dir, name+".json"), []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
}

// leader has a state and an exit code for each election.
func TestLeader(t *testing.T) {
	dir := t.TempDir()
	url := "file://" + dir
	env := []string{"ELECTOR_URL=" + url}
	if r := run(t, env, "leader", "jobs"); r.code != exitVacant || r.out != "jobs\tvacant\t\t0\t0s\t\t\t\n" {
		t.Errorf("an election that never was: %+v", r)
	}
	lease := lead(t, url, "jobs", "host:80", time.Minute)
	if r := run(t, env, "leader", "jobs"); r.code != 0 || !strings.HasPrefix(r.out, "jobs\theld\ta\t") || !strings.HasSuffix(r.out, "\t1m0s\thost:80\t\t\n") || r.err != "" {
		t.Errorf("an election that is held: %+v", r)
	}
	r := run(t, env, "leader", "jobs", "-o", "json")
	var row map[string]any
	if err := json.Unmarshal([]byte(r.out), &row); err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	for _, key := range []string{"election", "state", "id", "token", "value", "ttl_seconds", "unchanged_seconds"} {
		if _, ok := row[key]; !ok || len(row) != 7 {
			t.Errorf("JSON has no %s, or other fields: %s", key, r.out)
		}
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := run(t, env, "leader", "jobs", "--watch"); r.code != exitVacant {
		t.Errorf("after a resignation: %+v", r)
	}
	abandon(t, dir, "crashed", "200ms")
	if r := run(t, env, "leader", "crashed"); r.code != 0 || !strings.Contains(r.out, "\theld\tdead\t7\t") {
		t.Errorf("one look at the record of a dead leader: %+v", r)
	}
	if r := run(t, env, "leader", "crashed", "--watch"); r.code != exitLapsed || !strings.Contains(r.out, "\tlapsed\tdead\t7\t") {
		t.Errorf("--watch of the record of a dead leader: %+v", r)
	}
	lead(t, url, "alive", "", 2*time.Second)
	if r := run(t, env, "leader", "alive", "--watch"); r.code != 0 || !strings.Contains(r.out, "\theld\ta\t") {
		t.Errorf("--watch of a leader that lives: %+v", r)
	}
}

// list shows every election, and a foreign record as what it is.
func TestList(t *testing.T) {
	dir := t.TempDir()
	env := []string{"ELECTOR_URL=file://" + dir}
	if r := run(t, env, "list"); r.code != 0 || r.out != "" || r.err != "" {
		t.Errorf("an empty store: %+v", r)
	}
	for _, name := range []string{"b", "a", "c"} {
		abandon(t, dir, name, "15s")
	}
	if err := os.WriteFile(filepath.Join(dir, "foreign.json"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run(t, env, "list", "--names"); r.out != "a\nb\nc\nforeign\n" || r.code != 0 {
		t.Errorf("--names: %+v", r)
	}
	if r := run(t, env, "list"); r.out != "a\theld\tdead\t7\t15s\tv\nb\theld\tdead\t7\t15s\tv\nc\theld\tdead\t7\t15s\tv\nforeign\tforeign\t\t0\t0s\t\n" || r.code != 0 {
		t.Errorf("%+v", r)
	}
	if r := run(t, env, "list", "-o", "json"); !strings.HasPrefix(r.out, `{"election":"a","state":"held","id":"dead","token":7,"ttl_seconds":15,"value":"v"}`+"\n") {
		t.Errorf("as JSON: %+v", r)
	}
	if r := run(t, env, "list", "-o", "table"); !strings.HasPrefix(r.out, "ELECTION  STATE    ID    TOKEN  TTL  VALUE\na         held     dead  7      15s  v\n") {
		t.Errorf("as a table: %+v", r)
	}
}

// observe prints what it sees, and ends without an error when it is told to.
func TestObserve(t *testing.T) {
	dir := t.TempDir()
	abandon(t, dir, "jobs", "15s")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var err bytes.Buffer
	out := &telling{more: make(chan bool, 100)}
	tool := &tool{in: os.Stdin, out: out, err: &err, env: environ([]string{"ELECTOR_URL=file://" + dir})}
	ended := make(chan int, 1)
	go func() { ended <- tool.main(ctx, []string{"observe", "jobs", "-o", "json"}) }()
	<-out.more
	cancel(context.DeadlineExceeded) // as a signal: with a cause of its own
	if code := <-ended; code != 0 || err.Len() > 0 {
		t.Errorf("code %d, %s", code, &err)
	}
	var row map[string]any
	if e := json.Unmarshal(out.text.Bytes(), &row); e != nil || row["state"] != "held" || row["time"] == nil || row["election"] != "jobs" {
		t.Errorf("%v: %s", e, &out.text)
	}
}

// telling reports each write.
type telling struct {
	text bytes.Buffer
	more chan bool
}

func (w *telling) Write(b []byte) (int, error) {
	defer func() { w.more <- true }()
	return w.text.Write(b)
}
