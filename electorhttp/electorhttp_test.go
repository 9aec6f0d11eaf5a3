package electorhttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/electorhttp"
)

// The tests run in bubbles of testing/synctest; a network of function calls stands
// for the real one.

var quiet = slog.New(slog.DiscardHandler)

// join makes a candidate that publishes its address.
func join(t *testing.T, b backends.Backend, id, value string) *elector.Elector {
	t.Helper()
	e, err := elector.New(b, "office", &elector.Options{ID: id, Value: value, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func lead(t *testing.T, e *elector.Elector) *elector.Lease {
	t.Helper()
	l, err := e.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func do(h http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// A network has a handler for each address.
type network map[string]http.Handler

var errBroken = errors.New("the connection broke")

func (n network) RoundTrip(r *http.Request) (*http.Response, error) {
	switch h := n[r.URL.Host]; {
	case r.URL.Host == "broken:1":
		return nil, errBroken
	case h == nil:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	default:
		if r.Body == nil {
			r.Body = http.NoBody
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result(), nil
	}
}

// observe makes a candidate forward over the network. No request waits.
func observe(t *testing.T, e *elector.Elector, n network) *electorhttp.Observer {
	o := electorhttp.Observe(t.Context(), e)
	o.Transport, o.Logger, o.Wait = n, quiet, -1
	return o
}

// named answers with its name, and what it got.
func named(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s%s for=%s by=%s body=%s", name, r.Method, r.Host, r.URL.RequestURI(), r.Header.Get("X-Forwarded-For"), r.Header.Get("Elector-Forwarded"), body)
	})
}

// bubbles runs cases, each in its bubble.
func bubbles(t *testing.T, cases map[string]func(*testing.T)) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { synctest.Test(t, c) })
	}
}

func TestLeader(t *testing.T) {
	bubbles(t, map[string]func(*testing.T){
		"answers": leaderAnswers, "shares reads": leaderSharesReads, "without a store": leaderWithoutStore,
	})
}

func leaderAnswers(t *testing.T) {
	b := memory.New()
	e := join(t, b, "a", "http://a:1")
	h := electorhttp.Leader(e)
	status := func() (s electorhttp.Status) {
		t.Helper()
		w := do(h, "GET", "/leader")
		if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || w.Code != 200 {
			t.Fatalf("%d %s: %v", w.Code, w.Body, err)
		}
		return s
	}
	if s := status(); s != (electorhttp.Status{Election: "office", State: "vacant"}) {
		t.Errorf("before: %+v", s)
	}
	l := lead(t, e)
	if s := status(); s != (electorhttp.Status{Election: "office", State: "held", ID: "a", Token: uint64(l.Token()), Value: "http://a:1", TTL: 15}) {
		t.Errorf("held: %+v", s)
	}
	if w := do(h, "POST", "/leader"); w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d", w.Code)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := status(); s.State != "vacant" || s.Token != uint64(l.Token()) {
		t.Errorf("resigned: %+v", s)
	}

	r := dead(t, b)
	status()
	time.Sleep(17 * time.Second)
	if s := status(); s.State != "lapsed" || s.ID != r.Holder || s.Unchanged != 17 {
		t.Errorf("dead for 17 s: %+v", s)
	}
}

// dead writes the record of a holder that never renews.
func dead(t *testing.T, b backends.Backend) backends.Record {
	t.Helper()
	prev, err := b.Load(t.Context(), "office")
	if err != nil {
		t.Fatal(err)
	}
	next := backends.Record{Holder: "ghost", Value: "ghost:1", Token: prev.Token + 2, TTL: 15 * time.Second, RenewEvery: 5 * time.Second, Attempt: backends.Attempt{Nonce: "ghost", Sequence: 1}}
	next, err = b.Swap(t.Context(), "office", prev, next)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// A gated store answers one read for each value in its gate.
type gated struct {
	*memory.Backend
	reads atomic.Int32
	gate  chan error
}

func (g *gated) Load(ctx context.Context, name string) (backends.Record, error) {
	g.reads.Add(1)
	select {
	case err := <-g.gate:
		if err != nil {
			return backends.Record{}, err
		}
		return g.Backend.Load(ctx, name)
	case <-ctx.Done():
		return backends.Record{}, ctx.Err()
	}
}

func leaderSharesReads(t *testing.T) {
	g := &gated{Backend: memory.New(), gate: make(chan error)}
	h := electorhttp.Leader(join(t, g, "a", ""))
	var answers atomic.Int32
	get := func(ctx context.Context) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/leader", nil).WithContext(ctx))
		if w.Code == 200 {
			answers.Add(1)
		}
	}
	first, leave := context.WithCancel(t.Context())
	go get(first)
	synctest.Wait()
	for range 10 {
		go get(t.Context())
	}
	synctest.Wait()
	leave() // the read goes on: its result is not for one request alone
	g.gate <- nil
	synctest.Wait()
	if n := g.reads.Load(); n != 2 || answers.Load() != 1 {
		t.Fatalf("%d reads and %d answers after the first read, want 2 and 1: a request must not get the result of a read that began before it", n, answers.Load())
	}
	g.gate <- nil
	synctest.Wait()
	if n := g.reads.Load(); n != 2 || answers.Load() != 11 {
		t.Errorf("%d reads for %d answers, want 2 for 11", n, answers.Load())
	}
}

func leaderWithoutStore(t *testing.T) {
	g := &gated{Backend: memory.New(), gate: make(chan error, 1)}
	h := electorhttp.Leader(join(t, g, "a", ""))
	g.gate <- backends.ErrDenied
	w := do(h, "GET", "/leader")
	if want := `{"election":"office","error":"elector: read \"office\" on memory://: the store denied access"}` + "\n"; w.Code != 503 || w.Body.String() != want || w.Header().Get("Retry-After") == "" {
		t.Errorf("denied: %d %s", w.Code, w.Body)
	}
	if w := do(h, "GET", "/leader"); w.Code != 503 { // the store hangs
		t.Errorf("hangs: %d %s", w.Code, w.Body)
	}
}

func TestProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gated{Backend: memory.New(), gate: make(chan error)}
		e := join(t, g, "a", "")
		ctx, stop := context.WithCancel(t.Context())
		o := electorhttp.Observe(ctx, e)
		codes := func(live, ready, leading int) {
			t.Helper()
			synctest.Wait()
			for _, p := range []struct {
				name string
				h    http.Handler
				want int
			}{{"live", electorhttp.Live(), live}, {"ready", o.Ready(), ready}, {"leading", electorhttp.Leading(e), leading}} {
				if w := do(p.h, "GET", "/"); w.Code != p.want {
					t.Errorf("%s: %d %s, want %d", p.name, w.Code, w.Body, p.want)
				}
				if w := do(p.h, "DELETE", "/"); w.Code != 405 {
					t.Errorf("%s: DELETE gets %d", p.name, w.Code)
				}
			}
		}
		codes(200, 503, 503)
		g.gate <- nil
		codes(200, 200, 503)
		go func() {
			for {
				select {
				case g.gate <- nil:
				case <-ctx.Done():
					return
				}
			}
		}()
		l := lead(t, e)
		codes(200, 200, 200)
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		codes(200, 200, 503)
		stop()
		codes(200, 503, 503)
	})
}

func TestForward(t *testing.T) {
	bubbles(t, map[string]func(*testing.T){
		"handover": forwardHandover, "loop": forwardLoop, "to a former leader": forwardToFormer, "unknown leader": forwardUnknown,
	})
}

func forwardHandover(t *testing.T) {
	s, n := memory.NewStore(), network{}
	a, b := join(t, s.Handle(), "a", "a:1"), join(t, s.Handle(), "b", "http://b:2/base")
	fa, fb := observe(t, a, n).Forward(named("a")), observe(t, b, n).Forward(named("b"))
	n["a:1"], n["b:2"] = fa, fb
	synctest.Wait()
	if w := do(fa, "GET", "/x"); w.Code != 503 || w.Header().Get("Retry-After") != "1" || w.Body.String() != "election \"office\": there is no leader\n" {
		t.Errorf("vacant: %d %s", w.Code, w.Body)
	}
	l := lead(t, a)
	synctest.Wait()
	if got := do(fa, "PUT", "/x").Body.String(); got != "a PUT example.com/x for= by= body=" {
		t.Errorf("the leader: %s", got)
	}
	if got := do(fb, "PUT", "/x?y=1", "X-Forwarded-For", "10.9.8.7", "X-Forwarded-Host", "outer").Body.String(); got != "a PUT example.com/x?y=1 for=10.9.8.7, 192.0.2.1 by=office body=" {
		t.Errorf("the follower: %s", got)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	lead(t, b)
	synctest.Wait()
	if got := do(fa, "GET", "/x").Body.String(); got != "b GET example.com/base/x for=192.0.2.1 by=office body=" {
		t.Errorf("after a handover: %s", got)
	}
}

// Two followers take each other for the leader: each request ends after one hop.
func forwardLoop(t *testing.T) {
	n, hops := network{}, 0
	forward := func(id, leader string) http.Handler {
		b := memory.New()
		lead(t, join(t, b, "former", leader)) // its process is gone
		h := observe(t, join(t, b, id, ""), n).Forward(named(id))
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if hops++; hops > 10 {
				t.Fatal("the request goes in a circle")
			}
			h.ServeHTTP(w, r)
		})
	}
	n["a:1"], n["b:1"] = forward("a", "b:1"), forward("b", "a:1")
	synctest.Wait()
	if w := do(n["a:1"], "GET", "/x"); w.Code != 503 || hops != 2 || w.Header().Get("Retry-After") != "1" {
		t.Errorf("%d %s after %d hops, want 503 after 2", w.Code, w.Body, hops)
	}
}

// A leader whose lease has ended does not serve, whatever the record says.
func forwardToFormer(t *testing.T) {
	s, n := memory.NewStore(), network{}
	a, b := join(t, &cut{Backend: s.Handle()}, "a", "a:1"), join(t, s.Handle(), "b", "b:1")
	n["a:1"] = observe(t, a, n).Forward(named("a"))
	l := lead(t, a)
	fb := observe(t, b, n).Forward(named("b"))
	synctest.Wait()
	<-l.Context().Done() // it could not renew
	if w := do(fb, "GET", "/x"); w.Code != 503 || !strings.Contains(w.Body.String(), "no longer") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	time.Sleep(5 * time.Second) // until its record lapses
	synctest.Wait()
	if w := do(fb, "GET", "/x"); w.Code != 503 || !strings.Contains(w.Body.String(), "no leader") {
		t.Errorf("lapsed: %d %s", w.Code, w.Body)
	}
}

// A cut store takes one write.
type cut struct {
	*memory.Backend
	writes int
}

func (c *cut) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	if c.writes++; c.writes > 1 {
		return backends.Record{}, backends.ErrUnavailable
	}
	return c.Backend.Swap(ctx, name, prev, next)
}

func (c *cut) SwapMany(ctx context.Context, renewals []backends.Change) []backends.Outcome {
	return backends.Outcomes(len(renewals), backends.ErrUnavailable)
}

func TestForwardFails(t *testing.T) {
	for _, c := range []struct {
		value string
		code  int
		text  string
	}{
		{"gone:1", 503, "the leader cannot be reached"},
		{"broken:1", 502, "the leader did not answer"},
		{"", 502, "the leader has published no address"},
		{"node-1", 502, "the leader has published no address"},
		{"postgres://user:secret@node-1/db", 502, "the leader has published no address"},
	} {
		t.Run(c.value, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memory.NewStore()
				lead(t, join(t, s.Handle(), "a", c.value))
				o := observe(t, join(t, s.Handle(), "b", ""), network{})
				var log strings.Builder
				o.Logger = slog.New(slog.NewTextHandler(&log, nil))
				synctest.Wait()
				w := do(o.Forward(named("b")), "GET", "/x")
				if want := "election \"office\": " + c.text + "\n"; w.Code != c.code || w.Body.String() != want {
					t.Errorf("%d %s, want %d %s", w.Code, w.Body, c.code, want)
				}
				if !strings.Contains(log.String(), c.text) || strings.Contains(log.String(), "secret") {
					t.Errorf("logged: %s", log.String())
				}
			})
		})
	}
}

// Without knowledge of the leader nothing is forwarded.
func forwardUnknown(t *testing.T) {
	s := memory.NewStore()
	g := &gated{Backend: s.Handle(), gate: make(chan error)}
	dead(t, g.Backend)
	ctx, stop := context.WithCancel(t.Context())
	n := network{"ghost:1": named("ghost")}
	o := electorhttp.Observe(ctx, join(t, g, "b", ""))
	o.Transport, o.Logger, o.Wait = n, quiet, -1
	h := o.Forward(named("b"))
	code := func(want int, when string) {
		t.Helper()
		synctest.Wait()
		if w := do(h, "GET", "/x"); w.Code != want {
			t.Errorf("%s: %d %s, want %d", when, w.Code, w.Body, want)
		}
	}
	code(503, "at the start")
	g.gate <- backends.ErrDenied
	code(503, "denied")
	g.gate <- nil // tried again
	code(200, "known")
	older := backends.Record{Holder: "older", Value: "ghost:1", Token: 1, TTL: 15 * time.Second, RenewEvery: 5 * time.Second, Attempt: backends.Attempt{Nonce: "older", Sequence: 1}}
	s.Put("office", backends.Encode("office", older))
	g.gate <- nil
	code(503, "gone back")
	g.gate <- nil
	code(200, "known again")
	stop()
	code(503, "stopped")
}

func TestAddress(t *testing.T) {
	for value, want := range map[string]string{
		"node-1:8080":            "http://node-1:8080",
		"[::1]:8080":             "http://[::1]:8080",
		"http://node-1":          "http://node-1",
		"https://node-1:8443/a/": "https://node-1:8443/a/",
		"HTTP://node-1:80":       "http://node-1:80",
		"node-1":                 "", "::1": "", ":8080": "", "node-1:": "", "node-1:http": "", "node-1:99999": "", "node-1:8080/a": "",
		"http://": "", "http://:80": "", "http://node-1:": "", "ftp://node-1:21": "", "//node-1:80": "", "file:///etc/passwd": "",
		"http://user@node-1": "", "http://node-1?q": "", "http://node-1#f": "", "node-1:80?": "", "node 1:80": "", "http://node-1:80\r\nX: y": "", "javascript://node-1:80": "",
	} {
		u, err := electorhttp.Address(value)
		switch {
		case want == "" && err == nil:
			t.Errorf("%q is accepted, as %v", value, u)
		case want != "" && (err != nil || u.String() != want):
			t.Errorf("%q gives %v, %v, want %s", value, u, err, want)
		}
	}
}
