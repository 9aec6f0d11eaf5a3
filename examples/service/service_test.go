package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/electortest"
	"github.com/elector-go/elector/fence/fencehttp"
	"github.com/elector-go/elector/integrations/electorprom"
)

// A network has a handler for each host.
type network map[string]http.Handler

func (n network) RoundTrip(r *http.Request) (*http.Response, error) {
	h := n[r.URL.Host]
	if h == nil {
		return nil, errors.New("no such host")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

// A book counts entries, and refuses those of old leaders.
type book struct {
	fencehttp.Handler
	entries atomic.Int64
}

func newBook() *book {
	var b book
	b.Election = "bookkeeper"
	b.Next = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { b.entries.Add(1) })
	return &b
}

// wait lets a minute pass and returns how many entries were written in it.
func (b *book) wait() int64 {
	before := b.entries.Load()
	time.Sleep(time.Minute)
	return b.entries.Load() - before
}

func get(h http.Handler, path string) (code int, body string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w.Code, w.Body.String()
}

// metric returns the value of a series.
func metric(h http.Handler, series string) string {
	_, all := get(h, "/metrics")
	_, value, _ := strings.Cut(all, "\n"+series+" ")
	value, _, _ = strings.Cut(value, "\n")
	return value
}

// A service that wins, suffers an outage, loses to another process, wins again, and is
// told to stop.
func TestService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, n := newBook(), network{}
		n["book"] = b
		n["other:80"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("the other one")) })
		m, registry := electorprom.New(), prometheus.NewRegistry()
		registry.MustRegister(m)
		e := electortest.New(t, "bookkeeper", &elector.Options{ID: "me", Value: "me:80", Trace: m.Trace()})
		s := newService(t.Context(), e.Elector, "http://book/", n)
		h := s.handler(registry)
		n["me:80"] = h
		stop := e.Start(func(ctx context.Context) error { return e.Elector.Run(ctx, s.leader.Work(s.work)) })
		is := func(when, leading string, ready int, answer string) {
			t.Helper()
			synctest.Wait()
			if got := metric(h, `elector_leading{backend="memory",election="bookkeeper"}`); got != leading {
				t.Errorf("%s: elector_leading is %s", when, got)
			}
			if code, _ := get(h, "/ready"); code != ready {
				t.Errorf("%s: /ready answers %d", when, code)
			}
			if code, body := get(h, "/entries"); !strings.Contains(body, answer) {
				t.Errorf("%s: /entries answers %d %s", when, code, body)
			}
		}

		e.Win()
		if got := b.wait(); got < 59 {
			t.Errorf("the leader writes %d entries in a minute", got)
		}
		is("leader", "1", 200, "me has written")

		e.Outage()
		if err := e.Loss(); !errors.Is(err, elector.ErrUnavailable) {
			t.Errorf("after an outage: %v", err)
		}
		if got := b.wait(); got != 0 {
			t.Errorf("without the store it writes %d entries", got)
		}
		is("outage", "0", 200, "this process is to lead, and does not serve yet") // it has waited ten seconds
		e.Restore()
		e.Win()

		other := e.AnotherLeads("other", "other:80")
		time.Sleep(10 * time.Second) // until it has seen that
		is("follower", "0", 200, "the other one")
		if got := b.wait(); got != 0 {
			t.Errorf("as a follower it writes %d entries", got)
		}
		if err := other.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		e.Win()
		if got := b.wait(); got < 59 {
			t.Errorf("after a handover it writes %d entries in a minute", got)
		}

		if err := stop(); err != nil {
			t.Errorf("told to stop: %v", err)
		}
		is("stopped", "0", 200, "there is no leader")
		if got := metric(h, `elector_transitions_total{backend="memory",cause="lost",election="bookkeeper"}`); got != "2" {
			t.Errorf("the metrics show %q lost leases", got)
		}
	})
}

// The book refuses the entry of a leader that was paused before it wrote.
func TestLateEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		writing, paused := make(chan bool), make(chan bool)
		n := network{"book": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			writing <- true
			<-paused
			b.ServeHTTP(w, r)
		})}
		e := electortest.New(t, "bookkeeper", nil)
		s := newService(t.Context(), e.Elector, "http://book/", n)
		returned := make(chan error, 1)
		e.Start(func(ctx context.Context) error {
			return e.Elector.Run(ctx, func(ctx context.Context, lease *elector.Lease) error {
				err := s.work(ctx, lease)
				returned <- err
				return err
			})
		})

		<-writing
		e.Pause(time.Minute)
		other := e.AnotherLeads("other", "")
		others := service{book: "http://book/", transport: network{"book": b}}
		if err := others.write(other); err != nil {
			t.Fatal(err)
		}
		close(paused)
		if err := <-returned; !errors.Is(err, elector.ErrStale) || b.entries.Load() != 1 {
			t.Errorf("the worker returns %v, and the book has %d entries", err, b.entries.Load())
		}
	})
}

// Two processes on real sockets: requests that come while the leader stops are served by
// the next one.
func TestHandover(t *testing.T) {
	t.Setenv("ELECTOR_URL", "file://"+t.TempDir())
	book := httptest.NewServer(newBook())
	defer book.Close()
	start := func() (address string, stop func() error) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done, err := make(chan struct{}), error(nil)
		go func() {
			defer close(done)
			err = run(ctx, l, options{book: book.URL, linger: 100 * time.Millisecond})
		}()
		stop = func() error { cancel(); <-done; return err }
		t.Cleanup(func() {
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
		post(t, l.Addr().String()) // waits until a process leads
		return l.Addr().String(), stop
	}
	first, stop := start()
	second, _ := start()
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	for len(stopped) == 0 {
		post(t, second)
	}
	if _, err := http.Post("http://"+first+"/entries", "", nil); err == nil {
		t.Error("the first process serves after its end")
	}
}

func post(t *testing.T, address string) {
	t.Helper()
	answer, err := http.Post("http://"+address+"/entries", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", answer.Status, body)
	}
}
