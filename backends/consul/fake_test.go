package consul

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// A fake plays as much of Consul as the adapter uses. It is a server, and a
// transport that needs no network.
type fake struct {
	mutex    sync.Mutex
	pairs    map[string]Pair
	index    uint64                      // of the last write
	changed  chan struct{}               // closed by the next write
	requests []string                    // method, path and query of each
	answer   map[string]http.HandlerFunc // instead of the usual, by path, or by "" for all
}

func newFake() *fake {
	return &fake{pairs: map[string]Pair{}, index: 7, changed: make(chan struct{}), answer: map[string]http.HandlerFunc{}}
}

// RoundTrip implements [http.RoundTripper].
func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	done := make(chan *http.Response, 1)
	go func() {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		done <- w.Result()
	}()
	select {
	case response := <-done:
		return response, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mutex.Lock()
	f.requests = append(f.requests, r.Method+" "+r.URL.RequestURI())
	serve, ok := f.answer[r.URL.Path]
	if !ok {
		serve = f.answer[""]
	}
	f.mutex.Unlock()
	_, isConsistent := r.URL.Query()[consistent]
	switch {
	case serve != nil:
		serve(w, r)
	case strings.HasPrefix(r.URL.Path, "/v1/kv/") && !isConsistent, r.URL.Path == "/v1/txn" && !isConsistent:
		http.Error(w, "not a consistent request: "+r.URL.String(), http.StatusNotImplemented)
	case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v1/kv/"):
		f.get(w, r, strings.TrimPrefix(r.URL.Path, "/v1/kv/"))
	case r.Method == http.MethodPut && r.URL.Path == "/v1/txn":
		f.transact(w, r)
	default:
		http.Error(w, "not what this test expects: "+r.Method+" "+r.URL.String(), http.StatusNotImplemented)
	}
}

// instead sets the answers to the requests with the path, or to all with "".
func (f *fake) instead(path string, answer http.HandlerFunc) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.answer[path] = answer
}

// sent returns the requests since the last call.
func (f *fake) sent() []string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	sent := f.requests
	f.requests = nil
	return sent
}

// set writes a key behind the adapter's back, and deletes it with nil.
func (f *fake) set(key string, value []byte) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.index++
	if f.write(key, value); value == nil {
		delete(f.pairs, key)
	}
	f.wake()
}

// write changes a key. The same value leaves it as it is, as Consul does.
func (f *fake) write(key string, value []byte) {
	p, ok := f.pairs[key]
	if ok && string(p.Value) == string(value) {
		return
	}
	if !ok {
		p.CreateIndex = f.index
	}
	p.Key, p.Value, p.ModifyIndex = key, value, f.index
	f.pairs[key] = p
}

func (f *fake) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fake) get(w http.ResponseWriter, r *http.Request, key string) {
	q := r.URL.Query()
	index, _ := strconv.ParseUint(q.Get("index"), 10, 64)
	patience, _ := time.ParseDuration(q.Get("wait"))
	over := time.After(patience)
	for {
		f.mutex.Lock()
		p, ok := f.pairs[key]
		now, changed := f.index, f.changed
		if ok {
			now = p.ModifyIndex
		}
		keys := f.under(key)
		f.mutex.Unlock()
		if index > 0 && now == index {
			select {
			case <-changed:
				continue
			case <-over:
			case <-r.Context().Done():
				return
			}
		}
		w.Header().Set("X-Consul-Index", fmt.Sprint(now))
		switch {
		case q.Has("keys") && len(keys) > 0:
			json.NewEncoder(w).Encode(keys)
		case ok:
			json.NewEncoder(w).Encode([]Pair{p})
		default:
			w.WriteHeader(http.StatusNotFound)
		}
		return
	}
}

// under returns the keys and folders right below a prefix.
func (f *fake) under(prefix string) (keys []string) {
	for key := range f.pairs {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			name, _, folder := strings.Cut(rest, "/")
			if folder {
				name += "/"
			}
			keys = append(keys, prefix+name)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func (f *fake) transact(w http.ResponseWriter, r *http.Request) {
	var operations []struct{ KV Operation }
	if err := json.NewDecoder(r.Body).Decode(&operations); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if len(operations) > 64 {
		http.Error(w, "Transaction contains too many operations", http.StatusRequestEntityTooLarge)
		return
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	var outcome struct {
		Results []struct{ KV Pair }
		Errors  []refused
	}
	refuse := func(i int, format string, args ...any) {
		outcome.Errors = append(outcome.Errors, refused{i, fmt.Sprintf(format, args...)})
	}
	for i, o := range operations {
		p, ok := f.pairs[o.KV.Key]
		switch {
		case o.KV.Verb == "cas" && p.ModifyIndex != o.KV.Index:
			refuse(i, "failed to set key %q, index is stale", o.KV.Key)
		case o.KV.Verb == "get" && !ok:
			refuse(i, "key %q doesn't exist", o.KV.Key)
		}
	}
	if len(outcome.Errors) > 0 {
		w.WriteHeader(http.StatusConflict)
		json.NewEncoder(w).Encode(outcome)
		return
	}
	f.index++
	for _, o := range operations {
		switch o.KV.Verb {
		case "cas", "set":
			f.write(o.KV.Key, o.KV.Value)
			p := f.pairs[o.KV.Key]
			p.Value = nil
			outcome.Results = append(outcome.Results, struct{ KV Pair }{p})
		case "get":
			outcome.Results = append(outcome.Results, struct{ KV Pair }{f.pairs[o.KV.Key]})
		case "delete-tree":
			for key := range f.pairs {
				if strings.HasPrefix(key, o.KV.Key) {
					delete(f.pairs, key)
				}
			}
		default:
			panic("not used: " + o.KV.Verb)
		}
	}
	f.wake()
	json.NewEncoder(w).Encode(outcome)
}

// refusal answers as Consul does.
func refusing(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		http.Error(w, text, status)
	}
}

// refusingOperations answers to a transaction.
func refusingOperations(errors ...refused) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusConflict)
		json.NewEncoder(w).Encode(map[string]any{"Results": nil, "Errors": errors})
	}
}

// silent never answers, until the client hangs up.
func silent(_ http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// backend is one without a network.
func (f *fake) backend() *Backend {
	return made(New(context.Background(), &http.Client{Transport: f}, &Options{Address: "http://h:8500"}))
}

// serve starts the fake as a server, and returns its host and port.
func (f *fake) serve(t *testing.T) *httptest.Server {
	s := httptest.NewServer(f)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func openAt(ctx context.Context, s *httptest.Server) (backends.Backend, error) {
	return open(ctx, &url.URL{Scheme: "consul", Host: s.Listener.Addr().String()})
}

var record = backends.Record{Holder: "h", Token: 1, TTL: 15 * time.Second, RenewEvery: 4 * time.Second, Attempt: backends.Attempt{Nonce: "n", Sequence: 1}}

// made returns what New has made.
func made(b *Backend, err error) *Backend {
	if err != nil {
		panic(err)
	}
	return b
}
