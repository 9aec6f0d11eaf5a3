package consul

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector/backends"
)

// A Watch is a read and then one blocking query after the other. It reports
// changes of its own record alone, with a query every ten seconds while nothing
// happens.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		b := f.backend()
		ctx, cancel := context.WithCancel(t.Context())
		var seen []backends.Record
		done := make(chan error, 1)
		go func() { done <- b.Watch(ctx, "a", func(r backends.Record) { seen = append(seen, r) }) }()
		expect := func(what string, want ...backends.Record) {
			t.Helper()
			synctest.Wait()
			if fmt.Sprint(seen) != fmt.Sprint(want) {
				t.Errorf("%s: reported %+v, want %+v", what, seen, want)
			}
			seen = nil
		}
		expect("no record", backends.Record{})
		f.set("elector/b", []byte("x"))
		expect("another key")
		made, err := b.Swap(t.Context(), "a", backends.Record{}, record)
		if err != nil {
			t.Fatal(err)
		}
		expect("a new record", made)
		f.sent()
		time.Sleep(35 * time.Second)
		expect("nothing")
		if sent := f.sent(); len(sent) != 3 || sent[0] != fmt.Sprintf("GET /v1/kv/elector/a?consistent=&index=%s&wait=10s", made.Version) {
			t.Errorf("sent %q in 35 s", sent)
		}
		f.set("elector/a", nil)
		expect("a deletion", backends.Record{})
		f.set("elector/a", []byte("foreign"))
		if err := <-done; !errors.Is(err, backends.ErrForeignRecord) {
			t.Errorf("got %v, want ErrForeignRecord", err)
		}
		cancel()
	})
}

// An index that went back, or is none, would make a query that does not block.
func TestWatchEnds(t *testing.T) {
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"an index that went back": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Consul-Index", "6")
			w.WriteHeader(404)
		}, "went back"},
		"index 0": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Consul-Index", "0")
			w.WriteHeader(404)
		}, "went back"},
		"a failure": {refusing(500, "No cluster leader"), "No cluster leader"},
		"silence":   {silent, "no answer within 15s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				reports := 0
				err := f.backend().Watch(t.Context(), "a", func(backends.Record) {
					reports++
					f.instead("", test.answer)
				})
				if !errors.Is(err, backends.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), test.want) || reports != 1 {
					t.Errorf("after %d reports: %v", reports, err)
				}
			})
		})
	}
}

// Watches leave room for the connections of other requests.
func TestWatchesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		b := f.backend()
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan error, maxWatches)
		for i := range maxWatches {
			go func() { results <- b.Watch(ctx, fmt.Sprintf("a%d", i), func(backends.Record) {}) }()
		}
		synctest.Wait()
		if err := b.Watch(ctx, "b", func(backends.Record) { t.Error("reported") }); !errors.Is(err, backends.ErrUnavailable) {
			t.Errorf("one too many: %v", err)
		}
		cancel()
		for range maxWatches {
			if err := <-results; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		last, end := context.WithCancel(t.Context())
		if err := b.Watch(last, "b", func(backends.Record) { end() }); !errors.Is(err, context.Canceled) {
			t.Errorf("after the others: %v", err)
		}
	})
}
