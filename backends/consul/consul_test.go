package consul

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/mute"
)

// Every read is one consistent request, every write one transaction, and the
// version is the key's ModifyIndex.
func TestRecordIsOneKey(t *testing.T) {
	f := newFake()
	b := f.backend()
	expect := func(doing string, want ...string) {
		t.Helper()
		if got := f.sent(); !slices.Equal(got, want) {
			t.Errorf("%s took the requests %q, want %q", doing, got, want)
		}
	}
	const read, write = "GET /v1/kv/elector/a?consistent=", "PUT /v1/txn?consistent="
	if none, err := b.Load(t.Context(), "a"); err != nil || none != (backends.Record{}) {
		t.Fatalf("a missing key: got %+v and error %v", none, err)
	}
	expect("reading a missing key", read)
	last := backends.Record{}
	for i := range 3 {
		next := record
		next.Attempt.Sequence = uint64(i + 1)
		made, err := b.Swap(t.Context(), "a", last, next)
		if err != nil {
			t.Fatal(err)
		}
		expect("writing", write)
		p := f.pairs["elector/a"]
		if made.Version != backends.Version(fmt.Sprint(p.ModifyIndex)) || !bytes.Equal(p.Value, backends.Encode("a", next)) {
			t.Errorf("made %+v, and the key is %d: %s", made, p.ModifyIndex, p.Value)
		}
		if found, err := b.Load(t.Context(), "a"); err != nil || found != made {
			t.Fatalf("wrote %+v, read %+v and error %v", made, found, err)
		}
		expect("reading", read)
		for _, prev := range []backends.Record{last, {Version: "3"}} {
			if _, err := b.Swap(t.Context(), "a", prev, record); !errors.Is(err, backends.ErrConflict) {
				t.Errorf("a swap from %q: got %v, want ErrConflict", prev.Version, err)
			}
		}
		expect("two conflicts", write, write)
		last = made
	}
	for _, version := range []backends.Version{"0", "-1", "etag"} {
		if _, err := b.Swap(t.Context(), "a", backends.Record{Version: version}, record); !errors.Is(err, backends.ErrConflict) {
			t.Errorf("a swap from %q: got %v, want ErrConflict", version, err)
		}
	}
	expect("versions of another store")
}

// A deposed leader that does not know it answers to anything but a consistent
// read.
func TestConsistent(t *testing.T) {
	f := newFake()
	b := f.backend()
	for name, call := range map[string]func(context.Context){
		"Load": func(ctx context.Context) { b.Load(ctx, "a") },
		"List": func(ctx context.Context) { b.List(ctx) },
		"Watch": func(ctx context.Context) {
			b.Watch(ctx, "a", func(backends.Record) { f.set("elector/a", []byte("foreign")) })
		},
		"Commit": func(ctx context.Context) {
			Commit(ctx, fakeLease{acquisition: backends.Acquisition{Backend: b, Election: "a", Record: record}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			f.sent()
			call(t.Context())
			sent := f.sent()
			for _, request := range sent {
				if !strings.Contains(request, "consistent") {
					t.Errorf("%s is not consistent", request)
				}
			}
			if len(sent) == 0 {
				t.Error("no request")
			}
		})
	}
}

// Consul's status is 409 for every reason why it made no operation.
func TestOnlyAStaleIndexIsAConflict(t *testing.T) {
	stale := refused{0, `failed to set key "elector/a", index is stale`}
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   error
	}{
		"a stale index":            {refusingOperations(stale), backends.ErrConflict},
		"no right to write":        {refusingOperations(refused{0, "Permission denied: token with AccessorID '1' lacks permission 'key:write' on \"elector/a\""}), backends.ErrDenied},
		"another operation":        {refusingOperations(refused{1, "index is stale"}), backends.ErrUnavailable},
		"no reason":                {refusingOperations(), backends.ErrMisconfigured},
		"a 409 of another program": {refusing(http.StatusConflict, "Conflict"), backends.ErrMisconfigured},
		"a 404":                    {refusing(http.StatusNotFound, ""), backends.ErrMisconfigured},
		"no result":                {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"Results":[]}`) }, backends.ErrMisconfigured},
		"a result without its index": {func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"Results":[{"KV":{"Key":"elector/a"}}]}`)
		}, backends.ErrMisconfigured},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.instead("/v1/txn", test.answer)
			_, err := f.backend().Swap(t.Context(), "a", backends.Record{}, record)
			if !errors.Is(err, test.want) || errors.Is(err, backends.ErrConflict) != (test.want == backends.ErrConflict) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

// Only Consul can report that there is no record.
func TestMissing(t *testing.T) {
	pair := `[{"Key":"elector/a","ModifyIndex":9,"Value":"e30="}]`
	for name, test := range map[string]struct {
		status      int
		index, body string
		want        error
	}{
		"no key":               {404, "9", "", nil},
		"a 404 of a proxy":     {404, "", "", backends.ErrMisconfigured},
		"no index":             {200, "", pair, backends.ErrMisconfigured},
		"a record":             {200, "9", pair, backends.ErrForeignRecord},
		"another key":          {200, "9", strings.Replace(pair, "/a", "/b", 1), backends.ErrMisconfigured},
		"no key in the answer": {200, "9", "[]", backends.ErrMisconfigured},
		"a page":               {200, "9", "<html>", backends.ErrMisconfigured},
		"nothing":              {200, "9", "", backends.ErrMisconfigured},
		"a conflict":           {409, "9", "", backends.ErrMisconfigured},
		"too large":            {200, "9", strings.Replace(pair, "e30=", strings.Repeat("A", 1<<20), 1), backends.ErrForeignRecord},
		"empty":                {200, "9", strings.Replace(pair, `"e30="`, "null", 1), backends.ErrForeignRecord},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.instead("", func(w http.ResponseWriter, _ *http.Request) {
				if test.index != "" {
					w.Header().Set("X-Consul-Index", test.index)
				}
				w.WriteHeader(test.status)
				io.WriteString(w, test.body)
			})
			r, err := f.backend().Load(t.Context(), "a")
			if !errors.Is(err, test.want) || r != (backends.Record{}) {
				t.Errorf("got %+v and error %v, want %v", r, err, test.want)
			}
		})
	}
}

// The elector retries. A write that net/http sent again could fail because of the
// first.
func TestNothingIsSentTwice(t *testing.T) {
	for what, answer := range map[string]http.HandlerFunc{
		"307": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.RequestURI(), http.StatusTemporaryRedirect)
		},
		"429":   refusing(429, "Your IP is issuing too many concurrent connections, please rate limit your calls"),
		"500":   refusing(500, "No cluster leader"),
		"503":   refusing(503, ""),
		"reset": func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body); panic(http.ErrAbortHandler) },
	} {
		t.Run(what, func(t *testing.T) {
			f := newFake()
			b, err := openAt(t.Context(), f.serve(t))
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			for i := range 4 {
				if _, err := b.Load(t.Context(), "a"); err != nil { // over a connection that the next request uses again
					t.Fatal(err)
				}
				f.sent()
				f.instead("/v1/txn", answer)
				prev := backends.Record{}
				if i%2 > 0 {
					prev.Version = "7"
				}
				if _, err := b.Swap(t.Context(), "a", prev, record); err == nil || errors.Is(err, backends.ErrConflict) {
					t.Errorf("got %v", err)
				}
				if n := len(f.sent()); n != 1 {
					t.Errorf("one write was sent %d times", n)
				}
				f.instead("/v1/txn", nil)
			}
		})
	}
}

// An answer that breaks off is an error.
func TestBrokenAnswer(t *testing.T) {
	f := newFake()
	b, err := openAt(t.Context(), f.serve(t))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, status := range []int{200, 404} {
		f.instead("", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Consul-Index", "9")
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(status)
			io.WriteString(w, "[")
		})
		if r, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrUnavailable) {
			t.Errorf("%d: got %+v and error %v, want ErrUnavailable", status, r, err)
		}
	}
}

func TestSilence(t *testing.T) {
	mute.Calls(t, record, func() (backends.Backend, func(http.HandlerFunc)) {
		f := newFake()
		b, err := openAt(t.Context(), f.serve(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		return b, func(h http.HandlerFunc) { f.instead("", h) }
	})
}

// After a call that got no answer no connection of before is used again: in a
// network gone dark all of them are dead. After Close there is none.
func TestConnectionsEnd(t *testing.T) {
	for _, how := range []string{"no answer", "Close", "Close during a call"} {
		t.Run(how, func(t *testing.T) {
			f := newFake()
			states := make(chan http.ConnState, 100)
			s := httptest.NewUnstartedServer(f)
			s.Config.ConnState = func(_ net.Conn, state http.ConnState) { states <- state }
			s.Start()
			defer s.Close()
			b, err := openAt(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			switch how {
			case "Close":
				b.Close()
			default:
				asked := make(chan struct{}, 1)
				f.instead("", func(w http.ResponseWriter, r *http.Request) { asked <- struct{}{}; mute.Handler(w, r) })
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				done := make(chan error, 1)
				go func() { _, err := b.Load(ctx, "a"); done <- err }()
				<-asked
				if how == "no answer" {
					cancel()
				} else {
					b.Close()
				}
				if err := <-done; err == nil {
					t.Error("a call without an answer returned no error")
				}
				cancel()
			}
			open := 0
			for overdue := time.After(time.Minute); ; {
				select {
				case state := <-states:
					switch state {
					case http.StateNew:
						open++
					case http.StateClosed:
						open--
					}
				case <-overdue:
					t.Fatalf("%d connections stay open", open)
				}
				if open == 0 {
					return
				}
			}
		})
	}
}

// With several servers in the URL the next one is asked after one that does not
// answer, or has no leader; each request is sent once.
func TestNextServer(t *testing.T) {
	works, leaderless := newFake(), newFake()
	leaderless.instead("", refusing(500, "No cluster leader"))
	dead := httptest.NewServer(works)
	dead.Close()
	hosts := []string{dead.Listener.Addr().String(), leaderless.serve(t).Listener.Addr().String(), works.serve(t).Listener.Addr().String()}
	b, err := parse(&url.URL{Scheme: "consul", Host: strings.Join(hosts, ",")}, &http.Transport{DisableKeepAlives: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []error{backends.ErrUnavailable, backends.ErrUnavailable, nil, nil} {
		if _, err := b.Load(t.Context(), "a"); !errors.Is(err, want) {
			t.Errorf("request %d: got %v, want %v", i, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	works.instead("", func(http.ResponseWriter, *http.Request) { cancel(); <-t.Context().Done() })
	b.Load(ctx, "a") // given up by its caller, which is no fault of the server
	works.instead("", nil)
	if _, err := b.Load(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

func TestToken(t *testing.T) {
	f := newFake()
	var token atomic.Value
	f.instead("", func(w http.ResponseWriter, r *http.Request) {
		token.Store(r.Header.Get("X-Consul-Token"))
		w.Header().Set("X-Consul-Index", "1")
		w.WriteHeader(404)
	})
	t.Setenv("CONSUL_HTTP_TOKEN", "of-the-environment")
	t.Setenv("CONSUL_HTTP_TOKEN_FILE", "")
	used := func(query string, want string) *Backend {
		t.Helper()
		b, err := parse(&url.URL{Scheme: "consul", Host: "h", RawQuery: query}, &http.Transport{})
		if err != nil {
			t.Fatal(err)
		}
		b.use(f)
		if _, err := b.Load(t.Context(), "a"); err != nil || token.Load() != want {
			t.Errorf("%q: sent the token %q and got %v, want %q", query, token.Load(), err, want)
		}
		return b
	}
	used("", "of-the-environment")
	file := filepath.Join(t.TempDir(), "token")
	write := func(content string) {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first\n")
	b := used("token_file="+file, "first")
	t.Setenv("CONSUL_HTTP_TOKEN_FILE", file)
	used("", "first")
	write("second")
	if _, err := b.Load(t.Context(), "a"); err != nil || token.Load() != "second" {
		t.Errorf("after the file was rotated: sent %q and got %v", token.Load(), err)
	}
	os.Remove(file)
	if _, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrUnavailable) || !strings.Contains(err.Error(), "token_file") {
		t.Errorf("without the file: got %v, want ErrUnavailable", err)
	}
}

func TestDatacenter(t *testing.T) {
	f := newFake()
	b := made(New(t.Context(), &http.Client{Transport: f}, &Options{Address: "http://h:8500", Datacenter: "dc2"}))
	b.Load(t.Context(), "a")
	b.Swap(t.Context(), "a", backends.Record{}, record)
	b.List(t.Context())
	for _, request := range f.sent() {
		if !strings.Contains(request, "dc=dc2") {
			t.Errorf("%s goes to another datacenter", request)
		}
	}
}

// Renewals are one transaction: all or none.
func TestRenewMany(t *testing.T) {
	f := newFake()
	b := f.backend()
	var renewals []backends.Change
	for i := range maxBatch {
		name := "a" + strconv.Itoa(i)
		made, err := b.Swap(t.Context(), name, backends.Record{}, record)
		if err != nil {
			t.Fatal(err)
		}
		next := made
		next.Attempt.Sequence++
		renewals = append(renewals, backends.Change{Name: name, Prev: made, Next: next})
	}
	f.sent()
	for i, o := range b.SwapMany(t.Context(), renewals) {
		if found, err := b.Load(t.Context(), renewals[i].Name); o.Err != nil || found != o.Record || err != nil {
			t.Fatalf("renewal %d: %+v, and the record is %+v, %v", i, o, found, err)
		}
	}
	if n := len(f.sent()); n != 1+maxBatch {
		t.Errorf("%d renewals took %d requests", maxBatch, n-maxBatch)
	}
	for name, test := range map[string]struct {
		answer   http.HandlerFunc
		notTried bool
	}{
		"all are stale": {nil, true},
		"too many":      {refusing(413, "Transaction contains too many operations"), true},
		"no leader":     {refusing(500, "leadership lost while committing log"), false},
	} {
		f.instead("/v1/txn", test.answer)
		for _, o := range b.SwapMany(t.Context(), renewals) {
			if o.Err == nil || errors.Is(o.Err, backends.ErrNotTried) != test.notTried || !test.notTried && !errors.Is(o.Err, backends.ErrUnavailable) {
				t.Errorf("%s: got %v", name, o.Err)
			}
		}
	}
}

func TestList(t *testing.T) {
	f := newFake()
	b := f.backend()
	if names, err := b.List(t.Context()); err != nil || len(names) != 0 {
		t.Errorf("got %q, %v", names, err)
	}
	for _, name := range []string{"b", "a"} {
		if _, err := b.Swap(t.Context(), name, backends.Record{}, record); err != nil {
			t.Fatal(err)
		}
	}
	f.set("elector/c", []byte("foreign"))
	f.set("elector/c/d", []byte("below"))
	f.set("elected", []byte("beside"))
	if names, err := b.List(t.Context()); err != nil || !slices.Equal(names, []string{"a", "b", "c"}) {
		t.Errorf("got %q, %v", names, err)
	}
}

func TestDescribe(t *testing.T) {
	client := &http.Client{Transport: newFake()}
	for _, test := range []struct{ address, prefix, want string }{
		{"http://h:8500", "", "consul://h:8500/elector/"},
		{"https://h/", "here-", "consuls://h/here-"},
		{"", "", "consul://127.0.0.1:8500/elector/"},
	} {
		d := made(New(t.Context(), client, &Options{Address: test.address, Prefix: test.prefix})).Describe()
		if d.Store != test.want || d.MinTTL != 500*time.Millisecond || !d.PushesRenewals || d.MaxSwaps != 64 {
			t.Errorf("got %+v, want %s", d, test.want)
		}
	}
}
