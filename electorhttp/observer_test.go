package electorhttp_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/electorhttp"
	"github.com/elector-go/elector/internal/fault"
	"github.com/elector-go/elector/operate"
	"github.com/elector-go/elector/partition"
)

// A team has the candidates of an election, and the network between them.
type team struct {
	*testing.T
	store *memory.Store
	wait  time.Duration // Observer.Wait
	polls bool          // the store pushes nothing
	bare  bool          // without Observer.Work

	mutex   sync.Mutex
	players map[string]*player // by address
	last    *elector.Lease     // under which a request was served
	during  func(w http.ResponseWriter, r *http.Request)
}

// A player is a process of a team.
type player struct {
	id     string
	e      *elector.Elector
	o      *electorhttp.Observer
	http   http.Handler
	local  http.Handler // of Observer.Local
	fault  *fault.Backend
	gone   bool // refuses connections
	breaks bool // ends connections before an answer
	served int
}

func newTeam(t *testing.T) *team {
	return &team{T: t, store: memory.NewStore(), players: map[string]*player{}}
}

// join starts a process that observes.
func (m *team) join(id string) *player {
	p := &player{id: id}
	var b backends.Backend = m.store.Handle()
	if m.polls {
		b = struct{ backends.Backend }{b}
	}
	p.fault, b = fault.Wrap(b)
	p.e = join(m.T, b, id, id+":1")
	p.o = electorhttp.Observe(m.Context(), p.e)
	p.o.Transport, p.o.Logger, p.o.Wait = m, quiet, m.wait
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.serve(p, w, r) })
	p.http, p.local = p.o.Forward(serve), p.o.Local(serve)
	m.set(func() { m.players[id+":1"] = p })
	return p
}

// start starts a process that campaigns, and works until stop is called.
func (m *team) start(id string, work func(context.Context, *elector.Lease) error) (p *player, stop func() error) {
	p = m.join(id)
	ctx, cancel := context.WithCancel(context.Background())
	done, err := make(chan struct{}), error(nil)
	if !m.bare {
		work = p.o.Work(work)
	}
	go func() {
		defer close(done)
		err = p.e.Run(ctx, work)
	}()
	stop = func() error { cancel(); <-done; return err }
	m.Cleanup(func() { stop() })
	return p, stop
}

// led waits until a process leads.
func (m *team) led(p *player) *elector.Lease {
	m.Helper()
	for range 1000 {
		synctest.Wait()
		if l, err := p.e.Lease(); err == nil {
			return l
		}
		time.Sleep(100 * time.Millisecond)
	}
	m.Fatalf("%s does not lead", p.id)
	return nil
}

func (m *team) set(change func()) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	change()
}

// serve is what the leader does, under one valid lease at a time.
func (m *team) serve(p *player, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	lease := electorhttp.LeaseFrom(r.Context())
	if err = cmp.Or(err, lease.Check()); err != nil {
		m.Errorf("%s serves a request: %v", p.id, err)
	}
	m.mutex.Lock()
	if m.last != nil && (lease.Token() < m.last.Token() || lease != m.last && m.last.Check() == nil) {
		m.Errorf("%s serves with token %d after %d", p.id, lease.Token(), m.last.Token())
	}
	m.last = lease
	p.served++
	during := m.during
	m.mutex.Unlock()
	if during != nil {
		during(w, r)
	}
	fmt.Fprintf(w, "%s %s %s%s", p.id, r.Method, r.URL.Path, body)
}

func (m *team) RoundTrip(r *http.Request) (*http.Response, error) {
	m.mutex.Lock()
	p := m.players[r.URL.Host]
	gone, breaks := p == nil || p.gone, p != nil && p.breaks
	m.mutex.Unlock()
	if n := len(r.Header.Values("Elector-Forwarded")); n != 1 {
		m.Errorf("a request was forwarded %d times", n)
		return nil, errBroken
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	if gone {
		r.Body.Close()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	w := httptest.NewRecorder()
	p.http.ServeHTTP(w, r)
	if breaks {
		return nil, errBroken
	}
	return w.Result(), nil
}

// post sends a request that may not be sent twice.
func post(h http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", path, strings.NewReader(" content"))
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// traffic sends requests to processes in turn until stop is called, which fails the test
// unless each one was served once.
func (m *team) traffic(to ...*player) (stop func()) {
	ctx, cancel := context.WithCancel(m.Context())
	var all sync.WaitGroup
	sent, before := 0, m.servedBy(to...)
	all.Go(func() {
		for ; ctx.Err() == nil; sent++ {
			path, p := fmt.Sprintf("/%d", sent), to[sent%len(to)]
			all.Go(func() {
				w := post(p.http, path)
				if _, served, _ := strings.Cut(w.Body.String(), " "); w.Code != 200 || served != "POST "+path+" content" {
					m.Errorf("%s to %s: %d %s", path, p.id, w.Code, w.Body)
				}
			})
			time.Sleep(20 * time.Millisecond)
		}
	})
	return func() {
		m.Helper()
		cancel()
		all.Wait()
		if served := m.servedBy(to...) - before; served != sent {
			m.Errorf("%d requests were served, and %d sent", served, sent)
		}
	}
}

func (m *team) servedBy(players ...*player) (n int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, p := range players {
		n += p.served
	}
	return n
}

func TestObserver(t *testing.T) {
	bubbles(t, map[string]func(*testing.T){
		"handovers": func(t *testing.T) { observerHandovers(t, false) }, "handovers, polled": func(t *testing.T) { observerHandovers(t, true) },
		"crash": func(t *testing.T) { observerCrash(t, false) }, "crash, polled": func(t *testing.T) { observerCrash(t, true) },
		"withheld": observerWithheld, "deadline at the end": observerDeadlineAtTheEnd, "one line": observerOneLine,
		"no leader": observerNoLeader, "may have had an effect": observerEffect,
		"drain": func(t *testing.T) { observerDrain(t, false) }, "slow worker": func(t *testing.T) { observerDrain(t, true) }, "lost": observerLost,
		"long inside": observerLongInside, "panic": observerPanics, "without Work": observerBare, "paused": observerPaused, "too many": observerTooMany, "local": observerLocal, "lease": observerLease,
	})
}

// No request waits for the end of a pause.
func observerPaused(t *testing.T) {
	m := newTeam(t)
	a, stop := m.start("a", nil)
	m.led(a)
	if err := a.e.Operator().Pause(t.Context(), operate.Pause{Reason: "migration"}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	begun := time.Now()
	if w := post(a.http, "/"); w.Code != 503 || w.Body.String() != "election \"office\": it is paused\n" || time.Since(begun) > time.Second {
		t.Errorf("after %v: %d %s", time.Since(begun), w.Code, w.Body)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// A process has room for so many requests that wait.
func observerTooMany(t *testing.T) {
	m := newTeam(t)
	a := m.join("a")
	var all sync.WaitGroup
	var refused atomic.Int64
	for range 1200 {
		all.Go(func() {
			if w := post(a.http, "/"); w.Code == 503 {
				refused.Add(1)
			}
		})
	}
	synctest.Wait()
	if n := refused.Load(); n != 200 {
		t.Errorf("%d of 1,200 requests were refused at once", n)
	}
	all.Wait() // after 23 s
}

// Each request is served, once, while the lead moves.
func observerHandovers(t *testing.T, polls bool) {
	m := newTeam(t)
	m.polls, m.wait = polls, time.Minute
	a, stopA := m.start("a", nil)
	stop := m.traffic(a) // before there is a leader
	m.led(a)
	b, stopB := m.start("b", nil)
	c, _ := m.start("c", nil)
	stop()
	stop = m.traffic(a, b, c)
	time.Sleep(time.Minute)
	if err := stopA(); err != nil {
		t.Error(err)
	}
	time.Sleep(time.Minute)
	if err := stopB(); err != nil {
		t.Error(err)
	}
	time.Sleep(time.Minute)
	stop()
	if m.servedBy(a) == 0 || m.servedBy(c) == 0 {
		t.Errorf("a has served %d requests and c %d", m.servedBy(a), m.servedBy(c))
	}
}

// When the leader crashes, requests wait for the next one.
// By default they wait for as long as a crash takes.
func observerCrash(t *testing.T, polls bool) {
	m := newTeam(t)
	m.polls = polls
	a, _ := m.start("a", nil)
	m.led(a)
	b, _ := m.start("b", nil)
	time.Sleep(10 * time.Second)
	m.set(func() { a.gone = true })
	a.fault.Always(fault.Hang)
	a.fault.CutWatches(backends.ErrUnavailable)
	stop := m.traffic(b) // none is served by a
	time.Sleep(30 * time.Second)
	stop()
	if m.servedBy(b) < 30*50 {
		t.Errorf("b has served %d requests, not all", m.servedBy(b))
	}
}

func observerNoLeader(t *testing.T) {
	m := newTeam(t)
	patient := m.join("patient")
	m.wait = -1
	hasty := m.join("hasty")
	for _, c := range []struct {
		*player
		waits time.Duration
	}{{patient, 23 * time.Second}, {hasty, 0}} {
		synctest.Wait()
		for name, h := range map[string]http.Handler{"Forward": c.http, "Local": c.local} {
			start := time.Now()
			w := post(h, "/")
			if w.Code != 503 || w.Header().Get("Retry-After") != "1" || w.Body.String() != "election \"office\": there is no leader\n" {
				t.Errorf("%s: %d %s", c.id, w.Code, w.Body)
			}
			if took := time.Since(start); took != c.waits {
				t.Errorf("%s of %s waits %v, want %v", name, c.id, took, c.waits)
			}
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	start := time.Now()
	patient.http.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil).WithContext(ctx))
	if time.Since(start) != 0 {
		t.Error("a request waits although its client has gone")
	}
}

// A connection breaks after the leader has served the request.
func observerEffect(t *testing.T) {
	m := newTeam(t)
	a, _ := m.start("a", nil)
	m.led(a)
	b := m.join("b")
	synctest.Wait()
	m.set(func() { a.breaks = true })
	for _, c := range []struct {
		method, header string
		times          int
	}{{"POST", "", 1}, {"PUT", "", 1}, {"GET", "", 2}, {"POST", "Idempotency-Key", 2}} {
		before := m.servedBy(a)
		w := do(b.http, c.method, "/", cmp.Or(c.header, "X-Other"), "7")
		if n := m.servedBy(a) - before; w.Code != 502 || w.Body.String() != "election \"office\": the leader did not answer\n" || n != c.times {
			t.Errorf("%+v: %d %s, served %d times", c, w.Code, w.Body, n)
		}
	}
	m.set(func() {
		m.during = func(http.ResponseWriter, *http.Request) { m.set(func() { a.gone = true }) }
	})
	before := m.servedBy(a)
	if w := post(b.http, "/", "Idempotency-Key", "8"); w.Code != 502 || m.servedBy(a)-before != 1 {
		t.Errorf("a request that had an effect before the leader went: %d %s, served %d times", w.Code, w.Body, m.servedBy(a)-before)
	}
}

// A request that is served keeps its lead from moving; those that come later wait for the
// next leader, also while the worker has not returned.
func observerDrain(t *testing.T, slow bool) {
	m := newTeam(t)
	begun, finish := make(chan *elector.Lease), make(chan struct{})
	a, stopA := m.start("a", func(ctx context.Context, _ *elector.Lease) error {
		<-ctx.Done()
		if slow {
			<-finish
		}
		return nil
	})
	m.led(a)
	b, _ := m.start("b", func(ctx context.Context, lease *elector.Lease) error {
		select {
		case <-finish:
		default:
			t.Error("b works before a has finished")
		}
		<-ctx.Done()
		return nil
	})
	time.Sleep(10 * time.Second)
	m.set(func() {
		m.during = func(_ http.ResponseWriter, r *http.Request) {
			begun <- electorhttp.LeaseFrom(r.Context())
			<-finish
			if err := r.Context().Err(); err != nil {
				t.Errorf("the context of a request ended: %v", context.Cause(r.Context()))
			}
		}
	})
	var all sync.WaitGroup
	send := func(to *player, by string) {
		all.Go(func() {
			if w := post(to.http, "/"); w.Code != 200 || !strings.HasPrefix(w.Body.String(), by+" ") {
				t.Errorf("a request to %s: %d %s, want %s", to.id, w.Code, w.Body, by)
			}
		})
	}
	send(b, "a")
	lease := <-begun
	m.set(func() { m.during = nil })
	stopped := make(chan error, 1)
	go func() { stopped <- stopA() }()
	<-lease.Context().Done()
	send(a, "b")
	send(b, "b")
	time.Sleep(3 * time.Second)
	if err := lease.Check(); err != nil {
		t.Errorf("the lease is over while a request is served: %v", err)
	}
	close(finish)
	all.Wait()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// The context of a request ends when the lease is lost, and none is served then, although
// the worker has not returned.
func observerLost(t *testing.T) {
	m := newTeam(t)
	m.wait = -1
	stay := make(chan struct{})
	a, _ := m.start("a", func(context.Context, *elector.Lease) error { <-stay; return nil })
	defer close(stay)
	m.led(a)
	m.set(func() {
		m.during = func(_ http.ResponseWriter, r *http.Request) {
			a.fault.Always(fault.Hang)
			<-r.Context().Done()
			if err := context.Cause(r.Context()); !errors.Is(err, elector.ErrLost) {
				t.Errorf("the context ended with %v", err)
			}
		}
	})
	if w := post(a.http, "/"); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	m.set(func() { m.during = nil })
	if w := post(a.http, "/"); w.Code != 503 || w.Body.String() != "election \"office\": this process is to lead, and does not serve yet\n" {
		t.Errorf("after the loss: %d %s", w.Code, w.Body)
	}
	a.fault.Always(nil)
}

// ends waits until the context of a request ends.
func ends(t *testing.T, r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-time.After(time.Minute):
		t.Error("the context of a request has not ended after a minute")
	}
}

// A request that does not end keeps the lead for ReleaseTimeout after the worker was told
// to stop, and for ten seconds after it has returned by itself.
func observerLongInside(t *testing.T) {
	for told, bound := range map[bool]time.Duration{true: 15 * time.Second, false: 10 * time.Second} {
		m := newTeam(t)
		fail := make(chan struct{})
		a, stop := m.start("a", func(ctx context.Context, _ *elector.Lease) error {
			select {
			case <-fail:
				return errBroken
			case <-ctx.Done():
				return nil
			}
		})
		lease := m.led(a)
		begun := make(chan bool)
		m.set(func() {
			m.during = func(_ http.ResponseWriter, r *http.Request) {
				begun <- true
				ends(m.T, r)
			}
		})
		answered := make(chan bool)
		go func() { post(a.http, "/"); close(answered) }()
		<-begun
		start := time.Now()
		if told {
			go stop()
		} else {
			close(fail)
		}
		for lease.Check() == nil && time.Since(start) < time.Minute {
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(start); took < bound || took > bound+time.Second {
			t.Errorf("told to stop %v: the lease has ended after %v, want %v", told, took, bound)
		}
		<-answered
		if err := stop(); told != errors.Is(err, elector.ErrLost) || !told && !errors.Is(err, errBroken) {
			t.Errorf("told to stop %v: %v", told, err)
		}
	}
}

// A worker that panics does not wait for requests: they lose the lease.
func observerPanics(t *testing.T) {
	m := newTeam(t)
	a := m.join("a")
	begun, answered := make(chan bool), make(chan bool)
	m.set(func() {
		m.during = func(_ http.ResponseWriter, r *http.Request) {
			close(begun)
			ends(t, r)
		}
	})
	func() {
		defer func() {
			if r := recover(); r != "broken" {
				t.Errorf("the panic is %v", r)
			}
		}()
		a.e.Run(t.Context(), a.o.Work(func(context.Context, *elector.Lease) error {
			go func() { post(a.http, "/"); close(answered) }()
			<-begun
			panic("broken")
		}))
	}()
	<-answered
}

// Without Work requests are served while the lease is valid and its user was not told to
// stop.
func observerBare(t *testing.T) {
	m := newTeam(t)
	m.bare = true
	begun, finish := make(chan bool), make(chan bool)
	_, stopA := m.start("a", func(ctx context.Context, _ *elector.Lease) error {
		close(begun)
		<-ctx.Done()
		<-finish
		return nil
	})
	b := m.join("b")
	waits := make(chan string)
	go func() { waits <- post(b.http, "/").Body.String() }()
	<-begun
	if got := <-waits; got != "a POST / content" {
		t.Errorf("as soon as a leads: %s", got)
	}
	go stopA()
	synctest.Wait()
	go func() { waits <- post(b.http, "/").Body.String() }()
	synctest.Wait()
	go b.e.Campaign(t.Context())
	close(finish)
	if got := <-waits; got != "b POST / content" {
		t.Errorf("once a was told to stop: %s", got)
	}
}

func observerLocal(t *testing.T) {
	m := newTeam(t)
	a := m.join("a")
	answers := make(chan string, 1)
	go func() { answers <- post(a.local, "/").Body.String() }()
	time.Sleep(5 * time.Second)
	m.wait = -1
	b, _ := m.start("b", nil)
	start := time.Now()
	if got := <-answers; got != "election \"office\": this process does not lead\n" || time.Since(start) > time.Second {
		t.Errorf("when another process leads, after %v: %s", time.Since(start), got)
	}
	m.led(b)
	if w := post(b.local, "/"); w.Code != 200 || w.Body.String() != "b POST / content" {
		t.Errorf("the leader: %d %s", w.Code, w.Body)
	}
}

// A handler finds the lease that it serves under, also within the handler of a group.
func observerLease(t *testing.T) {
	if l := electorhttp.LeaseFrom(t.Context()); l != nil {
		t.Errorf("a lease from nowhere: %v", l)
	}
	m, f := newTeam(t), newFleet(t)
	a, _ := m.start("a", nil)
	lease := m.led(a)
	h := f.join("a")
	f.settle(h)
	f.set(func() {
		f.during = func(_ http.ResponseWriter, r *http.Request, _ *partition.Lease) {
			if got := electorhttp.LeaseFrom(r.Context()); got != lease {
				t.Errorf("the lease is %v", got)
			}
		}
	})
	if w := post(a.o.Forward(h.http), "/"); w.Code != 200 || f.servedBy(h) != 1 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
