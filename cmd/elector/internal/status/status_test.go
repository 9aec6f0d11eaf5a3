package status

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

// A testStore is behind the URL test://NAME.
type testStore struct {
	*memory.Store
	mutex sync.Mutex
	err   error
	reads int
	most  int // reads at a time
	now   int
}

var testStores = map[string]*testStore{}

func init() {
	backends.Register("test", func(_ context.Context, u *url.URL) (backends.Backend, error) {
		s := testStores[u.Hostname()]
		if err := s.fails(nil); err != nil {
			return nil, err
		}
		return &testBackend{s.Handle(), s}, nil
	})
}

// newStore makes a store that the URL test://NAME names. Tests run one by one.
func newStore(t *testing.T, name string) *testStore {
	s := &testStore{Store: memory.NewStore()}
	testStores[name] = s
	return s
}

// fails makes requests fail from now on, or returns why they fail.
func (s *testStore) fails(set *error) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if set != nil {
		s.err = *set
	}
	return s.err
}

func (s *testStore) breaks(err error) { s.fails(&err) }

// A testBackend is no Lister.
type testBackend struct {
	backends.Backend
	s *testStore
}

func (b *testBackend) Load(ctx context.Context, name string) (backends.Record, error) {
	b.s.mutex.Lock()
	b.s.reads++
	b.s.now++
	b.s.most = max(b.s.most, b.s.now)
	b.s.mutex.Unlock()
	defer func() { b.s.mutex.Lock(); b.s.now--; b.s.mutex.Unlock() }()
	if err := b.s.fails(nil); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			<-ctx.Done()
		}
		return backends.Record{}, err
	}
	return b.Backend.Load(ctx, name)
}

// listing is a testBackend that can list.
type listing struct {
	*testBackend
	names *atomic.Pointer[[]string]
}

func (l listing) List(context.Context) ([]string, error) {
	if err := l.s.fails(nil); err != nil {
		return nil, err
	}
	return *l.names.Load(), nil
}

func put(t *testing.T, s *testStore, name, holder string, token, sequence uint64) {
	s.Put(name, backends.Encode(name, backends.Record{Holder: holder, Value: holder + ":80", Token: token, TTL: 15 * time.Second, RenewEvery: 5 * time.Second, Attempt: backends.Attempt{Nonce: "n", Sequence: sequence}}))
}

// fleet runs a Fleet until the test ends.
func fleet(t *testing.T, o Options, stores ...Store) *Fleet {
	o.Every, o.Reads, o.Logger = 2*time.Second, cmp.Or(o.Reads, 50), slog.New(slog.DiscardHandler)
	f := New(stores, o)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return f
}

func get(t *testing.T, f *Fleet, path string, want int, into any) *http.Response {
	t.Helper()
	w := httptest.NewRecorder()
	f.Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	if w.Code != want {
		t.Errorf("GET %s: %d %s, want %d", path, w.Code, w.Body, want)
	}
	if into != nil {
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			t.Errorf("GET %s: %v", path, err)
		}
	}
	return w.Result()
}

// row returns an election of a complete snapshot.
func row(t *testing.T, f *Fleet, name string) electionRow {
	t.Helper()
	var s snapshot
	get(t, f, "/elections", 200, &s)
	for _, r := range s.Elections {
		if r.Election == name {
			return r
		}
	}
	t.Fatalf("%s is not among %d elections", name, len(s.Elections))
	return electionRow{}
}

func TestStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, "a")
		put(t, s, "alive", "x", 7, 1)
		put(t, s, "dead", "y", 8, 1)
		put(t, s, "resigned", "", 9, 1)
		s.Put("foreign", []byte("{}"))
		f := fleet(t, Options{}, Store{URL: "test://a", Elections: []string{"alive", "dead", "resigned", "never", "foreign"}})
		want := func(name, state, id string) electionRow {
			t.Helper()
			r := row(t, f, name)
			if r.State != state || r.ID != id {
				t.Errorf("%s: %+v, want %s %q", name, r, state, id)
			}
			return r
		}
		time.Sleep(3 * time.Second)
		if r := want("alive", "held", "x"); r.Renewed || r.Token != 7 || r.TTL != 15 || r.Store != "test://a" {
			t.Errorf("not seen to renew: %+v", r)
		}
		want("resigned", "vacant", "")
		want("never", "vacant", "")
		if r := want("foreign", "foreign", ""); !strings.Contains(r.Error, "foreign record") {
			t.Errorf("foreign: %+v", r)
		}
		for i := range 5 {
			time.Sleep(4 * time.Second)
			put(t, s, "alive", "x", 7, uint64(i+2))
		}
		time.Sleep(2 * time.Second)
		if r := want("alive", "held", "x"); !r.Renewed || r.Unchanged > 2 {
			t.Errorf("renews: %+v", r)
		}
		if r := want("dead", "lapsed", "y"); r.Renewed || r.Unchanged < 16.5 {
			t.Errorf("dead: %+v", r)
		}
	})
}

// A store that fails twice in a row does not answer, and what it showed is unknown;
// a foreign record is not the store's fault.
func TestStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, "a")
		put(t, s, "x", "leader", 7, 1)
		s.breaks(backends.ErrUnavailable)
		f := fleet(t, Options{}, Store{URL: "test://user:secret@a", Elections: []string{"x"}})
		state := func(answers bool, state string, change string) {
			t.Helper()
			time.Sleep(12 * time.Second)
			var all snapshot
			get(t, f, "/elections", 200, &all)
			if st := all.Stores[0]; st.Answers != answers || (st.Error == "") != answers || strings.Contains(fmt.Sprint(all), "secret") {
				t.Errorf("%+v, want answers %v", st, answers)
			}
			if r := all.Elections[0]; r.State != state {
				t.Errorf("%+v, want %s", r, state)
			}
			var delta snapshot
			get(t, f, "/elections?since="+change, 200, &delta)
			if len(delta.Elections) != 1 || delta.Complete {
				t.Errorf("since %s: %+v, want the election, because its state has changed", change, delta)
			}
		}
		time.Sleep(time.Second)
		var first snapshot
		get(t, f, "/elections", 200, &first)
		get(t, f, "/readyz", 200, nil)
		get(t, f, "/leader?election=x", 503, nil)
		s.breaks(nil)
		state(true, "held", first.Seq)
		get(t, f, "/elections", 200, &first)
		s.breaks(context.DeadlineExceeded) // it hangs
		state(false, "unknown", first.Seq)
		get(t, f, "/leader?election=x", 503, nil)
		if r := row(t, f, "x"); r.ID != "leader" {
			t.Errorf("the last leader is gone: %+v", r)
		}
		get(t, f, "/elections", 200, &first)
		s.breaks(nil)
		state(true, "lapsed", first.Seq)
	})
}

func TestRate(t *testing.T) {
	for _, c := range []struct{ elections, reads int }{{1, 30}, {10, 300}, {100, 3000}, {2000, 3000}} {
		t.Run(fmt.Sprint(c.elections), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t, "a")
				names := make([]string, c.elections)
				for i := range names {
					names[i] = fmt.Sprint("e", i)
				}
				fleet(t, Options{}, Store{URL: "test://a", Elections: names})
				time.Sleep(time.Minute)
				s.mutex.Lock()
				if s.reads < c.reads-1 || s.reads > c.reads+1 {
					t.Errorf("%d reads in a minute, want %d", s.reads, c.reads)
				}
				s.reads = 0
				s.mutex.Unlock()
				s.breaks(context.DeadlineExceeded)
				time.Sleep(time.Minute)
				s.mutex.Lock()
				defer s.mutex.Unlock()
				if s.reads > 60 || s.most > 2*parallel { // those that were given up may not have returned yet
					t.Errorf("%d reads in a minute in which the store hung, %d at a time, want at most 60, %d at a time", s.reads, s.most, parallel)
				}
			})
		})
	}
}

func TestSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		newStore(t, "a")
		f := fleet(t, Options{}, Store{URL: "test://a", Elections: []string{"x", "y", "z", "z"}})
		time.Sleep(5 * time.Second)
		var all, none, two, odd snapshot
		get(t, f, "/elections", 200, &all)
		get(t, f, "/elections?since="+all.Seq, 200, &none)
		time.Sleep(1900 * time.Millisecond) // in which three are read
		get(t, f, "/elections?since="+all.Seq, 200, &two)
		if !all.Complete || len(all.Elections) != 3 || none.Complete || len(none.Elections) != 0 || two.Complete || len(two.Elections) != 3 {
			t.Errorf("%d, %d, %d elections", len(all.Elections), len(none.Elections), len(two.Elections))
		}
		for _, since := range []string{"x", "1.2", "-1.99", "99999999999999999999.1", all.Seq[:5]} {
			if get(t, f, "/elections?since="+since, 200, &odd); !odd.Complete || len(odd.Elections) != 3 {
				t.Errorf("since %s: not complete", since)
			}
		}
	})
}

func TestAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names atomic.Pointer[[]string]
		names.Store(&[]string{"x", "y"})
		s := newStore(t, "a")
		f := New([]Store{{URL: "test://a", Elections: []string{"given"}}}, Options{All: true, Every: time.Second, Reads: 50, Logger: slog.New(slog.DiscardHandler)})
		st := f.stores[0]
		st.backend = listing{&testBackend{s.Handle(), s}, &names}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		count := func(want int) (s snapshot) {
			t.Helper()
			time.Sleep(2 * relist)
			if get(t, f, "/elections", 200, &s); len(s.Elections) != want || s.Stores[0].Listing != "" {
				t.Errorf("%d elections %+v, want %d", len(s.Elections), s.Stores, want)
			}
			return s
		}
		before := count(3)
		names.Store(&[]string{"y", "z", "given", "z2"})
		count(4)
		var after snapshot
		if get(t, f, "/elections?since="+before.Seq, 200, &after); !after.Complete {
			t.Error("an election is gone, and the answer is not complete")
		}
		names.Store(&[]string{})
		count(1)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A store that was opened without a request, as some are, and then refuses to list does not
// answer. It does not seem to answer before either, and its elections are not known.
func TestListFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names atomic.Pointer[[]string]
		names.Store(&[]string{"x"})
		s := newStore(t, "a")
		put(t, s, "x", "leader", 7, 1)
		f := New([]Store{{URL: "test://a"}}, Options{All: true, Every: 2 * time.Second, Reads: 50, Logger: slog.New(slog.DiscardHandler)})
		st := f.stores[0]
		st.answered(listing{&testBackend{s.Handle(), s}, &names}, nil)
		shows := func(when string, answers, failing, listed bool) {
			t.Helper()
			var all snapshot
			get(t, f, "/elections", 200, &all)
			if r := all.Stores[0]; r.Answers != answers || r.Since > 0 != failing || r.Listed != listed {
				t.Errorf("%s the store is shown as %+v", when, r)
			}
		}
		shows("before a request", false, false, false)
		s.breaks(fmt.Errorf("%w: the server answers 500", backends.ErrUnavailable))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		time.Sleep(time.Second)
		shows("after a request that failed", false, true, false)
		s.breaks(nil)
		time.Sleep(reopen + time.Second)
		shows("after an answer", true, false, true)
		s.breaks(context.DeadlineExceeded) // it hangs
		time.Sleep(8 * time.Second)
		shows("while it hangs", false, true, true)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestCannotList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		newStore(t, "a")
		f := fleet(t, Options{All: true}, Store{URL: "test://a", Elections: []string{"x"}})
		time.Sleep(10 * time.Second)
		var s snapshot
		if get(t, f, "/elections", 200, &s); !s.Stores[0].Answers || !strings.Contains(s.Stores[0].Listing, "cannot list") || len(s.Elections) != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// Before a store has answered, its elections are shown as unknown.
func TestBeforeAnAnswer(t *testing.T) {
	f := New([]Store{{URL: "test://a", Elections: []string{"x"}}, {URL: "test://b", Elections: []string{"x", "y"}}}, Options{Every: 2 * time.Second, Reads: 50})
	get(t, f, "/healthz", 200, nil)
	get(t, f, "/readyz", 503, nil)
	get(t, f, "/leader?election=y", 503, nil)
	var s snapshot
	get(t, f, "/elections", 200, &s)
	if len(s.Elections) != 3 || s.Elections[0].State != "unknown" || s.Stores[0].Answers {
		t.Errorf("%+v", s)
	}
}

func TestLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newStore(t, "a"), newStore(t, "b")
		put(t, a, "x", "one", 7, 1)
		put(t, b, "x", "two", 8, 1)
		put(t, b, "y", "three", 9, 1)
		f := fleet(t, Options{}, Store{URL: "test://a", Elections: []string{"x"}}, Store{URL: "test://b", Elections: []string{"x", "y"}}, Store{URL: "test://b", Elections: []string{"w"}})
		time.Sleep(time.Second)
		get(t, f, "/readyz", 200, nil)
		get(t, f, "/healthz", 200, nil)
		for path, want := range map[string]struct {
			code int
			id   string
		}{
			"/leader?election=y":                         {200, "three"},
			"/leader?election=x&store=test%3A%2F%2Fa":    {200, "one"},
			"/leader?election=x&store=test%3A%2F%2Fb":    {200, "two"},
			"/leader?election=w&store=test://b+(2)":      {200, ""},
			"/leader?election=x":                         {400, ""},
			"/leader":                                    {400, ""},
			"/leader?election=z":                         {404, ""},
			"/leader?election=../../etc/passwd":          {404, ""},
			"/leader?election=%00":                       {404, ""},
			"/leader?election=y&store=test://a":          {404, ""},
			"/leader?election=y&election=x&other=%ff%fe": {200, "three"},
		} {
			var r struct{ ID, Error string }
			get(t, f, path, want.code, &r)
			if r.ID != want.id || (r.Error == "") != (want.code == 200) {
				t.Errorf("%s: %+v", path, r)
			}
		}
		put(t, b, "y", "four", 10, 1) // and no poll in between
		var r struct{ ID string }
		if get(t, f, "/leader?election=y", 200, &r); r.ID != "four" {
			t.Errorf("a stale leader: %+v", r)
		}
	})
}

func TestOneElectionNeedsNoName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		put(t, newStore(t, "a"), "x", "one", 7, 1)
		f := fleet(t, Options{}, Store{URL: "test://a", Elections: []string{"x"}})
		time.Sleep(time.Second)
		var r struct{ ID string }
		if get(t, f, "/leader", 200, &r); r.ID != "one" {
			t.Errorf("%+v", r)
		}
	})
}

func TestUnusableURL(t *testing.T) {
	for _, u := range []string{"nonsense", "tset://a", "file://user:secret@host/%zz"} {
		err := New([]Store{{URL: u, Elections: []string{"x"}}}, Options{Every: time.Second, Reads: 1, Logger: slog.New(slog.DiscardHandler)}).Run(t.Context())
		if !errors.Is(err, elector.ErrURL) && !errors.Is(err, elector.ErrUnknownScheme) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", u, err)
		}
	}
}

func TestRoutes(t *testing.T) {
	f := New(nil, Options{Every: time.Second, Reads: 1})
	for _, c := range []struct {
		method, path string
		code         int
	}{
		{"GET", "/", 200}, {"HEAD", "/", 200}, {"GET", "/elections", 200}, {"HEAD", "/healthz", 200},
		{"POST", "/", 405}, {"DELETE", "/elections", 405}, {"PUT", "/leader", 405}, {"OPTIONS", "/healthz", 405}, {"TRACE", "/", 405},
		{"GET", "/page.html", 404}, {"GET", "/favicon.ico", 404}, {"GET", "/..%2f..%2fetc/passwd", 404},
	} {
		w := httptest.NewRecorder()
		f.Handler().ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
		if w.Code != c.code || w.Header().Get("Content-Security-Policy") == "" || w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s: %d, want %d; %v", c.method, c.path, w.Code, c.code, w.Header())
		}
	}
}

// The page makes text of what others have written, and loads nothing.
func TestPage(t *testing.T) {
	for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "https://", "src=", " style=\"", " onclick"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, element := range []string{"style", "script"} {
		if strings.Count(page, "<"+element) != 1 {
			t.Errorf("the page has not one %s, as its policy assumes", element)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Error(policy)
	}
}
