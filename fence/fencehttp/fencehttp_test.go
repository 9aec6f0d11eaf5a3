package fencehttp_test

import (
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
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/fence/fencehttp"
	"github.com/elector-go/elector/fence/internal/storm"
	"github.com/elector-go/elector/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// ask serves a request with tokens and election, and returns the answer.
func ask(h http.Handler, method, election string, tokens ...string) *http.Response {
	r := httptest.NewRequest(method, "/", nil)
	for _, token := range tokens {
		r.Header.Add(elector.TokenHeader, token)
	}
	if election != "" {
		r.Header.Set(fencehttp.ElectionHeader, election)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// Each reason to refuse a request has its status, and Next does not see the request.
func TestStatus(t *testing.T) {
	served := 0
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ })
	h := &fencehttp.Handler{Next: next, Election: "cashier", Fence: &elector.Fence{MaxAhead: time.Hour}}
	for i, c := range []struct {
		what, method, election string
		tokens                 []string
		want                   int
		highest                elector.Token // in the answer
	}{
		{"a first token", "POST", "cashier", []string{"5"}, 200, 0},
		{"the same token", "PUT", "cashier", []string{"5"}, 200, 0},
		{"a stale token", "POST", "cashier", []string{"4"}, 412, 5},
		{"a stale token of a safe method", "GET", "cashier", []string{"4"}, 412, 5},
		{"a higher token of a safe method", "GET", "cashier", []string{"6"}, 200, 0},
		{"a token that a read has made stale", "POST", "cashier", []string{"5"}, 412, 6},
		{"no token", "POST", "cashier", nil, 428, 0},
		{"no token and an unknown method", "ADJUST", "", nil, 428, 0},
		{"no token and a safe method", "GET", "", nil, 200, 0},
		{"no token and HEAD", "HEAD", "", nil, 200, 0},
		{"an empty token", "POST", "cashier", []string{""}, 400, 0},
		{"an empty token of a safe method", "GET", "cashier", []string{""}, 400, 0},
		{"a malformed token", "POST", "cashier", []string{"0x6"}, 400, 0},
		{"two tokens", "POST", "cashier", []string{"6", "7"}, 400, 0},
		{"another election", "POST", "driver", []string{"7"}, 400, 0},
		{"no election", "POST", "", []string{"7"}, 400, 0},
		{"a token far ahead of the clock", "POST", "cashier", []string{elector.MaxToken.String()}, 400, 0},
		{"the highest token that was served", "POST", "cashier", []string{"6"}, 200, 0},
	} {
		before := served
		answer := ask(h, c.method, c.election, c.tokens...)
		if answer.StatusCode != c.want || (served > before) != (c.want == 200) {
			t.Errorf("%d, %s: %s, served %v; want %d", i, c.what, answer.Status, served > before, c.want)
		}
		if highest, refused := fencehttp.Refused(answer); refused != (c.want == 412) || highest != c.highest {
			t.Errorf("%d, %s: Refused is %d, %v", i, c.what, highest, refused)
		}
		if text, _ := io.ReadAll(answer.Body); c.want != 200 && len(text) == 0 {
			t.Errorf("%d, %s: no text", i, c.what)
		}
	}
	other := &http.Response{StatusCode: http.StatusPreconditionFailed, Header: http.Header{"Etag": {"x"}}}
	if _, refused := fencehttp.Refused(other); refused {
		t.Error("a 412 without a token counts as a refusal")
	}
}

type brokenKeeper struct{ error }

func (k brokenKeeper) Raise(context.Context, string, elector.Token) (elector.Token, error) {
	return 0, k.error
}

func TestKeeperFails(t *testing.T) {
	h := &fencehttp.Handler{
		Next:  http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("served") }),
		Fence: &elector.Fence{Keeper: brokenKeeper{errors.New("the disk is full")}},
	}
	answer := ask(h, "POST", "", "5")
	text, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != 503 || answer.Header.Get("Retry-After") == "" || !strings.Contains(string(text), "the disk is full") {
		t.Errorf("%s, %v, %s", answer.Status, answer.Header, text)
	}
}

// A Handler whose requests are under way.
type busy struct {
	fencehttp.Handler
	begun  chan context.Context // of each request that is served
	finish chan bool            // ends one
}

func newBusy() *busy {
	b := &busy{begun: make(chan context.Context, 9), finish: make(chan bool)}
	b.Next = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b.begun <- r.Context()
		if !<-b.finish {
			panic("a bug")
		}
	})
	return b
}

// ask serves a request in the background.
func (b *busy) ask(token string) <-chan int {
	status := make(chan int, 1)
	go func() {
		defer func() {
			if recover() != nil {
				status <- 500
			}
		}()
		status <- ask(b, "POST", "", token).StatusCode
	}()
	synctest.Wait()
	return status
}

// Requests with one token are served together. One with a higher token is served
// when they have been, or is told to come again.
func TestOlder(t *testing.T) {
	for name, test := range map[string]func(*testing.T, *busy){
		"served first": func(t *testing.T, b *busy) {
			first, second := b.ask("1"), b.ask("1")
			if len(b.begun) != 2 {
				t.Fatalf("of two requests with one token %d are served", len(b.begun))
			}
			newer := b.ask("2")
			for range 2 {
				if cause := context.Cause(<-b.begun); !errors.Is(cause, elector.ErrStale) {
					t.Errorf("the context of an older request has the cause %v", cause)
				}
			}
			if status := <-b.ask("1"); status != 412 {
				t.Errorf("an older token while a newer one waits: %d", status)
			}
			b.finish <- true
			<-first
			synctest.Wait()
			if len(b.begun) != 0 {
				t.Error("a newer request is served beside an older one")
			}
			b.finish <- true
			<-second
			if inside := <-b.begun; inside.Err() != nil {
				t.Errorf("the newer request has an ended context: %v", context.Cause(inside))
			}
			b.finish <- true
			if status := <-newer; status != 200 {
				t.Errorf("the newer request: %d", status)
			}
		},
		"linger": func(t *testing.T, b *busy) {
			b.Wait = 3 * time.Second
			older, begun := b.ask("1"), time.Now()
			answer := ask(b, "POST", "", "2")
			if answer.StatusCode != 503 || answer.Header.Get("Retry-After") == "" || time.Since(begun) != b.Wait {
				t.Errorf("after %v: %s, %v", time.Since(begun), answer.Status, answer.Header)
			}
			b.finish <- true
			<-older
			if status := <-b.ask("1"); status != 412 {
				t.Errorf("an older token after a newer one was told to come again: %d", status)
			}
		},
		"panic": func(t *testing.T, b *busy) {
			older := b.ask("1")
			newer := b.ask("2")
			b.finish <- false
			<-older
			b.finish <- true
			if status := <-newer; status != 200 {
				t.Errorf("the request after a panic: %d", status)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, newBusy()) })
		})
	}
}

// A leader that was stopped while it sent a request keeps no newer one out: reads of
// the body end. The connection of an older request goes on serving.
func TestBody(t *testing.T) {
	reading, read := make(chan bool), make(chan error, 1)
	h := &fencehttp.Handler{Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/half" {
			if _, err := io.ReadFull(r.Body, make([]byte, 4)); err != nil {
				t.Error(err)
			}
			reading <- true
			_, err := r.Body.Read(make([]byte, 4))
			read <- err
		}
		if r.URL.Path == "/whole" {
			reading <- true
			<-r.Context().Done()
		}
	})}
	server := httptest.NewServer(h)
	defer server.Close()
	post := func(path, token string, body io.Reader) int {
		r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+path, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(elector.TokenHeader, token)
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Error(err)
			return 0
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	first := make(chan int, 1)
	t.Run("stopped in the middle", func(t *testing.T) {
		body, stopped := io.Pipe()
		go func() { first <- post("/half", "1", body) }()
		if _, err := io.WriteString(stopped, "half"); err != nil {
			t.Fatal(err)
		}
		<-reading
		if status := post("/", "2", nil); status != 200 {
			t.Errorf("the next leader's request: %d", status)
		}
		stopped.Close()
		if err := <-read; err == nil {
			t.Error("the older request read more than was sent")
		}
		<-first
	})
	t.Run("the connection goes on", func(t *testing.T) {
		go func() { first <- post("/whole", "2", strings.NewReader("whole")) }()
		<-reading
		for range 3 {
			if status := post("/", "3", nil); status != 200 {
				t.Errorf("the next leader's request: %d", status)
			}
		}
		if status := <-first; status != 200 {
			t.Errorf("the older request was answered with %d", status)
		}
		for range 3 {
			if status := post("/", "2", nil); status != 412 {
				t.Errorf("an older request on a connection that served one: %d", status)
			}
		}
	})
}

// A request is served, or answered as one that was not.
func TestNotServed(t *testing.T) {
	t.Run("on the connection of an older request", func(t *testing.T) { synctest.Test(t, testConnectionOfOlder) })
	t.Run("its context has ended", testContextEnded)
}

func testConnectionOfOlder(t *testing.T) {
	reading, served := make(chan bool), make(chan string, 9)
	h := &fencehttp.Handler{Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/older" {
			reading <- true
			<-r.Context().Done()
		} else if err := r.Context().Err(); err != nil {
			t.Errorf("served with an ended context: %v", context.Cause(r.Context()))
		}
		served <- r.Header.Get(elector.TokenHeader)
	})}
	listener := &pipes{calls: make(chan net.Conn)}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		if r.URL.Path == "/older" {
			synctest.Wait() // what the server reads ahead has ended now, if a deadline ended it
		}
	})}
	go server.Serve(listener)
	defer server.Close()
	post := func(c *http.Client, path, token string) string {
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://resource"+path, strings.NewReader("hello"))
		if err != nil {
			return err.Error()
		}
		r.Header.Set(elector.TokenHeader, token)
		answer, err := c.Do(r)
		if err != nil {
			return err.Error()
		}
		defer answer.Body.Close()
		return answer.Status
	}
	one, other := http.Client{Transport: &http.Transport{DialContext: listener.dial}}, http.Client{Transport: &http.Transport{DialContext: listener.dial}}
	defer one.CloseIdleConnections()
	defer other.CloseIdleConnections()
	older := make(chan string)
	go func() { older <- post(&one, "/older", "1") }()
	<-reading
	if status := post(&other, "/", "2"); status != "200 OK" || <-served != "1" || <-served != "2" {
		t.Errorf("the next leader's request: %s", status)
	}
	if status := <-older; status != "200 OK" {
		t.Errorf("the older request: %s", status)
	}
	for range 2 {
		if status := post(&one, "/", "3"); status != "200 OK" || len(served) != 1 {
			t.Fatalf("a request on the connection of an older one was answered %s, and served %d times", status, len(served))
		}
		<-served
	}
}

// pipes is a listener whose connections are in memory, as synctest needs them.
type pipes struct {
	calls chan net.Conn
	once  sync.Once
}

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	p.calls <- far
	return near, nil
}

func (p *pipes) Accept() (net.Conn, error) {
	if c, open := <-p.calls; open {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.calls) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }

func testContextEnded(t *testing.T) {
	h := &fencehttp.Handler{Next: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("served") })}
	r := httptest.NewRequest("POST", "/", nil)
	r.Header.Set(elector.TokenHeader, "1")
	ctx, end := context.WithCancel(r.Context()) // as that of a server that shuts down
	end()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(ctx))
	if answer := w.Result(); answer.StatusCode != 503 || answer.Header.Get("Connection") != "close" {
		t.Errorf("it was answered %s, %v", answer.Status, answer.Header)
	}
}

// Next gets the server's own ResponseWriter, so Flusher, Hijacker and the like are
// there.
func TestResponseWriter(t *testing.T) {
	var got http.ResponseWriter
	h := &fencehttp.Handler{Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { got = w })}
	r := httptest.NewRequest("POST", "/", nil)
	r.Header.Set(elector.TokenHeader, "1")
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); got != w {
		t.Errorf("Next got a %T", got)
	}
}

// Handlers that share a Fence serve one resource, unless Resource says otherwise.
func TestResource(t *testing.T) {
	var fence elector.Fence
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	one := &fencehttp.Handler{Next: next, Fence: &fence}
	two := &fencehttp.Handler{Next: next, Fence: &fence}
	other := &fencehttp.Handler{Next: next, Fence: &fence, Resource: func(r *http.Request) string { return r.Method }}
	for i, c := range []struct {
		handler *fencehttp.Handler
		token   string
		want    int
	}{{one, "2", 200}, {two, "1", 412}, {other, "1", 200}} {
		if got := ask(c.handler, "POST", "", c.token).StatusCode; got != c.want {
			t.Errorf("%d: %d, want %d", i, got, c.want)
		}
	}
}

// echo answers with the token and election that came.
func echo(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "%s %s", r.Header.Get(elector.TokenHeader), r.Header.Get(fencehttp.ElectionHeader))
}

type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error { b.closed = true; return nil }

func TestTransport(t *testing.T) {
	foreign := httptest.NewServer(http.HandlerFunc(echo))
	defer foreign.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("/", echo)
	mux.Handle("/here", http.RedirectHandler("/", http.StatusTemporaryRedirect))
	mux.Handle("/there", http.RedirectHandler(foreign.URL, http.StatusTemporaryRedirect))
	mux.Handle("/there-in-two", http.RedirectHandler("/there", http.StatusTemporaryRedirect))
	server := httptest.NewServer(mux)
	defer server.Close()
	l := storm.Lead(t, memory.NewStore())
	client := &http.Client{Transport: &fencehttp.Transport{Lease: l, Base: server.Client().Transport}}
	carried := fmt.Sprintf("%d storm", l.Token())
	for path, want := range map[string]string{"": carried, "here": carried, "there": " ", "there-in-two": " "} {
		t.Run("redirects/"+path, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/"+path, strings.NewReader("x"))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if string(text) != want {
				t.Errorf("it came with %q, want %q", text, want)
			}
			if len(r.Header) > 0 {
				t.Errorf("the caller's request was changed: %v", r.Header)
			}
		})
	}

	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	client.Transport.(*fencehttp.Transport).Base = roundTripper(func(*http.Request) (*http.Response, error) {
		t.Error("a request was sent after the end of the lease")
		return nil, errors.ErrUnsupported
	})
	b := &body{Reader: strings.NewReader("x")}
	if _, err := client.Post(server.URL, "text/plain", b); !errors.Is(err, elector.ErrResigned) || !b.closed {
		t.Errorf("after the end of the lease: %v; body closed %v", err, b.closed)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestStorm(t *testing.T) {
	var r storm.Resource
	server := httptest.NewServer(&fencehttp.Handler{Wait: time.Hour, Next: http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		token, err := elector.ParseToken(request.Header.Get(elector.TokenHeader))
		if err != nil {
			t.Error(err)
		}
		r.Write(token)
	})})
	defer server.Close()
	paused := roundTripper(func(request *http.Request) (*http.Response, error) {
		storm.Pause()
		return server.Client().Transport.RoundTrip(request)
	})
	storm.Run(t, &r, func(l *elector.Lease) error {
		client := http.Client{Transport: &fencehttp.Transport{Lease: l, Base: paused}}
		answer, err := client.Post(server.URL, "text/plain", nil)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if _, refused := fencehttp.Refused(answer); refused {
			return elector.ErrStale
		}
		if answer.StatusCode != http.StatusOK {
			return errors.New(answer.Status)
		}
		return nil
	})
}
