package electorhttp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/electorhttp"
	"github.com/elector-go/elector/internal/fault"
	"github.com/elector-go/elector/partition"
)

func TestRouteHostile(t *testing.T) {
	bubbles(t, map[string]func(*testing.T){
		"timeout while it drains": func(t *testing.T) { routeStuck(t, false) }, "lost while it drains": func(t *testing.T) { routeStuck(t, true) },
		"broken, then gone": routeBrokenThenGone, "repeated by net-http": routeRepeated, "nested": routeNested, "joined headers": routeJoined,
	})
}

// A request is served for so long that the lease ends although its worker was only told to
// stop at first: the request's context ends with the lease.
func routeStuck(t *testing.T, lost bool) {
	f := newFleet(t)
	a := f.join("a")
	f.settle(a)
	stay := make(chan struct{})
	stopped := make(chan struct{}, partitions)
	f.set(func() {
		f.during = func(_ http.ResponseWriter, r *http.Request, lease *partition.Lease) {
			select {
			case <-lease.Context().Done():
			case <-stay:
				return // it does not move
			}
			if lease.Check() == nil {
				stopped <- struct{}{}
			} else if !lost {
				t.Errorf("%v is over at once", lease)
			}
			for lease.Check() == nil {
				if r.Context().Err() != nil {
					t.Errorf("the context of a request ends while %v is valid", lease)
				}
				time.Sleep(time.Second / 10)
			}
			select {
			case <-r.Context().Done():
				if err := context.Cause(r.Context()); !errors.Is(err, elector.ErrLost) {
					t.Errorf("the context of a request ended with %v", err)
				}
			case <-time.After(time.Minute):
				t.Errorf("a minute after the end of %v the context of its request goes on: %v", lease, lease.Check())
			}
		}
	})
	done := make(chan struct{})
	sent := map[int]bool{}
	for i := 0; len(sent) < partitions; i++ {
		key := fmt.Sprintf("/%d", i)
		if n := partition.Of(key, partitions); !sent[n] {
			sent[n] = true
			go func() { send(a, "POST", key, ""); done <- struct{}{} }()
		}
	}
	time.Sleep(time.Second)
	f.join("b")
	<-stopped
	if lost {
		a.fault.Always(fault.Hang)
	}
	time.Sleep(5 * time.Minute)
	a.fault.Always(nil)
	close(stay)
	for range partitions {
		<-done
	}
}

// The owner crashes while it serves a request that may be sent again: the request may have
// had an effect, whatever became of the second try.
func routeBrokenThenGone(t *testing.T) {
	f := newFleet(t)
	a, b := f.join("a"), f.join("b")
	f.settle(a, b)
	key := f.owned(b)
	f.set(func() {
		b.breaks = true
		f.during = func(http.ResponseWriter, *http.Request, *partition.Lease) { f.set(func() { b.gone = true }) }
	})
	w := send(a, "POST", key, "content", "Idempotency-Key", "7")
	if f.servedBy(b) != 1 || w.Code != 502 {
		t.Errorf("a request that had an effect: %d %s, served %d times", w.Code, w.Body, f.servedBy(b))
	}
}

// As routeBrokenThenGone, on a connection that was used before: net/http itself sends the
// request again, and finds the owner gone, or it refuses.
func routeRepeated(t *testing.T) {
	for i, header := range []string{"Idempotency-Key", "X-Idempotency-Key", "Idempotency-Key", "X-Idempotency-Key"} {
		refuses := i >= 2
		f := newFleet(t)
		a, r := f.look("a", 0)
		b := f.join("b")
		f.settle(b)
		key := f.owned(b)
		served, gone := 0, false
		serve := func(c net.Conn) {
			defer c.Close()
			for in := bufio.NewReader(c); ; {
				r, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				io.Copy(io.Discard, r.Body)
				if gone {
					fmt.Fprintf(c, "HTTP/1.1 503 Busy\r\nElector-Refused: %s\r\nContent-Length: 0\r\n\r\n", r.Header.Get("Elector-Try"))
					continue
				}
				served++
				if r.Header.Get(header) != "" {
					gone = true
					return
				}
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			}
		}
		transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			if gone && !refuses {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
			}
			near, far := net.Pipe()
			go serve(far)
			return near, nil
		}}
		r.Transport = transport
		a.http = r.Forward(func(r *http.Request) string { return r.URL.Path }, nil)
		if w := send(a, "POST", key, "content"); w.Code != 200 || served != 1 {
			t.Errorf("%d %s, served %d times", w.Code, w.Body, served)
		}
		if w := send(a, "POST", key, "content", header, "7"); w.Code != 502 || served != 2 {
			t.Errorf("%s: %d %s, served %d times", header, w.Code, w.Body, served-1)
		}
		transport.CloseIdleConnections()
	}
}

// What the owner serves passes the request on, by another key: that one's refusal does not
// mean that the request had no effect.
func routeNested(t *testing.T) {
	f := newFleet(t)
	a := f.join("a")
	b, r := f.look("b", partitions)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- b.group.Run(ctx, r.Work(nil)) }()
	f.settle(a, b)
	key, other := f.owned(b), f.owned(a)
	inner := r.Forward(func(*http.Request) string { return other }, func(w http.ResponseWriter, r *http.Request, lease *partition.Lease) {
		t.Error("b serves a request of a's")
	})
	f.set(func() {
		f.during = func(w http.ResponseWriter, r *http.Request, _ *partition.Lease) { inner.ServeHTTP(w, r) }
	})
	if w := send(a, "POST", key, "content"); w.Code != 503 || f.servedBy(b) != 1 {
		t.Errorf("%d %s, served %d times", w.Code, w.Body, f.servedBy(b))
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A proxy may join the values of headers in one line. A group whose name begins with this
// one's is another.
func routeJoined(t *testing.T) {
	f := newFleet(t)
	f.wait = -1
	a, b := f.join("a"), f.join("b")
	f.settle(a, b)
	key := f.owned(b)
	for _, c := range []struct {
		header string
		code   int
		hops   int
	}{
		{"orders.p.3", 503, 0},
		{"invoices, orders.p.3", 503, 0},
		{"orders.p.3,invoices", 503, 0},
		{"invoices", 200, 1},
		{"orders.p.eu.p.3", 200, 1},
	} {
		f.set(func() { f.hops = 0 })
		w := httptest.NewRecorder()
		r := httptest.NewRequest("POST", key, nil)
		r.Header.Set("Elector-Forwarded", c.header)
		a.http.ServeHTTP(w, r)
		if w.Code != c.code || f.hops != c.hops {
			t.Errorf("forwarded by %s: %d %s after %d hops", c.header, w.Code, w.Body, f.hops)
		}
	}
}

// What the leader serves calls the service itself, with the headers that it got, and a
// process that does not lead refuses that: the leader's answer is not its own refusal.
func TestRefusalPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTeam(t)
		a, _ := m.start("a", nil)
		m.led(a)
		b, c := m.join("b"), m.join("c")
		synctest.Wait()
		m.during = func(w http.ResponseWriter, r *http.Request) {
			inner := httptest.NewRecorder()
			c.http.ServeHTTP(inner, r.Clone(t.Context()))
			maps.Copy(w.Header(), inner.Header())
			w.WriteHeader(inner.Code)
		}
		if w := post(b.http, "/"); w.Code != 503 || m.servedBy(a) != 1 {
			t.Errorf("%d %s, served %d times", w.Code, w.Body, m.servedBy(a))
		}
	})
}

// All requests go to one host: the transport keeps the connections that it needs there.
func TestConnectionsAreKept(t *testing.T) {
	const many = 20
	var made atomic.Int32
	all := make(chan bool)
	leader := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-all }))
	leader.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			made.Add(1)
		}
	}
	leader.Start()
	defer leader.Close()
	s := memory.NewStore()
	lead(t, join(t, s.Handle(), "a", leader.URL))
	o := electorhttp.Observe(t.Context(), join(t, s.Handle(), "b", ""))
	o.Logger = quiet
	h := o.Forward(http.NotFoundHandler())
	for range 3 {
		var sent sync.WaitGroup
		for range many {
			sent.Go(func() {
				if w := do(h, "GET", "/"); w.Code != 200 {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			})
		}
		for range many {
			all <- true
		}
		sent.Wait()
	}
	if n := made.Load(); n > 2*many {
		t.Errorf("%d connections for %d requests at a time", n, many)
	}
}

// A request whose client has gone while it waited, in the process that got it or in the
// leader, is not served: the client may have sent another one.
func TestClientHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		w.client.Timeout = time.Second
		a, b := w.build("a"), w.build("b")
		for _, h := range []*house{a, b} {
			go h.server.Serve(h.pipes)
			defer h.server.Close()
		}
		synctest.Wait()
		if by, err := w.post(a, "/1"); err == nil {
			t.Errorf("%s serves without a leader", by)
		}
		work := b.o.Work(nil)
		lease := lead(t, b.e)
		synctest.Wait()
		if by, err := w.post(a, "/2"); err == nil {
			t.Errorf("%s serves before its worker runs", by)
		}
		time.Sleep(time.Second) // until they have seen that
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- work(ctx, lease) }()
		time.Sleep(time.Minute)
		if len(w.served) != 0 {
			t.Errorf("served after their clients had gone: %v", w.served)
		}
		if by, err := w.post(a, "/"); by != "b" {
			t.Errorf("%s serves: %v", by, err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
