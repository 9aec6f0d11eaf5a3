package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

// works leads an election by Run, with a worker that takes as long as finish to
// stop, and returns when it leads.
func works(t *testing.T, url, name, id string, finish <-chan struct{}) {
	t.Helper()
	e, err := elector.Open(t.Context(), url, name, &elector.Options{ID: id, TTL: time.Minute, RenewEvery: 20 * time.Millisecond, RequestTimeout: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	leads := make(chan bool, 9)
	go e.Run(context.Background(), func(ctx context.Context, _ *elector.Lease) error {
		leads <- true
		<-ctx.Done()
		<-finish
		return nil
	})
	if id == "a" {
		<-leads
	}
}

// resign moves the leader, and says why if it cannot.
func TestResign(t *testing.T) {
	dir := t.TempDir()
	url := "file://" + dir
	env := []string{"ELECTOR_URL=" + url}
	if r := run(t, env, "resign", "jobs"); r.code != exitVacant || r.out != "" || !strings.Contains(r.err, `no election has ever used the name "jobs" on file://`) {
		t.Errorf("an election that never was: %+v", r)
	}
	finish := make(chan struct{})
	works(t, url, "jobs", "a", finish)
	if r := run(t, env, "resign", "jobs", "--wait", "300ms", "--to", "b"); r.code != exitHeld || !strings.Contains(r.err, "deadline") {
		t.Errorf("a leader that does not return: %+v", r)
	}
	if r := run(t, env, "leader", "jobs"); !strings.Contains(r.out, "\tb\t") || !strings.Contains(r.out, "@") {
		t.Errorf("a leader that is requested to resign: %+v", r)
	}
	if r := run(t, env, "resign", "jobs", "--to", "c"); r.code != exitHeld || !strings.Contains(r.err, `named "b"`) {
		t.Errorf("a second request in favour of another candidate: %+v", r)
	}
	close(finish)
	works(t, url, "moved", "a", finish)
	works(t, url, "moved", "b", finish)
	if r := run(t, env, "resign", "moved", "--to", "b"); r.code != 0 || !strings.HasPrefix(r.out, "moved\theld\tb\t") || r.err != "" {
		t.Errorf("a leader that resigns: %+v", r)
	}
	if r := run(t, env, "resign", "moved", "--if-token", "1"); r.code != exitHeld || !strings.Contains(r.err, "the term of token 1 is over") || !strings.Contains(r.err, `"b" leads`) {
		t.Errorf("a token of yesterday: %+v", r)
	}
	abandon(t, dir, "crashed", "200ms")
	if r := run(t, env, "resign", "crashed"); r.code != exitLapsed || !strings.Contains(r.err, "is gone") {
		t.Errorf("a leader that is gone: %+v", r)
	}
	if r := run(t, env, "resign", "jobs", "--wait", "0s"); r.code != exitUsage {
		t.Errorf("--wait 0s: %+v", r)
	}
}

// resign never calls the same leader another one, nor another one that of --to.
func TestResignOutcome(t *testing.T) {
	url := "file://" + t.TempDir()
	env := []string{"ELECTOR_URL=" + url}
	finish := make(chan struct{})
	close(finish)
	alone := func(name string) {
		t.Helper()
		e, err := elector.Open(t.Context(), url, name, &elector.Options{ID: "a", TTL: 2 * time.Second, RenewEvery: 400 * time.Millisecond, RequestTimeout: 400 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		leads := make(chan bool, 99)
		go e.Run(context.Background(), func(ctx context.Context, _ *elector.Lease) error {
			leads <- true
			<-ctx.Done()
			return nil
		})
		<-leads
	}
	alone("alone")
	if r := run(t, env, "resign", "alone"); r.code != exitSame || !strings.Contains(r.out, "\ta\t") || !strings.Contains(r.err, `no other candidate came, so the same leader "a" leads again`) {
		t.Errorf("the only candidate: %+v", r)
	}
	if r := run(t, env, "resign", "alone", "--to", "typo"); r.code != exitSame || !strings.Contains(r.err, `candidate "typo" did not come, so the same leader`) {
		t.Errorf("the only candidate, and one that is not there: %+v", r)
	}
	works(t, url, "two", "a", finish)
	works(t, url, "two", "b", finish)
	if r := run(t, env, "resign", "two", "--to", "typo"); r.code != exitOther || !strings.Contains(r.out, "\tb\t") || !strings.Contains(r.err, `candidate "typo" did not come: "b" leads`) {
		t.Errorf("a candidate that is not there: %+v", r)
	}
	works(t, url, "last", "a", finish)
	if r := run(t, env, "resign", "last", "--wait", "500ms"); r.code != exitVacant || !strings.Contains(r.err, "no process leads") {
		t.Errorf("none follows within --wait: %+v", r)
	}
}

// A name that was never used is called so.
func TestNeverUsed(t *testing.T) {
	env := []string{"ELECTOR_URL=file://" + t.TempDir()}
	for _, command := range []string{"leader", "history", "resign"} {
		if r := run(t, env, command, "typo"); r.code != exitVacant || !strings.Contains(r.err, `no election has ever used the name "typo" on file://`) {
			t.Errorf("%s: %+v", command, r)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	said := &lockedBuffer{wrote: stop}
	tool := &tool{in: os.Stdin, out: io.Discard, err: said, env: environ(env)}
	if err := tool.observe(ctx, "typo"); err != nil || !strings.Contains(said.String(), "no election has ever used") {
		t.Errorf("observe: %v, %q", err, said)
	}
}

// A lockedBuffer calls wrote after each write.
type lockedBuffer struct {
	mutex sync.Mutex
	bytes.Buffer
	wrote func()
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	defer b.wrote()
	return b.Buffer.Write(p)
}

// breaking is a store whose second watch by one handle finds that the record is
// foreign: the first is that of the request.
type breaking struct {
	backends.Watcher
	watches atomic.Int32
}

func (b *breaking) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	if b.watches.Add(1) > 1 {
		return backends.Foreign("it was edited")
	}
	return b.Watcher.Watch(ctx, name, changed)
}

func (b *breaking) Load(ctx context.Context, name string) (backends.Record, error) {
	if b.watches.Load() > 1 {
		return backends.Record{}, backends.Foreign("it was edited")
	}
	return b.Watcher.Load(ctx, name)
}

var unseen atomic.Pointer[memory.Store] // behind breaking://

func init() {
	backends.Register("breaking", func(context.Context, *url.URL) (backends.Backend, error) {
		return &breaking{Watcher: unseen.Load().Handle()}, nil
	})
}

// If resign cannot see who leads next, it fails and says why.
func TestResignUnseen(t *testing.T) {
	store := memory.NewStore()
	unseen.Store(store)
	e, err := elector.New(store.Handle(), "jobs", &elector.Options{ID: "a", TTL: time.Minute, RenewEvery: 20 * time.Millisecond, RequestTimeout: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	leads := make(chan bool, 9)
	go e.Run(context.Background(), func(ctx context.Context, _ *elector.Lease) error {
		leads <- true
		<-ctx.Done()
		return nil
	})
	<-leads
	if r := run(t, []string{"ELECTOR_URL=breaking://"}, "resign", "jobs", "--wait", "6s"); r.code != exitMisconfigured || r.out != "" || !strings.Contains(r.err, "it was edited") {
		t.Errorf("%+v", r)
	}
}

// history prints the terms.
func TestHistory(t *testing.T) {
	url := "file://" + t.TempDir()
	env := []string{"ELECTOR_URL=" + url}
	if r := run(t, env, "history", "jobs"); r.code != exitVacant || r.out != "" || !strings.Contains(r.err, "no election has ever used") {
		t.Errorf("an election that never was: %+v", r)
	}
	for range 2 {
		if err := lead(t, url, "jobs", "", time.Minute).Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	lead(t, url, "jobs", "", time.Minute)
	r := run(t, env, "history", "jobs")
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	if r.code != 0 || len(lines) != 3 || !strings.HasPrefix(lines[0], "a\t") || !strings.HasSuffix(lines[1], "\tresigned") || strings.Count(lines[0], "\t") != 5 {
		t.Errorf("%+v", r)
	}
	r = run(t, env, "history", "jobs", "-o", "json")
	var row termRow
	if err := json.Unmarshal([]byte(strings.Split(r.out, "\n")[0]), &row); err != nil || row.ID != "a" || row.Token == 0 || row.Reason != "resigned" || row.Lasted == nil || *row.Lasted < 0 {
		t.Errorf("%v: %+v", err, r)
	}
	if at, err := time.Parse(time.RFC3339, row.Start); err != nil || time.Since(at).Abs() > time.Hour {
		t.Errorf("it began at %v, %v", at, err)
	}
}
