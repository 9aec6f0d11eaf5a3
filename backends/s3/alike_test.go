package s3

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/elector-go/elector/backends"
)

// twoSteps answers as a server does that compares under a lock, and writes later: a
// number of rivals have compared before the first of them writes.
func twoSteps(s *service, rivals int) http.HandlerFunc {
	var mutex sync.Mutex
	compared, all := 0, make(chan struct{})
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut || r.Header.Get("If-Match") != s.get("elector/.probe").tag() {
			what := s.write
			if r.Method != http.MethodPut {
				what = s.read
			}
			what(w, r)
			return
		}
		mutex.Lock()
		if compared++; compared == rivals {
			close(all)
		}
		mutex.Unlock()
		select {
		case <-all:
		case <-r.Context().Done():
		}
		content, _ := io.ReadAll(r.Body)
		o := object{content: content}
		s.set("elector/.probe", o)
		w.Header().Set("ETag", o.tag())
	}
}

// The promises of a server that is not Amazon's are tried when the handle opens.
func TestRace(t *testing.T) {
	for name, c := range map[string]struct {
		probe func(s *service) http.HandlerFunc
		want  error
		says  string
	}{
		"compares and writes in two steps": {func(s *service) http.HandlerFunc { return twoSteps(s, rivals) }, backends.ErrMisconfigured, "in two steps"},
		"reads from a replica that lags": {func(s *service) http.HandlerFunc {
			old := object{content: []byte(probed)}
			return func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPut {
					s.write(w, r)
					return
				}
				w.Header().Set("ETag", old.tag())
				w.Write(old.content)
			}
		}, backends.ErrMisconfigured, "after a write was acknowledged"},
		"takes one write a second": {func(s *service) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method != http.MethodPut:
					s.read(w, r)
				case r.Header.Get("If-Match") == s.get("elector/.probe").tag():
					refuse(w, 429, "TooManyRequests", "Reduce your concurrent request rate for the same object.")
				default:
					s.write(w, r)
				}
			}
		}, nil, ""},
		"is busy with what other processes probe": {func(s *service) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPut && r.Header.Get("If-Match") == s.get("elector/.probe").tag() {
					io.Copy(io.Discard, r.Body)
					<-r.Context().Done()
					return
				}
				_, serve := s.usual(r)
				serve(w, r)
			}
		}, nil, ""},
		"throttles the reads": {func(s *service) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPut {
					s.write(w, r)
				} else {
					refuse(w, 503, "SlowDown", "Please reduce your request rate.")
				}
			}
		}, nil, ""},
		"throttles the first writes": {func(s *service) http.HandlerFunc {
			var writes atomic.Int32
			return func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method != http.MethodPut:
					s.read(w, r)
				case writes.Add(1)%2 == 1:
					refuse(w, 429, "TooManyRequests", "Reduce your concurrent request rate for the same object.")
				default:
					s.write(w, r)
				}
			}
		}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			s.Instead(".probe", c.probe(s))
			b, err := s.open(t.Context())
			if err == nil {
				b.Close()
			}
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %v with %q", err, c.want, c.says)
			}
		})
	}
}

// Many processes that open at the same time do not refuse a server that keeps its
// promises.
func TestRaceOfMany(t *testing.T) {
	s := newService(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // longer than by default
	defer cancel()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			b, err := s.open(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			b.Close()
		})
	}
	all.Wait()
}

// Amazon's own service is not asked for more than before.
func TestAmazon(t *testing.T) {
	for endpoint, want := range map[string]bool{
		"https://s3.eu-central-1.amazonaws.com": true, "https://bucket.vpce-1a2b.s3.us-east-1.vpce.amazonaws.com": true,
		"https://s3.cn-north-1.amazonaws.com.cn": true, "https://s3.dualstack.eu-west-1.api.aws": true,
		"http://127.0.0.1:9000": false, "https://account.r2.cloudflarestorage.com": false, "https://amazonaws.com.example.org": false, "https://notamazonaws.com": false, ":": false,
	} {
		if amazon(&endpoint) != want {
			t.Errorf("%s is Amazon's: %v", endpoint, !want)
		}
	}
	if !amazon(nil) {
		t.Error("without an endpoint it is not Amazon's")
	}
	s := newService(t)
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
	}}
	t.Cleanup(transport.CloseIdleConnections)
	options := s.client(t).Options()
	options.BaseEndpoint, options.HTTPClient = aws.String("http://s3.us-east-1.amazonaws.com"), &http.Client{Transport: transport}
	b, err := New(t.Context(), s3.New(options), &Options{Bucket: "bucket"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if got, want := s.Requests(), map[string]int{".absent": 1, ".probe": 3}; !maps.Equal(got, want) {
		t.Errorf("opening took %v, want %v", got, want)
	}
}
