package electorhttp_test

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector/electorhttp"
)

// Clients announce bodies and withhold them while nobody leads: they are told so after Wait,
// and take no place from the others.
func observerWithheld(t *testing.T) {
	m := newTeam(t)
	a := m.join("a")
	p := pipesAt("a:1")
	server := &http.Server{Handler: a.http}
	go server.Serve(p)
	defer server.Close()
	start := time.Now()
	var all sync.WaitGroup
	for range 1200 {
		near, far := net.Pipe()
		p.calls <- far
		all.Go(func() {
			defer near.Close()
			io.WriteString(near, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf")
			answer, err := http.ReadResponse(bufio.NewReader(near), nil)
			if err != nil || answer.StatusCode != http.StatusRequestTimeout || time.Since(start) != 23*time.Second {
				t.Errorf("a withheld body, after %v: %v %v", time.Since(start), answer, err)
			}
		})
	}
	synctest.Wait()
	time.Sleep(time.Second)
	honest := make(chan *httptest.ResponseRecorder)
	go func() { honest <- post(a.http, "/") }()
	synctest.Wait()
	a.o.Work(nil)
	b, _ := m.start("b", nil)
	m.led(b)
	if w := <-honest; w.Code != 200 || time.Since(start) > 2*time.Second {
		t.Errorf("an honest request, after %v: %d %s", time.Since(start), w.Code, w.Body)
	}
	all.Wait()
}

// One reason has one line in the log, and one in each minute while it lasts.
func observerOneLine(t *testing.T) {
	m := newTeam(t)
	a, _ := m.start("a", nil)
	m.led(a)
	b := m.join("b")
	var log strings.Builder
	b.o = electorhttp.Observe(t.Context(), b.e)
	b.o.Wait, b.o.Transport, b.o.Logger = -1, m, slog.New(slog.NewTextHandler(&log, nil))
	h := b.o.Forward(http.NotFoundHandler())
	synctest.Wait()
	m.set(func() { a.gone = true })
	for range 61 {
		if w := post(h, "/"); w.Code != 503 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		time.Sleep(time.Second)
	}
	if n := strings.Count(log.String(), "the leader cannot be reached"); n != 2 || !strings.Contains(log.String(), " requests=60 ") {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
}

// A deadline that passes just as the last of a body comes is set before the handler returns,
// and the connection is not used again: later requests on it would be past the deadline.
func observerDeadlineAtTheEnd(t *testing.T) {
	m := newTeam(t)
	a := m.join("a")
	w := &slowDeadline{ResponseRecorder: httptest.NewRecorder(), passed: make(chan struct{})}
	r := httptest.NewRequest("POST", "/", lateBody{w.passed})
	r.ContentLength = 10
	a.http.ServeHTTP(w, r)
	if !w.set.Load() {
		t.Error("the handler returns while it sets a deadline")
	}
	if w.Code != http.StatusRequestTimeout || w.Header().Get("Connection") != "close" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

// slowDeadline takes a second to set a deadline.
type slowDeadline struct {
	*httptest.ResponseRecorder
	passed chan struct{}
	set    atomic.Bool
}

func (w *slowDeadline) SetReadDeadline(time.Time) error {
	close(w.passed)
	time.Sleep(time.Second)
	w.set.Store(true)
	return nil
}

// lateBody ends when the deadline passes.
type lateBody struct{ passed chan struct{} }

func (b lateBody) Read([]byte) (int, error) { <-b.passed; return 0, io.EOF }
