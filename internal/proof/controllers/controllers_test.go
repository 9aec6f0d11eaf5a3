//go:build kubernetes

package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/network"
	"github.com/elector-go/elector/internal/proof/child"
	"github.com/elector-go/elector/internal/proof/stores"
)

func TestMain(m *testing.M) {
	if isCandidate() {
		return
	}
	os.Exit(m.Run())
}

// ttl is that of every candidate. client-go's RenewDeadline and RetryPeriod are the
// parts of it that they are by default.
const ttl = 6 * time.Second

// A scene is what happens to the leader.
type scene string

const (
	cut    scene = "election cut off"      // its writes still arrive, as through another API server
	paused scene = "stopped and continued" // with SIGSTOP, until the other has written
)

// A round is an election of two managers.
type round struct {
	form  form
	scene scene
	name  string
	both  time.Duration // for how long both believed that they lead
	late  int           // writes of the old leader after the first of the new one
	total int
}

// Two managers elect one of them, whose reconciler writes. Then the leader's election
// is cut off, or the leader is stopped past its lease and continued. Under elector the
// API server takes no write of the old leader after one of the new.
func TestKubernetesControllers(t *testing.T) {
	s, err := stores.Start(t.Context(), stores.Kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	var mutex sync.Mutex
	var done []*round
	t.Run("rounds", func(t *testing.T) {
		for i, f := range []form{run, lock, clientGo} {
			for j, c := range []scene{cut, paused} {
				t.Run(fmt.Sprintf("%s/%s", f, c), func(t *testing.T) {
					t.Parallel()
					r := &round{form: f, scene: c, name: fmt.Sprintf("controllers-%d-%d", i, j)}
					r.play(t, s)
					mutex.Lock()
					defer mutex.Unlock()
					done = append(done, r)
				})
			}
		}
	})
	print(done)
}

func print(done []*round) {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "TTL %v\t%s\t\t%s\t\n\ttwo believe\tlate writes\ttwo believe\tlate writes\n", ttl, cut, paused)
	for _, f := range []form{run, lock, clientGo} {
		fmt.Fprint(out, f)
		for _, c := range []scene{cut, paused} {
			figures := "\t-\t-"
			for _, r := range done {
				if r.form == f && r.scene == c {
					figures = fmt.Sprintf("\t%.2f s\t%d", r.both.Seconds(), r.late)
				}
			}
			fmt.Fprint(out, figures)
		}
		fmt.Fprintln(out)
	}
	out.Flush()
}

// patience is for each step of a round.
const patience = 3 * time.Minute

func (r *round) play(t *testing.T, s *stores.Store) {
	r.create(t, s)
	proxy, err := network.New(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	}()
	a := r.start(t, s, "a", proxy.Address())
	a.await(t, began)
	r.awaitWrites(t, s, "a", 20)
	b := r.start(t, s, "b", s.Address)
	b.await(t, starts)
	r.awaitWrites(t, s, "a", 50) // while b waits
	switch r.scene {
	case cut:
		if err := proxy.Break(network.Cut); err != nil {
			t.Fatal(err)
		}
		r.awaitWrites(t, s, "b", 1)
		if proxy.Count().Requests == 0 {
			t.Error("the leader sent nothing into the cut")
		}
	case paused:
		if err := child.Freeze(a.PID()); err != nil {
			t.Fatal(err)
		}
		r.awaitWrites(t, s, "b", 1)
		if err := child.Thaw(a.PID()); err != nil {
			t.Fatal(err)
		}
	}
	a.await(t, over)
	r.awaitWrites(t, s, "b", 50)
	a.End()
	b.End()

	r.both = overlap(a.runs, b.runs)
	old := true
	for _, w := range r.writers(t, s) {
		r.total += w.writes
		old = old && w.id == "a"
		if !old && w.id == "a" {
			r.late += w.writes
		}
	}
	t.Logf("%s, %s: two believed for %v, %d late writes of %d", r.form, r.scene, r.both, r.late, r.total)
	if r.form == clientGo {
		return
	}
	if r.late > 0 {
		t.Errorf("the API server took %d writes of the old leader after one of the new", r.late)
	}
	if r.scene == cut && r.both > 0 {
		t.Errorf("two managers worked at once for %v", r.both)
	}
}

func overlap(a, b []message) (both time.Duration) {
	for _, x := range a {
		for _, y := range b {
			both += max(0, min(x.To, y.To)-max(x.From, y.From))
		}
	}
	return both
}

// A process is a candidate.
type process struct {
	*child.Again
	mutex sync.Mutex
	seen  map[string]chan struct{}
	runs  []message
	why   string
}

func (r *round) start(t *testing.T, s *stores.Store, id, election string) *process {
	t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{seen: map[string]chan struct{}{}}
	for _, kind := range []string{starts, began, over, failed} {
		p.seen[kind] = make(chan struct{})
	}
	p.Again, err = child.StartAgain(candidateVariable, task{
		Form: r.form, ID: id, Name: r.name, TTL: ttl,
		URL: s.Through(election), Election: election, API: s.Address, Namespace: strings.Trim(u.Path, "/"),
		CA: u.Query().Get("ca"), TokenAt: filepath.Join(filepath.Dir(u.Query().Get("token_file")), stores.KubernetesAdmin),
	}, p.take)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.End)
	return p
}

func (p *process) take(m message) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	switch m.Kind {
	case ran:
		p.runs = append(p.runs, m)
		return
	case failed:
		p.why = m.Error
	}
	select {
	case <-p.seen[m.Kind]:
	default:
		close(p.seen[m.Kind])
	}
}

func (p *process) await(t *testing.T, kind string) {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	failure := p.seen[failed]
	if kind == over { // a manager that has lost may end, which it tells after that
		failure = nil
	}
	select {
	case <-p.seen[kind]:
	case <-failure:
		p.mutex.Lock()
		defer p.mutex.Unlock()
		t.Fatalf("waiting for %q: the candidate ends with %s%s", kind, p.why, p.Printed())
	case <-p.Ended():
		t.Fatalf("waiting for %q: the candidate has ended%s", kind, p.Printed())
	case <-late.C:
		t.Fatalf("no %q within %v%s", kind, patience, p.Printed())
	}
}

func (r *round) path(s *stores.Store) string {
	u, _ := url.Parse(s.URL)
	return "/api/v1/namespaces/" + strings.Trim(u.Path, "/") + "/configmaps"
}

func (r *round) create(t *testing.T, s *stores.Store) {
	t.Helper()
	body := fmt.Sprintf(`{"metadata":{"name":%q}}`, r.name)
	_, err := s.AskKubernetes(t.Context(), stores.KubernetesAdmin, http.MethodPost, r.path(s), "application/json", []byte(body))
	if err != nil {
		t.Fatal(err)
	}
}

// writers returns who wrote, in the API server's order.
func (r *round) writers(t *testing.T, s *stores.Store) []writer {
	t.Helper()
	content, err := s.AskKubernetes(t.Context(), stores.KubernetesAdmin, http.MethodGet, r.path(s)+"/"+r.name, "", nil)
	var object struct{ Data map[string]string }
	if err := errors.Join(err, json.Unmarshal(content, &object)); err != nil {
		t.Fatal(err)
	}
	return writers(object.Data[writersKey])
}

// awaitWrites blocks until a candidate has made n writes more than before.
func (r *round) awaitWrites(t *testing.T, s *stores.Store, id string, n int) {
	t.Helper()
	count := func() (writes int) {
		for _, w := range r.writers(t, s) {
			if w.id == id {
				writes += w.writes
			}
		}
		return writes
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for before := count(); count() < before+n; {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%s made no %d writes within %v: %v", id, n, patience, r.writers(t, s))
		}
	}
}
