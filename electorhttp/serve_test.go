package electorhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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
)

// A town has servers that listen at pipes, and clients.
type town struct {
	*testing.T
	store  *memory.Store
	client *http.Client
	denied bool // from the start

	mutex     sync.Mutex
	listeners map[string]*pipes
	houses    []*house
	token     elector.Token  // that a request was served with last
	served    map[string]int // how often each request was
	during    func(*house, *http.Request)
}

// A house is a process that calls Serve.
type house struct {
	id     string
	e      *elector.Elector
	o      *electorhttp.Observer
	server *http.Server
	pipes  *pipes
	fault  *fault.Backend
	work   func(context.Context, *elector.Lease) error
	ready  bool // as the balancer has seen
}

// Pipes are a listener.
type pipes struct {
	address string
	calls   chan net.Conn
	closed  chan struct{}
	close   func()
	err     chan error
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.calls:
		return c, nil
	case err := <-p.err:
		return nil, err
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.close(); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func newTown(t *testing.T) *town {
	w := &town{T: t, store: memory.NewStore(), listeners: map[string]*pipes{}, served: map[string]int{}}
	w.client = &http.Client{Transport: w.transport()}
	return w
}

func (w *town) transport() http.RoundTripper {
	t := &http.Transport{DialContext: w.dial, MaxIdleConnsPerHost: 100}
	w.Cleanup(t.CloseIdleConnections)
	return t
}

func pipesAt(address string) *pipes {
	closed := make(chan struct{})
	return &pipes{address: address, calls: make(chan net.Conn), closed: closed, close: sync.OnceFunc(func() { close(closed) }), err: make(chan error, 1)}
}

func (w *town) listen(address string) *pipes {
	p := pipesAt(address)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.listeners[address] = p
	return p
}

func (w *town) dial(ctx context.Context, _, address string) (net.Conn, error) {
	w.mutex.Lock()
	p := w.listeners[address]
	w.mutex.Unlock()
	if p != nil {
		near, far := net.Pipe()
		select {
		case p.calls <- far:
			return near, nil
		case <-p.closed:
		case <-ctx.Done():
		}
	}
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
}

// build makes a house, which does not serve yet.
func (w *town) build(id string) *house {
	h := &house{id: id, pipes: w.listen(id + ":1")}
	h.fault, h.e = candidate(w.T, w.store, id, h.pipes.address)
	if w.denied {
		h.fault.Always(fault.Fails(backends.ErrDenied))
	}
	h.o = electorhttp.Observe(w.Context(), h.e)
	h.o.Transport, h.o.Logger = w.transport(), quiet
	mux := http.NewServeMux()
	mux.Handle("GET /ready", h.o.Ready())
	mux.Handle("/", h.o.Forward(http.HandlerFunc(func(a http.ResponseWriter, r *http.Request) { w.serve(h, a, r) })))
	h.server = &http.Server{Handler: mux}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.houses = append(w.houses, h)
	return h
}

func candidate(t *testing.T, s *memory.Store, id, address string) (*fault.Backend, *elector.Elector) {
	f, b := fault.Wrap(s.Handle())
	return f, join(t, b, id, address)
}

// open lets a house serve, until stop is called.
func (w *town) open(h *house) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done, err := make(chan struct{}), error(nil)
	go func() {
		defer close(done)
		err = h.o.Serve(ctx, h.server, h.pipes, h.work)
	}()
	stop = func() error { cancel(); <-done; return err }
	w.Cleanup(func() { stop() })
	return stop
}

// serve is what the leader does.
func (w *town) serve(h *house, a http.ResponseWriter, r *http.Request) {
	lease := electorhttp.LeaseFrom(r.Context())
	if err := lease.Check(); err != nil {
		w.Errorf("%s serves %s: %v", h.id, r.URL.Path, err)
	}
	w.mutex.Lock()
	if lease.Token() < w.token {
		w.Errorf("%s serves %s with token %d after %d", h.id, r.URL.Path, lease.Token(), w.token)
	}
	w.token = lease.Token()
	w.served[r.URL.Path]++
	during := w.during
	w.mutex.Unlock()
	if during != nil {
		during(h, r)
	}
	io.WriteString(a, h.id)
}

// post sends a request that may not be sent twice, and returns who has served it.
func (w *town) post(to *house, path string) (string, error) {
	answer, err := w.client.Post("http://"+to.pipes.address+path, "text/plain", strings.NewReader("content"))
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != 200 {
		err = fmt.Errorf("%d %s", answer.StatusCode, body)
	}
	return string(body), err
}

func (w *town) isReady(h *house) bool {
	answer, err := w.client.Get("http://" + h.pipes.address + "/ready")
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == 200
}

// await waits until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 10_000 {
		if synctest.Wait(); holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("in vain: %s", what)
}

func leads(h *house) func() bool {
	return func() bool { _, err := h.e.Lease(); return err == nil }
}

func TestServe(t *testing.T) {
	bubbles(t, map[string]func(*testing.T){
		"deploys": serveDeploys, "order": serveOrder, "alone": serveAlone, "follower": serveFollower,
		"told before": serveToldBefore, "listener fails": serveListenerFails, "never ready": serveNeverReady, "worker fails": serveWorkerFails,
		"panic": servePanics, "late": func(t *testing.T) { serveLate(t, 0) }, "late, and nothing waits": func(t *testing.T) { serveLate(t, -1) }, "long request": serveLongRequest, "group": serveGroup,
	})
}

// Three processes are replaced, twice, while a balancer that knows no leader sends them
// requests.
func serveDeploys(t *testing.T) {
	w := newTown(t)
	var stops []func() error
	start := func(id string) {
		h := w.build(id)
		stops = append(stops, w.open(h))
		await(t, "a process is ready", func() bool { return w.isReady(h) })
	}
	for i := range 3 {
		start(fmt.Sprint("v0-", i))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { // the probes
		for ctx.Err() == nil {
			w.mutex.Lock()
			houses := w.houses
			w.mutex.Unlock()
			for _, h := range houses {
				ready := w.isReady(h)
				w.mutex.Lock()
				h.ready = ready
				w.mutex.Unlock()
			}
			time.Sleep(time.Second)
		}
	})
	time.Sleep(2 * time.Second)
	sent := 0
	all.Go(func() {
		for ; ctx.Err() == nil; sent++ {
			w.mutex.Lock()
			var ready []*house
			for _, h := range w.houses {
				if h.ready {
					ready = append(ready, h)
				}
			}
			w.mutex.Unlock()
			to, path := ready[sent%len(ready)], fmt.Sprint("/", sent)
			all.Go(func() {
				if _, err := w.post(to, path); err != nil {
					t.Errorf("%s to %s: %v", path, to.id, err)
				}
			})
			time.Sleep(20 * time.Millisecond)
		}
	})
	for deploy := 1; deploy <= 2; deploy++ {
		for i := range 3 {
			start(fmt.Sprintf("v%d-%d", deploy, i))
			time.Sleep(2 * time.Second)
			if err := stops[0](); err != nil {
				t.Error(err)
			}
			stops = stops[1:]
		}
	}
	cancel()
	all.Wait()
	for i := range sent {
		if n := w.served[fmt.Sprint("/", i)]; n != 1 {
			t.Errorf("request %d was served %d times", i, n)
		}
	}
}

// The leader stops: it is not ready at once, it keeps the lead for the requests inside, it
// serves until others have seen that it stops and it has seen the next leader.
func serveOrder(t *testing.T) {
	w := newTown(t)
	a, b := w.build("a"), w.build("b")
	told := make(chan bool)
	a.work = func(ctx context.Context, _ *elector.Lease) error { <-ctx.Done(); close(told); return nil }
	stop := w.open(a)
	await(t, "a leads", leads(a))
	w.open(b)
	await(t, "b is ready", func() bool { return w.isReady(b) })
	begun, finish := make(chan bool), make(chan bool)
	w.during = func(*house, *http.Request) { close(begun); <-finish }
	inside := make(chan error, 1)
	go func() {
		by, err := w.post(b, "/inside")
		if by != "a" {
			err = fmt.Errorf("%s serves it: %w", by, err)
		}
		inside <- err
	}()
	<-begun
	w.mutex.Lock()
	w.during = nil
	w.mutex.Unlock()

	start, stopped := time.Now(), make(chan error, 1)
	go func() { stopped <- stop() }()
	<-told
	synctest.Wait()
	if w.isReady(a) {
		t.Error("a is ready although it stops")
	}
	if answer, err := w.client.Get("http://a:1/ready"); err != nil {
		t.Error(err)
	} else if answer.Body.Close(); !answer.Close {
		t.Error("a process that stops lets its client use the connection again")
	}
	if !leads(a)() {
		t.Error("a does not lead although it serves a request")
	}
	time.Sleep(2 * time.Second)
	close(finish)
	if err := <-inside; err != nil {
		t.Error(err)
	}
	for len(stopped) == 0 {
		if by, err := w.post(a, fmt.Sprint("/", time.Since(start))); by != "b" && time.Since(start) < 3*time.Second {
			t.Fatalf("a request to a, %v after it was told to stop: %s %v", time.Since(start), by, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if took := time.Since(start); took < 3*time.Second || took > 4*time.Second {
		t.Errorf("a has stopped after %v, want 3 s", took)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	var op *net.OpError
	if _, err := w.post(a, "/late"); !errors.As(err, &op) || op.Op != "dial" {
		t.Errorf("a request to a process that has stopped: %v", err)
	}
}

// A leader without a successor lingers for as long as requests wait for one, and a request
// may wait.
func serveAlone(t *testing.T) {
	for _, c := range []struct {
		requests    bool
		least, most time.Duration
	}{{true, 23 * time.Second, 33 * time.Second}, {false, 3 * time.Second, 4 * time.Second}} {
		w := newTown(t)
		a := w.build("a")
		stop := w.open(a)
		await(t, "a leads", leads(a))
		start, stopped := time.Now(), make(chan error, 1)
		go func() { stopped <- stop() }()
		var all sync.WaitGroup
		for _, after := range []time.Duration{2 * time.Second, 9 * time.Second} {
			if c.requests {
				time.Sleep(time.Until(start.Add(after)))
				all.Go(func() {
					if _, err := w.post(a, "/"); err == nil || !strings.Contains(err.Error(), "there is no leader") {
						t.Errorf("a request after %v: %v", after, err)
					}
				})
			}
		}
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took < c.least || took > c.most {
			t.Errorf("%+v: it has stopped after %v", c, took)
		}
		all.Wait()
	}
}

// A process that does not lead lingers only until others have seen that it stops. It
// observes although the context of Observe has ended.
func serveFollower(t *testing.T) {
	w := newTown(t)
	a, b := w.build("a"), w.build("b")
	w.open(a)
	await(t, "a leads", leads(a))
	ctx, cancel := context.WithCancel(t.Context())
	o := electorhttp.Observe(ctx, b.e)
	o.Transport, o.Logger, o.Linger = b.o.Transport, quiet, 5*time.Second
	b.server.Handler, b.o = o.Forward(http.NotFoundHandler()), o
	stop := w.open(b)
	time.Sleep(5 * time.Second)
	start, stopped := time.Now(), make(chan error, 1)
	cancel()
	go func() { stopped <- stop() }()
	time.Sleep(4 * time.Second)
	if by, err := w.post(b, "/"); by != "a" || err != nil {
		t.Errorf("a request to b while it lingers: %s %v", by, err)
	}
	if err := <-stopped; err != nil || time.Since(start) < 5*time.Second || time.Since(start) > 6*time.Second {
		t.Errorf("b has stopped after %v: %v", time.Since(start), err)
	}
}

// Serve after the end of what it needs closes the listener.
func serveToldBefore(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, observer := range []bool{false, true} {
		w := newTown(t)
		a := w.build("a")
		ctx, start := over, time.Now()
		if observer {
			ctx, a.o = t.Context(), electorhttp.Observe(over, a.e)
			synctest.Wait()
		}
		if err := a.o.Serve(ctx, a.server, a.pipes, nil); (err != nil) != observer || time.Since(start) != 0 {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if _, err := a.pipes.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the listener: %v", err)
		}
	}
}

// The worker is told to stop when the server has failed, and requests inside are served.
func serveListenerFails(t *testing.T) {
	w := newTown(t)
	a := w.build("a")
	told := false
	a.work = func(ctx context.Context, _ *elector.Lease) error { <-ctx.Done(); told = true; return nil }
	done := make(chan error, 1)
	go func() { done <- a.o.Serve(t.Context(), a.server, a.pipes, a.work) }()
	await(t, "a leads", leads(a))
	begun, answered := make(chan bool), make(chan error, 1)
	w.during = func(*house, *http.Request) { close(begun); time.Sleep(time.Second) }
	go func() { _, err := w.post(a, "/"); answered <- err }()
	<-begun
	start := time.Now()
	a.pipes.err <- errBroken
	if err := <-done; !errors.Is(err, errBroken) || !told || time.Since(start) > 2*time.Second {
		t.Errorf("after %v: %v; the worker was told: %v", time.Since(start), err, told)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if leads(a)() {
		t.Error("it leads")
	}
}

// A process whose election cannot run does not linger.
func serveNeverReady(t *testing.T) {
	w := newTown(t)
	w.denied = true
	a := w.build("a")
	start := time.Now()
	if err := a.o.Serve(t.Context(), a.server, a.pipes, nil); !errors.Is(err, elector.ErrDenied) || time.Since(start) > time.Second {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
}

// Another process leads when the worker fails, and the error is returned.
func serveWorkerFails(t *testing.T) {
	w := newTown(t)
	a, b := w.build("a"), w.build("b")
	fail := make(chan bool)
	a.work = func(context.Context, *elector.Lease) error { <-fail; return errBroken }
	stop := w.open(a)
	await(t, "a leads", leads(a))
	w.open(b)
	await(t, "b is ready", func() bool { return w.isReady(b) })
	close(fail)
	await(t, "b leads", leads(b))
	if by, err := w.post(a, "/"); by != "b" || err != nil {
		t.Errorf("a request to a: %s %v", by, err)
	}
	time.Sleep(time.Minute)
	if err := stop(); err != errBroken && !errors.Is(err, errBroken) {
		t.Errorf("it returns %v", err)
	}
}

func servePanics(t *testing.T) {
	w := newTown(t)
	a := w.build("a")
	defer func() {
		if r := recover(); r != "broken" {
			t.Errorf("the panic is %v", r)
		}
		var op *net.OpError
		if _, err := w.post(a, "/"); !errors.As(err, &op) || op.Op != "dial" {
			t.Errorf("a request: %v", err)
		}
	}()
	a.o.Serve(t.Context(), a.server, a.pipes, func(context.Context, *elector.Lease) error { panic("broken") })
}

// A request that takes too long is cut, and that is an error.
func serveLongRequest(t *testing.T) {
	w := newTown(t)
	a := w.build("a")
	a.o.ShutdownTimeout, a.o.Wait = 2*time.Second, -1
	begun := make(chan bool)
	a.server.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // until then net/http does not see that the connection is closed
		close(begun)
		<-r.Context().Done()
	})
	stop := w.open(a)
	await(t, "a leads", leads(a))
	answered := make(chan error, 1)
	go func() { _, err := w.post(a, "/"); answered <- err }()
	<-begun
	start := time.Now()
	if err := stop(); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 5*time.Second {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
	if err := <-answered; err == nil {
		t.Error("the request was answered")
	}
}
