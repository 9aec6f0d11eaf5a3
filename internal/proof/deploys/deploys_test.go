package deploys

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/child"
	"github.com/elector-go/elector/internal/proof/stores"
)

// A process is one of the service's.
type process struct {
	*child.Again
	id      string
	address string // of its server
	stops   bool   // it was told to; guarded by the balancer
	serves  bool   // it is ready, as the balancer has seen
}

// A term is the time from a worker's begin to its return.
type term struct {
	id       string
	from, to time.Duration
	over     bool
}

// A service is its processes, and what they have done.
type service struct {
	t        *testing.T
	ctx      context.Context
	url      string
	election string
	observer *elector.Elector
	linger   time.Duration
	book     string // URL of the resource
	balancer *balancer
	started  int

	mutex   sync.Mutex
	changed chan struct{}     // closed and replaced with each message
	ready   map[string]string // addresses
	terms   []*term
}

// start starts a process and returns when it is ready.
func (s *service) start(version string, priority int) *process {
	s.t.Helper()
	s.started++
	p := &process{id: fmt.Sprintf("%s-%d", version, s.started)}
	again, err := child.StartAgain(variable, task{p.id, s.url, s.election, priority, s.linger, s.book}, func(m message) { s.take(p.id, m) })
	if err != nil {
		s.t.Fatal(err)
	}
	p.Again = again
	s.t.Cleanup(p.End)
	s.await(p, func() bool { p.address = s.ready[p.id]; return p.address != "" })
	return p
}

func (s *service) take(id string, m message) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	switch m.Kind {
	case ready:
		s.ready[id] = m.Address
	case begun:
		s.terms = append(s.terms, &term{id: id, from: m.At})
	case returned:
		last := s.terms[len(s.terms)-1]
		if i := slices.IndexFunc(s.terms, func(t *term) bool { return t.id == id && !t.over }); i >= 0 {
			last = s.terms[i]
		}
		last.to, last.over = m.At, true
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// await blocks until the condition holds, which is asked under the mutex.
func (s *service) await(p *process, condition func() bool) {
	s.t.Helper()
	for {
		s.mutex.Lock()
		holds, changed := condition(), s.changed
		s.mutex.Unlock()
		if holds {
			return
		}
		var ended <-chan struct{}
		if p != nil {
			ended = p.Ended()
		}
		select {
		case <-changed:
		case <-ended:
			s.t.Fatalf("%s has ended by itself%s", p.id, p.Printed())
		case <-s.ctx.Done():
			s.t.Fatal(context.Cause(s.ctx))
		}
	}
}

// leader blocks until one of the processes works, and returns its index.
func (s *service) leader(all []*process) (index int) {
	s.t.Helper()
	s.await(nil, func() bool {
		index = slices.IndexFunc(all, func(p *process) bool {
			return slices.ContainsFunc(s.terms, func(t *term) bool { return t.id == p.id && !t.over })
		})
		return index >= 0
	})
	return index
}

// preferred blocks until a process of the version leads, or should lead next: a
// readiness probe takes longer than that.
func (s *service) preferred(version string) {
	s.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		l, err := s.observer.Leader(s.ctx)
		if err != nil {
			s.t.Fatal(err)
		}
		if strings.HasPrefix(l.ID, version) || strings.HasPrefix(l.Successor, version) {
			return
		}
		<-tick.C
	}
}

// roll replaces the processes by others, one by one: each time one more is started,
// and once it is ready an old one is stopped, the leader first.
func (s *service) roll(what string, all []*process, version string, priority, most int) (next []*process) {
	s.t.Helper()
	first := s.leader(all)
	all[0], all[first] = all[first], all[0]
	s.mutex.Lock()
	before := len(s.terms)
	s.mutex.Unlock()
	for i, old := range all {
		p := s.start(version, priority)
		next = append(next, p)
		if most > 0 {
			s.preferred(version)
		}
		if s.balancer != nil {
			s.balancer.await(s.ctx)
			s.balancer.add(p)
			s.balancer.stop(old)
		}
		old.End()
		s.leader(append(slices.Clone(all[i+1:]), next...))
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	elections := len(s.terms) - before
	text := ""
	for i, t := range s.terms[before:] {
		gap := t.from - s.terms[before+i-1].to
		if gap < 0 {
			s.t.Errorf("%s works %v before %s has returned", t.id, -gap, s.terms[before+i-1].id)
		}
		text += fmt.Sprintf(" %v", gap.Round(100*time.Microsecond))
	}
	s.t.Logf("%s of %d processes: %d elections; without a leader for%s", what, len(all), elections, text)
	if elections < 1 || most > 0 && elections > most {
		s.t.Errorf("%s: %d elections, not 1 to %d", what, elections, most)
	}
	return next
}

// count returns ELECTOR_DEPLOYS, or a default.
func count(t *testing.T, otherwise int) int {
	text := os.Getenv("ELECTOR_DEPLOYS")
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("ELECTOR_DEPLOYS is %q, not a number", text)
	}
	return n
}

// newService starts a store, and no process yet.
func newService(t *testing.T, kind string) *service {
	t.Helper()
	url := "file://" + t.TempDir()
	if kind != file {
		store, err := stores.Start(t.Context(), kind)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := store.Stop(); err != nil {
				t.Error(err)
			}
		})
		url = store.URL
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Minute, fmt.Errorf("five minutes have passed"))
	t.Cleanup(cancel)
	s := &service{t: t, ctx: ctx, url: url, election: fmt.Sprintf("deploys-%d", history.BootTime()), linger: -1, changed: make(chan struct{}), ready: map[string]string{}}
	observer, err := elector.Open(ctx, s.url, s.election, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { observer.Close() })
	s.observer = observer
	return s
}

// file is a kind of store that no process runs.
const file = "file"

// TestRollingDeploy deploys a new version that is preferred, rolls it back, and for
// comparison deploys without a preference. ELECTOR_DEPLOYS=10 has ten processes; the
// default is three.
func TestRollingDeploy(t *testing.T) {
	count := count(t, 3)
	for _, kind := range []string{stores.Etcd, stores.Postgres} {
		t.Run(kind, func(t *testing.T) {
			s := newService(t, kind)
			var all []*process
			for range count {
				all = append(all, s.start("old", 0))
			}
			all = s.roll("a rolling deploy", all, "new", 1, 2)
			all = s.roll("its rollback", all, "old", 2, 2)
			s.roll("a rolling deploy without a preference", all, "new", 2, 0)
		})
	}
}
