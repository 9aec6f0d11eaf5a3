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
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/electorhttp"
	"github.com/elector-go/elector/internal/fault"
	"github.com/elector-go/elector/partition"
)

const partitions = 8

// A fleet has the processes of a group, and the network between them.
type fleet struct {
	*testing.T
	store *memory.Store
	wait  time.Duration // Router.Wait
	polls bool          // the store pushes nothing

	mutex  sync.Mutex
	hosts  map[string]*host
	leases map[int]*partition.Lease // under which a request was served last
	hops   int                      // of all requests
	during func(w http.ResponseWriter, r *http.Request, lease *partition.Lease)
}

// A host is a process of a fleet.
type host struct {
	id     string
	http   http.Handler
	group  *partition.Group
	fault  *fault.Backend
	leave  func() // as SIGTERM does, and waits
	gone   bool   // refuses connections
	breaks bool   // ends connections before an answer
	served int
}

func newFleet(t *testing.T) *fleet {
	return &fleet{T: t, store: memory.NewStore(), hosts: map[string]*host{}, leases: map[int]*partition.Lease{}}
}

// look starts a process that only forwards.
func (f *fleet) look(id string, size int) (*host, *electorhttp.Router) {
	h := &host{id: id}
	var b backends.Backend = f.store.Handle()
	if f.polls {
		b = struct{ backends.Backend }{b}
	}
	h.fault, b = fault.Wrap(b)
	g, err := partition.New(b, "orders", &partition.Options{Partitions: size, Elector: elector.Options{ID: id, Value: id + ":1", Logger: quiet}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { g.Close() })
	r := electorhttp.Route(f.Context(), g)
	r.Transport, r.Logger, r.Wait = f, quiet, f.wait
	h.group = g
	h.http = r.Forward(func(r *http.Request) string { return r.URL.Path }, func(w http.ResponseWriter, r *http.Request, lease *partition.Lease) {
		f.serve(h, w, r, lease)
	})
	f.mutex.Lock()
	f.hosts[id+":1"] = h
	f.mutex.Unlock()
	return h, r
}

// join starts a member that does nothing but serve.
func (f *fleet) join(id string) *host { return f.work(id, nil) }

func (f *fleet) work(id string, work partition.Work) *host {
	h, r := f.look(id, partitions)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := h.group.Run(ctx, r.Work(work)); err != nil {
			f.Errorf("%s: %v", id, err)
		}
	}()
	h.leave = func() { cancel(); <-done }
	f.Cleanup(h.leave)
	return h
}

// serve is what the owner does, under one valid lease at a time.
func (f *fleet) serve(h *host, w http.ResponseWriter, r *http.Request, lease *partition.Lease) {
	body, err := io.ReadAll(r.Body)
	if err = cmp.Or(err, lease.Check()); err != nil {
		f.Errorf("%s serves a request: %v", h.id, err)
	}
	f.mutex.Lock()
	if other := f.leases[lease.Partition()]; other != nil && other != lease && other.Check() == nil {
		f.Errorf("%v serves while %v is valid", lease, other)
	}
	f.leases[lease.Partition()] = lease
	h.served++
	during := f.during
	f.mutex.Unlock()
	if during != nil {
		during(w, r, lease)
	}
	fmt.Fprintf(w, "%s %s %s%s", h.id, r.Method, r.URL.Path, body)
}

func (f *fleet) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mutex.Lock()
	h := f.hosts[r.URL.Host]
	gone, breaks := h == nil || h.gone, h != nil && h.breaks
	var served http.Handler
	if h != nil {
		served = h.http
	}
	f.hops++
	f.mutex.Unlock()
	n := 0
	for _, election := range r.Header.Values("Elector-Forwarded") {
		if group, _ := strings.CutPrefix(election, "orders.p."); group != election && len(group) == 1 {
			n++
		}
	}
	if n != 1 {
		f.Errorf("a request was forwarded %d times", n)
		return nil, errBroken
	}
	if gone {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	served.ServeHTTP(w, r)
	if breaks {
		return nil, errBroken
	}
	return w.Result(), nil
}

// set changes what the network does.
func (f *fleet) set(change func()) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	change()
}

// settle waits until all partitions have owners.
func (f *fleet) settle(members ...*host) {
	f.Helper()
	for {
		time.Sleep(time.Second)
		synctest.Wait()
		owners, err := members[0].group.Owners(f.Context())
		shares := map[string]int{}
		for _, o := range owners {
			shares[o.ID]++
		}
		if err == nil && len(owners) == partitions && shares[""] == 0 && len(shares) == len(members) {
			return
		}
	}
}

// owned returns a key of a partition that a process owns.
func (f *fleet) owned(by *host) string {
	f.Helper()
	for i := range 1000 {
		key := fmt.Sprintf("/%d", i)
		o, err := by.group.Owner(f.Context(), partition.Of(key, partitions))
		if err != nil {
			f.Fatal(err)
		}
		if o.ID == by.id {
			return key
		}
	}
	f.Fatalf("%s owns nothing", by.id)
	return ""
}

func send(h *host, method, path, body string, header ...string) *httptest.ResponseRecorder {
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, path, content)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.http.ServeHTTP(w, r)
	return w
}

// traffic sends requests with different keys to a process until stop is called, which
// fails the test if not each one was served.
func (f *fleet) traffic(to *host) (stop func()) {
	ctx, cancel := context.WithCancel(f.Context())
	var all sync.WaitGroup
	all.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			all.Go(func() {
				path := fmt.Sprintf("/%d", i)
				w := send(to, "POST", path, " content")
				if _, served, _ := strings.Cut(w.Body.String(), " "); w.Code != 200 || served != "POST "+path+" content" {
					f.Errorf("%s: %d %s", path, w.Code, w.Body)
				}
			})
			time.Sleep(50 * time.Millisecond)
		}
	})
	return func() { cancel(); all.Wait() }
}

func (f *fleet) servedBy(h *host) int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return h.served
}

func TestRoute(t *testing.T) {
	bubbles(t, map[string]func(*testing.T){
		"moves": func(t *testing.T) { routeMoves(t, false) }, "moves, polled": func(t *testing.T) { routeMoves(t, true) }, "crash": routeCrash, "no owner": routeNoOwner, "loop": routeLoop,
		"may have had an effect": routeEffect, "drain": func(t *testing.T) { routeDrain(t, false) }, "slow worker": func(t *testing.T) { routeDrain(t, true) }, "lost": routeLost, "bodies": routeBodies,
		"answers": routeAnswers,
	})
}

// While members join and leave, each request is served, once, by the owner.
func routeMoves(t *testing.T, polls bool) {
	f := newFleet(t)
	f.polls = polls
	a := f.join("a")
	f.settle(a)
	stop := f.traffic(a)
	b := f.join("b")
	f.settle(a, b)
	if f.servedBy(b) == 0 {
		time.Sleep(10 * time.Second)
	}
	before := f.servedBy(b)
	c := f.join("c")
	f.settle(a, b, c)
	b.leave()
	f.settle(a, c)
	stop()
	for _, h := range []*host{a, b, c} {
		if f.servedBy(h) == 0 {
			t.Errorf("%s has served no request", h.id)
		}
	}
	if before == 0 {
		t.Error("b has served no request while it stayed")
	}
}

// When the owner crashes, requests wait for the next one.
func routeCrash(t *testing.T) {
	f := newFleet(t)
	f.wait = time.Minute
	a, b := f.join("a"), f.join("b")
	f.settle(a, b)
	stop := f.traffic(a)
	f.set(func() { b.gone = true })
	b.fault.Always(fault.Hang)
	b.fault.CutWatches(backends.ErrUnavailable)
	time.Sleep(30 * time.Second)
	stop()
	if f.servedBy(a) < 30*20 {
		t.Errorf("a has served %d requests, not all", f.servedBy(a))
	}
}

func routeNoOwner(t *testing.T) {
	f := newFleet(t)
	patient, _ := f.look("patient", 0)
	f.wait = -1
	hasty, _ := f.look("hasty", 0)
	for _, c := range []struct {
		*host
		waits time.Duration
	}{{patient, 33*time.Second + time.Second/8}, {hasty, 0}} {
		synctest.Wait()
		start := time.Now()
		w := send(c.host, "GET", "/1", "")
		if w.Code != 503 || w.Header().Get("Retry-After") != "1" || w.Body.String() != "group \"orders\": no member owns the partition\n" {
			t.Errorf("%s: %d %s", c.id, w.Code, w.Body)
		}
		if took := time.Since(start); took != c.waits {
			t.Errorf("%s waited %v, want %v", c.id, took, c.waits)
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	start := time.Now()
	patient.http.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/1", nil).WithContext(ctx))
	if time.Since(start) != 0 {
		t.Error("a request waits although its client has gone")
	}
}

// Two processes take each other for the owner: each request ends after one hop, and the
// first one tries again until it has waited.
func routeLoop(t *testing.T) {
	f, other := newFleet(t), newFleet(t)
	f.wait, other.wait = 5*time.Second, 5*time.Second
	a, _ := f.look("a", 0)
	b, _ := other.look("b", 0)
	f.settle(f.join("former"))
	other.settle(other.join("former"))
	f.set(func() { f.hosts["former:1"] = b })
	other.set(func() { other.hosts["former:1"] = a })
	start := time.Now()
	w := send(a, "POST", "/1", "content")
	if w.Code != 503 || w.Header().Get("Retry-After") != "1" || w.Header().Get("Elector-Refused") != "" || time.Since(start) != 5*time.Second {
		t.Errorf("%d %s %v after %v", w.Code, w.Body, w.Header(), time.Since(start))
	}
	if f.hops == 0 || f.hops > 20 || other.hops > 0 {
		t.Errorf("%d and %d hops", f.hops, other.hops)
	}
	start = time.Now()
	w = send(b, "GET", "/1", "", "Elector-Forwarded", "orders.p.3", "Elector-Try", "7")
	if w.Code != 503 || w.Header().Get("Elector-Refused") != "7" || other.hops > 0 || time.Since(start) != 0 {
		t.Errorf("forwarded before: %d %s after %d hops", w.Code, w.Body, other.hops)
	}
}

// A connection breaks after the owner has served the request.
func routeEffect(t *testing.T) {
	f := newFleet(t)
	a, b := f.join("a"), f.join("b")
	f.settle(a, b)
	key := f.owned(b)
	f.set(func() { b.breaks = true })
	for _, c := range []struct {
		method, body, header string
		times                int
	}{
		{"POST", "content", "", 1},
		{"PUT", "content", "", 1},
		{"POST", "", "", 1},
		{"GET", "", "", 2},
		{"POST", "content", "Idempotency-Key", 2},
	} {
		before := f.servedBy(b)
		w := send(a, c.method, key, c.body, cmp.Or(c.header, "X-Other"), "7")
		if w.Code != 502 || w.Body.String() != "group \"orders\": the owner did not answer\n" {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		}
		if n := f.servedBy(b) - before; n != c.times {
			t.Errorf("%+v: served %d times", c, n)
		}
	}
	f.set(func() {
		f.during = func(http.ResponseWriter, *http.Request, *partition.Lease) { f.set(func() { b.breaks = false }) }
	})
	before := f.servedBy(b)
	if w := send(a, "GET", key, ""); w.Code != 200 || f.servedBy(b)-before != 2 {
		t.Errorf("a GET whose connection breaks once: %d %s, served %d times", w.Code, w.Body, f.servedBy(b)-before)
	}
}

// A request that is served keeps its partition from moving; those that come later wait for
// the next owner, also while the worker has not returned.
func routeDrain(t *testing.T, slow bool) {
	f := newFleet(t)
	begun, finish := make(chan *partition.Lease, partitions), make(chan struct{})
	a := f.work("a", func(ctx context.Context, _ *partition.Lease) error {
		<-ctx.Done()
		if slow {
			<-finish
		}
		return nil
	})
	f.settle(a)
	f.set(func() {
		f.during = func(_ http.ResponseWriter, r *http.Request, lease *partition.Lease) {
			begun <- lease
			<-finish
			if err := r.Context().Err(); err != nil {
				t.Errorf("the context of a request ended: %v", context.Cause(r.Context()))
			}
		}
	})
	var all sync.WaitGroup
	keys := map[int]string{}
	for i := 0; len(keys) < partitions; i++ {
		key := fmt.Sprintf("/%d", i)
		if n := partition.Of(key, partitions); keys[n] == "" {
			keys[n] = key
			all.Go(func() {
				if w := send(a, "POST", key, ""); w.Code != 200 || !strings.HasPrefix(w.Body.String(), "a ") {
					t.Errorf("%s: %d %s", key, w.Code, w.Body)
				}
			})
		}
	}
	leases := map[int]*partition.Lease{}
	for range partitions {
		l := <-begun
		leases[l.Partition()] = l
	}
	f.set(func() { f.during = nil })
	b := f.join("b")
	stopped := 0
	for stopped == 0 {
		time.Sleep(time.Second)
		for n, l := range leases {
			if l.Context().Err() != nil {
				stopped++
				if err := l.Check(); err != nil {
					t.Errorf("%v is over while a request is served: %v", l, err)
				}
				all.Go(func() {
					if w := send(a, "POST", keys[n], ""); w.Code != 200 || !strings.HasPrefix(w.Body.String(), "b ") {
						t.Errorf("a request after the worker was told to stop: %d %s", w.Code, w.Body)
					}
				})
			}
		}
	}
	time.Sleep(time.Second)
	if n := f.servedBy(b); n > 0 {
		t.Errorf("b serves %d requests before a has finished", n)
	}
	close(finish)
	all.Wait()
	if n := f.servedBy(b); n != stopped {
		t.Errorf("b has served %d requests, want %d", n, stopped)
	}
}

// The context of a request ends when the lease is lost.
func routeLost(t *testing.T) {
	f := newFleet(t)
	f.wait = -1
	a := f.join("a")
	f.settle(a)
	f.set(func() {
		f.during = func(_ http.ResponseWriter, r *http.Request, lease *partition.Lease) {
			a.fault.Always(fault.Hang)
			<-r.Context().Done()
			if err := context.Cause(r.Context()); !errors.Is(err, elector.ErrLost) {
				t.Errorf("the context ended with %v", err)
			}
		}
	})
	if w := send(a, "GET", "/1", ""); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := send(a, "GET", "/1", ""); w.Code != 503 || w.Body.String() != "group \"orders\": this process is to own the partition, and does not yet\n" {
		t.Errorf("after the loss: %d %s", w.Code, w.Body)
	}
	a.fault.Always(nil)
}

// What is certainly not sent is repeated with its body; what was read of a long one is not.
func routeBodies(t *testing.T) {
	f := newFleet(t)
	a, b := f.join("a"), f.join("b")
	f.settle(a, b)
	key, long, serves := f.owned(b), strings.Repeat("x", 100_000), b.http
	for _, c := range []struct {
		name, body string
		unknown    bool // length
		refused    bool // by b, which reads it; otherwise no connection is made
		code       int
	}{
		{"short", "content", false, false, 200},
		{"short, refused", "content", false, true, 200},
		{"long", long, false, false, 200},
		{"long, refused", long, false, true, 503},
		{"unknown", "content", true, false, 200},
		{"unknown, refused", "content", true, true, 503},
		{"none, refused", "", false, true, 200},
	} {
		f.set(func() {
			b.gone = !c.refused
			if c.refused {
				b.http = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
					w.Header().Set("Elector-Refused", r.Header.Get("Elector-Try"))
					w.WriteHeader(503)
				})
			}
		})
		time.AfterFunc(2*time.Second, func() { f.set(func() { b.http, b.gone = serves, false }) })
		r := httptest.NewRequest("POST", key, strings.NewReader(c.body))
		if c.unknown {
			r.ContentLength = -1
		}
		w := httptest.NewRecorder()
		a.http.ServeHTTP(w, r)
		if want := "b POST " + key + c.body; w.Code != c.code || c.code == 200 && w.Body.String() != want {
			t.Errorf("%s: %d %.80s", c.name, w.Code, w.Body)
		}
		time.Sleep(5 * time.Second)
	}
}

// The owner's own answers pass, and the settings that are wrong show.
func routeAnswers(t *testing.T) {
	f := newFleet(t)
	a, b := f.join("a"), f.join("b")
	f.settle(a, b)
	key := f.owned(b)
	f.set(func() {
		f.during = func(w http.ResponseWriter, r *http.Request, lease *partition.Lease) {
			if got, want := r.Header.Get("Elector-Forwarded"), lease.Election(); got != want {
				t.Errorf("forwarded by %q, want %q", got, want)
			}
			http.Error(w, "busy", http.StatusServiceUnavailable)
		}
	})
	if w := send(a, "GET", key, ""); w.Code != 503 || !strings.HasPrefix(w.Body.String(), "busy") || f.servedBy(b) != 1 {
		t.Errorf("%d %s", w.Code, w.Body)
	}

	f = newFleet(t)
	g, err := partition.New(f.store.Handle(), "orders", &partition.Options{Partitions: partitions, Elector: elector.Options{ID: "mute", Logger: quiet}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- g.Run(ctx, func(ctx context.Context, _ *partition.Lease) error { <-ctx.Done(); return nil })
	}()
	a, _ = f.look("a", 0)
	time.Sleep(time.Minute)
	if w := send(a, "GET", "/1", ""); w.Code != 502 || w.Body.String() != "group \"orders\": the owner has published no address\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	cancel()
	if err := errors.Join(<-done, g.Close()); err != nil {
		t.Error(err)
	}
}
