package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector/backends"
)

// A sliceServer is an API server with EndpointSlices, as a transport.
type sliceServer struct {
	mutex    sync.Mutex
	all      map[string]endpointSlice
	revision int
	cut      bool // no request gets through
	delay    func(method string) time.Duration
	refuse   int
	requests int
}

func (s *sliceServer) RoundTrip(r *http.Request) (*http.Response, error) {
	var body endpointSlice
	if r.Body != nil {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			return nil, err
		}
	}
	s.mutex.Lock()
	s.requests++
	cut, delay := s.cut, s.delay
	s.mutex.Unlock()
	if cut {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if delay != nil {
		answered := make(chan *http.Response, 1)
		time.AfterFunc(delay(r.Method), func() { answered <- s.serve(r, body) }) // applied, even if the caller has gone
		select {
		case answer := <-answered:
			return answer, nil
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return s.serve(r, body), nil
}

func (s *sliceServer) serve(r *http.Request, body endpointSlice) *http.Response {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	name := strings.TrimPrefix(r.URL.Path, "/apis/discovery.k8s.io/v1/namespaces/team/endpointslices")
	if name = strings.TrimPrefix(name, "/"); r.Method == http.MethodPost {
		name = body.Metadata.Name
	}
	old, exists := s.all[name]
	answer := func(code int, v any) *http.Response {
		text, _ := json.Marshal(v)
		return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(text)), Request: r}
	}
	refuse := func(code int, reason string) *http.Response {
		return answer(code, map[string]any{"kind": "Status", "code": code, "reason": reason, "message": reason, "details": map[string]any{"kind": "endpointslices", "name": name}})
	}
	switch {
	case r.URL.Path == "/readyz":
		return answer(200, "ok")
	case s.refuse != 0:
		return refuse(s.refuse, "Forbidden")
	case r.Method == http.MethodPost && exists:
		return refuse(409, "AlreadyExists")
	case r.Method != http.MethodPost && !exists:
		return refuse(404, "NotFound")
	case r.Method == http.MethodPut && body.Metadata.ResourceVersion != old.Metadata.ResourceVersion:
		return refuse(409, "Conflict")
	case r.Method == http.MethodGet:
		return answer(200, old)
	}
	s.revision++
	body.Metadata.ResourceVersion, body.Metadata.UID = fmt.Sprint(s.revision), "uid"
	s.all[name] = body
	return answer(200, body)
}

// address returns the address and the token of the slice.
func (s *sliceServer) address() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	x, ok := s.all["web-leader"]
	if !ok {
		return "no slice"
	}
	text := x.Metadata.Annotations[TokenAnnotation]
	for _, e := range x.Endpoints {
		text += " " + strings.Join(e.Addresses, ",")
	}
	return text
}

func (s *sliceServer) set(change func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	change()
}

// A holder is a lease that is renewed by hand.
type holder struct {
	token uint64
	ttl   time.Duration
	mutex sync.Mutex
	until time.Time
}

func (h *holder) renew() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.until = time.Now().Add(h.ttl * 9 / 10)
}

func (h *holder) Remaining() time.Duration {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return max(0, time.Until(h.until))
}

func (h *holder) Acquisition() (backends.Acquisition, error) {
	return backends.Acquisition{Record: backends.Record{Token: h.token, TTL: h.ttl}, Remaining: h.Remaining()}, nil
}

// points runs work that leads at an address until stop is called, which returns when it
// has returned.
func (s *sliceServer) points(t *testing.T, h *holder, address string, log io.Writer) (stop func()) {
	t.Helper()
	b := made(New(t.Context(), &http.Client{Transport: s}, &Options{BaseURL: "http://api", Namespace: "team"}))
	h.renew()
	e := Endpoint{Service: "web", Address: netip.MustParseAddr(address), Port: 8080, Pod: "pod-" + address, Logger: slog.New(slog.NewTextHandler(log, nil))}
	work, err := PointService(b, e, func(ctx context.Context, _ *holder) error {
		<-ctx.Done()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- work(ctx, h) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		b.Close()
	}
}

// keeps renews a lease until the end of the test.
func (h *holder) keeps(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			h.renew()
			pause(ctx, h.ttl*3/10)
		}
	}()
	return cancel
}

func newSliceServer() *sliceServer { return &sliceServer{all: map[string]endpointSlice{}} }

func TestPointService(t *testing.T) {
	is := func(t *testing.T, s *sliceServer, when, want string) {
		t.Helper()
		synctest.Wait()
		if got := s.address(); got != want {
			t.Errorf("%s the slice is %q, not %q", when, got, want)
		}
	}
	for name, story := range map[string]func(t *testing.T, s *sliceServer){
		"a term, and the next": func(t *testing.T, s *sliceServer) {
			h := &holder{token: 7, ttl: 15 * time.Second}
			defer h.keeps(t)()
			stop := s.points(t, h, "10.0.0.1", io.Discard)
			is(t, s, "during a term", "7 10.0.0.1")
			if x := s.all["web-leader"]; x.Metadata.Labels[serviceLabel] != "web" || x.AddressType != "IPv4" || x.Endpoints[0].TargetRef.Name != "pod-10.0.0.1" || x.Ports[0].Port != 8080 {
				t.Errorf("the slice is %+v", x)
			}
			time.Sleep(time.Hour)
			if n := s.requests; n > 2 {
				t.Errorf("an hour costs %d requests", n)
			}
			stop()
			is(t, s, "after it", "7")
			next := &holder{token: 8, ttl: 15 * time.Second}
			stop = s.points(t, next, "10.0.0.2", io.Discard)
			is(t, s, "during the next", "8 10.0.0.2")
			stop()
		},
		"the lease is about to end": func(t *testing.T, s *sliceServer) {
			h := &holder{token: 7, ttl: 20 * time.Second}
			stop := s.points(t, h, "10.0.0.1", io.Discard)
			is(t, s, "at first", "7 10.0.0.1")
			time.Sleep(12 * time.Second)
			is(t, s, "with 6 s left", "7 10.0.0.1")
			time.Sleep(2 * time.Second)
			is(t, s, "with 4 s left", "7")
			h.renew()
			time.Sleep(2 * time.Second)
			is(t, s, "when it was renewed", "7 10.0.0.1")
			stop()
			is(t, s, "at the end", "7")
		},
		"cut off": func(t *testing.T, s *sliceServer) {
			h := &holder{token: 7, ttl: 15 * time.Second}
			stop := s.points(t, h, "10.0.0.1", io.Discard)
			is(t, s, "at first", "7 10.0.0.1")
			s.set(func() { s.cut = true })
			begun := time.Now()
			stop()
			if took := time.Since(begun); took > pointTimeout {
				t.Errorf("a worker that is cut off returns after %v", took)
			}
			s.set(func() { s.cut = false })
			is(t, s, "of a leader that is cut off", "7 10.0.0.1")
			next := &holder{token: 8, ttl: 15 * time.Second}
			defer s.points(t, next, "10.0.0.2", io.Discard)()
			is(t, s, "of the next", "8 10.0.0.2")
		},
		"a former leader is late": func(t *testing.T, s *sliceServer) {
			var log bytes.Buffer
			h := &holder{token: 8, ttl: 15 * time.Second}
			defer h.keeps(t)()
			defer s.points(t, h, "10.0.0.2", io.Discard)()
			is(t, s, "of the leader", "8 10.0.0.2")
			old := &holder{token: 7, ttl: 15 * time.Second}
			s.points(t, old, "10.0.0.1", &log)()
			is(t, s, "after a former leader", "8 10.0.0.2")
		},
		"a late write": func(t *testing.T, s *sliceServer) {
			// The write of the address is applied after the worker was told to stop.
			s.delay = func(method string) time.Duration {
				if method == http.MethodPut {
					return 3 * time.Second
				}
				return time.Millisecond
			}
			first := &holder{token: 6, ttl: time.Minute}
			stop := s.points(t, first, "10.0.0.9", io.Discard) // makes the slice
			time.Sleep(10 * time.Second)
			stop()
			h := &holder{token: 7, ttl: time.Minute}
			stop = s.points(t, h, "10.0.0.1", io.Discard)
			time.Sleep(time.Second)
			stop()
			time.Sleep(time.Minute)
			if got := s.address(); strings.Contains(got, "10.0.0.1") {
				t.Errorf("at the end the slice is %q", got)
			}
		},
		"of another program": func(t *testing.T, s *sliceServer) {
			s.all["web-leader"] = endpointSlice{Metadata: metadata{Name: "web-leader", ResourceVersion: "1"}, Endpoints: []endpoint{{Addresses: []string{"10.9.9.9"}}}}
			var log bytes.Buffer
			h := &holder{token: 7, ttl: 15 * time.Second}
			stop := s.points(t, h, "10.0.0.1", &log)
			time.Sleep(time.Minute)
			stop()
			is(t, s, "of another program", " 10.9.9.9")
			if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), "another program made it") {
				t.Errorf("the log is %s", log.String())
			}
		},
		"no right": func(t *testing.T, s *sliceServer) {
			s.refuse = 403
			var log bytes.Buffer
			h := &holder{token: 7, ttl: 15 * time.Second}
			stop := s.points(t, h, "10.0.0.1", &log)
			time.Sleep(time.Minute)
			stop()
			if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), "get, create and update for endpointslices") {
				t.Errorf("the log is %s", log.String())
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { story(t, newSliceServer()) })
		})
	}
	for name, e := range map[string]Endpoint{
		"no Service": {Address: netip.MustParseAddr("10.0.0.1"), Port: 1},
		"no address": {Service: "web", Port: 1},
		"any":        {Service: "web", Address: netip.IPv4Unspecified(), Port: 1},
		"no port":    {Service: "web", Address: netip.MustParseAddr("10.0.0.1")},
	} {
		if _, err := PointService(&Backend{}, e, func(context.Context, *holder) error { return nil }); !errors.Is(err, backends.ErrMisconfigured) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}
