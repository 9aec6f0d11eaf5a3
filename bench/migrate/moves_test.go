package migrate

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/child"
	"github.com/elector-go/elector/internal/proof/stores"
)

// A process is a candidate.
type process struct {
	*child.Again
	f    *fleet
	task task
}

// A term is the time from a worker's begin to its return, in one process.
type term struct {
	process  string
	version  string
	token    elector.Token
	from, to time.Duration
	over     bool
}

// A fleet is the processes of one service, and what they have done.
type fleet struct {
	t     *testing.T
	ctx   context.Context
	store *stores.Store
	name  string
	count int

	mutex   sync.Mutex
	changed chan struct{} // closed and replaced with each message
	told    map[string]int
	terms   []*term
}

func newFleet(t *testing.T, s *stores.Store, name string) *fleet {
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Minute, fmt.Errorf("ten minutes have passed"))
	t.Cleanup(cancel)
	return &fleet{t: t, ctx: ctx, store: s, name: name, changed: make(chan struct{}), told: map[string]int{}}
}

// start starts a process and returns when it campaigns.
func (f *fleet) start(version string) *process {
	f.t.Helper()
	f.count++
	p := &process{f: f, task: task{fmt.Sprintf("%s-%d", version, f.count), version, f.store.URL, f.store.Address, f.name}}
	again, err := child.StartAgain(variable, p.task, func(m message) { f.take(p.task, m) })
	if err != nil {
		f.t.Fatal(err)
	}
	p.Again = again
	f.t.Cleanup(p.End)
	f.await(p, func() bool { return f.told[p.task.ID+campaigns] > 0 })
	return p
}

func (f *fleet) take(from task, m message) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.told[from.ID+m.Kind]++
	switch m.Kind {
	case begun:
		f.terms = append(f.terms, &term{process: from.ID, version: from.Version, token: elector.Token(m.Token), from: m.At})
	case returned:
		f.over(from.ID, m.At)
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// over ends the term of a process, if it has one.
func (f *fleet) over(id string, at time.Duration) {
	for _, t := range f.terms {
		if t.process == id && !t.over {
			t.to, t.over = at, true
		}
	}
}

// await blocks until the condition holds, which is asked under the mutex.
func (f *fleet) await(p *process, condition func() bool) {
	f.t.Helper()
	for {
		f.mutex.Lock()
		holds, changed := condition(), f.changed
		f.mutex.Unlock()
		if holds {
			return
		}
		var ended <-chan struct{}
		printed := ""
		if p != nil {
			ended, printed = p.Ended(), p.Printed()
		}
		select {
		case <-changed:
		case <-ended:
			f.t.Fatalf("process %s has ended by itself%s", p.task.ID, p.Printed())
		case <-f.ctx.Done():
			f.t.Fatalf("%v%s", context.Cause(f.ctx), printed)
		}
	}
}

// leads reports whether a process works.
func (f *fleet) leads(p *process) bool {
	for _, t := range f.terms {
		if t.process == p.task.ID && !t.over {
			return true
		}
	}
	return false
}

// awaitLeader blocks until one of the processes works.
func (f *fleet) awaitLeader(all []*process) {
	f.t.Helper()
	f.await(nil, func() bool {
		for _, p := range all {
			if f.leads(p) {
				return true
			}
		}
		return false
	})
}

// stop tells the process to stop, as a deploy does, and lets its worker return.
func (p *process) stop() {
	p.f.t.Helper()
	if err := p.Tell("stop"); err != nil {
		p.f.t.Fatal(err)
	}
	p.f.mutex.Lock()
	leads := p.f.leads(p)
	p.f.mutex.Unlock()
	if leads {
		p.f.await(p, func() bool { return p.f.told[p.task.ID+stopping] > 0 || !p.f.leads(p) })
	}
	p.End()
}

// kill kills the process, and ends its term once it is certainly dead.
func (p *process) kill() {
	p.f.t.Helper()
	if err := p.Kill(); err != nil {
		p.f.t.Fatal(err)
	}
	p.f.mutex.Lock()
	defer p.f.mutex.Unlock()
	p.f.over(p.task.ID, history.BootTime())
}

// roll replaces the processes by others of a version, one by one, as a rolling
// deploy with one more process than replicas does.
func (f *fleet) roll(all []*process, to string) (next []*process) {
	f.t.Helper()
	for i := range all {
		next = append(next, f.start(to))
		all[i].stop()
		f.awaitLeader(append(all[i+1:], next...))
	}
	return next
}

// overlaps returns the pairs of terms that share an instant, and for how long.
func (f *fleet) overlaps() (found []string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for i, a := range f.terms {
		for _, b := range f.terms[:i] {
			from, to := max(a.from, b.from), history.BootTime()
			for _, t := range []*term{a, b} {
				if t.over {
					to = min(to, t.to)
				}
			}
			if from <= to {
				found = append(found, fmt.Sprintf("%s and %s for %v", b.process, a.process, to-from))
			}
		}
	}
	return found
}

// TestMoves moves a service of two processes from etcd's Election to this library
// and back, again and again, as docs/migrate.md says. Each move is two rolling
// deploys, with a leader killed between them. No two workers run at the same time.
// ELECTOR_MOVES=20 makes twenty moves; the default is two.
func TestMoves(t *testing.T) {
	moves := 2
	if text := os.Getenv("ELECTOR_MOVES"); text != "" {
		var err error
		if moves, err = strconv.Atoi(text); err != nil || moves < 1 {
			t.Fatalf("ELECTOR_MOVES is %q, not a number of moves", text)
		}
	}
	f := newFleet(t, begin(t, stores.Etcd), "invoices")
	all := []*process{f.start("A"), f.start("A")}
	f.awaitLeader(all)
	for i := range moves {
		to := []string{"B", "C"}
		if i%2 == 1 {
			to = []string{"B", "A"} // back
		}
		all = f.roll(all, to[0])
		for j, p := range all { // a crash
			f.mutex.Lock()
			leads := f.leads(p)
			f.mutex.Unlock()
			if leads {
				p.kill()
				all[j] = f.start(to[0])
				break
			}
		}
		f.awaitLeader(all)
		all = f.roll(all, to[1])
	}
	for _, p := range all {
		p.stop()
	}
	for _, o := range f.overlaps() {
		t.Errorf("two workers at the same time: %s", o)
	}
	terms := map[string]int{}
	highest, revision := elector.Token(0), f.revision()
	for _, m := range f.terms {
		terms[m.version]++
		if m.token != 0 && (m.token <= highest || m.token <= elector.Token(revision)) {
			t.Errorf("%s has token %d, after %d and etcd's revision %d", m.process, m.token, highest, revision)
		}
		highest = max(highest, m.token)
	}
	t.Logf("%d moves, %d overlaps, terms by version %v", moves, len(f.overlaps()), terms)
	for _, version := range []string{"A", "B", "C"} {
		if terms[version] < (moves+1)/2 { // each is the goal of every second move at least
			t.Errorf("version %s led %d times in %d moves", version, terms[version], moves)
		}
	}
}

// revision is the highest that etcd has given to anything.
func (f *fleet) revision() int64 {
	f.t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{f.store.Address}, Logger: zap.NewNop()})
	if err != nil {
		f.t.Fatal(err)
	}
	defer client.Close()
	r, err := client.Get(f.ctx, "any")
	if err != nil {
		f.t.Fatal(err)
	}
	return r.Header.Revision
}

// Without version B between them, A and C lead at the same time: the locks do not
// know each other. So the count can see an overlap.
func TestMoveWithoutB(t *testing.T) {
	f := newFleet(t, begin(t, stores.Etcd), "invoices")
	a := f.start("A")
	f.awaitLeader([]*process{a})
	c := f.start("C")
	f.awaitLeader([]*process{c})
	a.stop()
	c.stop()
	if o := f.overlaps(); len(o) != 1 {
		t.Errorf("%d overlaps, want 1: %v", len(o), o)
	}
}

// A version B that releases the old lock before its worker has returned lets A
// lead beside it.
func TestHastyB(t *testing.T) {
	f := newFleet(t, begin(t, stores.Etcd), "invoices")
	b := f.start("hasty")
	f.awaitLeader([]*process{b})
	a := f.start("A")
	if err := b.Tell("stop"); err != nil {
		t.Fatal(err)
	}
	f.awaitLeader([]*process{a})
	b.End()
	a.stop()
	if o := f.overlaps(); len(o) != 1 {
		t.Errorf("%d overlaps, want 1: %v", len(o), o)
	}
}
