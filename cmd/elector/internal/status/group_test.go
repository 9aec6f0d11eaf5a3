package status

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/partition"
)

// joins runs a member of the group orders. leave makes it leave; the end of the test does
// so too. crash makes it go without a word.
func joins(t *testing.T, s *testStore, id string, partitions int) (leave, crash func()) {
	t.Helper()
	b := &cut{Backend: s.Handle()}
	g, err := partition.New(b, "orders", &partition.Options{Partitions: partitions, Elector: elector.Options{ID: id, Value: id + ":80", Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		g.Run(ctx, func(ctx context.Context, l *partition.Lease) error { <-ctx.Done(); return nil })
	})
	leave = sync.OnceFunc(func() { cancel(); all.Wait(); g.Close() })
	t.Cleanup(leave)
	return leave, func() { b.off.Store(true) }
}

// A cut is a connection that can be cut.
type cut struct {
	backends.Backend
	off atomic.Bool
}

func (b *cut) Load(ctx context.Context, name string) (backends.Record, error) {
	if b.off.Load() {
		return backends.Record{}, backends.ErrUnavailable
	}
	return b.Backend.Load(ctx, name)
}

func (b *cut) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	if b.off.Load() {
		return backends.Record{}, backends.ErrUnavailable
	}
	return b.Backend.Swap(ctx, name, prev, next)
}

// theGroup returns the only group of a complete snapshot.
func theGroup(t *testing.T, f *Fleet) groupRow {
	t.Helper()
	var s snapshot
	get(t, f, "/elections", 200, &s)
	if len(s.Groups) != 1 || s.Stores[0].Groups != 1 {
		t.Fatalf("%d groups; %+v", len(s.Groups), s)
	}
	return s.Groups[0]
}

func stripOf(r groupRow, id string) strip {
	i := slices.IndexFunc(r.Strips, func(s strip) bool { return s.Member == id })
	if i < 0 {
		return strip{}
	}
	return r.Strips[i]
}

// A group is one card, and shows a rebalance, a crash, an outage and an end as what they are.
func TestGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, "a")
		put(t, s, "alive", "x", 7, 1)
		leaveA, _ := joins(t, s, "a", 64)
		time.Sleep(time.Minute)
		f := fleet(t, Options{}, Store{URL: "test://a", Elections: []string{"alive", "orders", "never"}})
		want := func(after time.Duration, state string, without int) groupRow {
			t.Helper()
			time.Sleep(after)
			r := theGroup(t, f)
			if r.State != state || r.Without != without || r.Group != "orders" || r.Partitions != 64 {
				t.Errorf("%+v, want %s with %d without an owner", r, state, without)
			}
			return r
		}
		r := want(time.Minute, "held", 0)
		if a := stripOf(r, "a"); a.Owned != 64 || a.Planned != 64 || a.State != "ready" || a.Value != "a:80" {
			t.Errorf("alone: %+v", r)
		}
		var all snapshot
		if get(t, f, "/elections", 200, &all); len(all.Elections) != 2 {
			t.Errorf("the group is an election too: %+v", all.Elections)
		}
		var one groupRow
		if get(t, f, "/leader?election=orders", 200, &one); one.Members != 1 || one.Strips != nil {
			t.Errorf("/leader of a group: %+v", one)
		}
		_, crash := joins(t, s, "b", 64)
		r = want(time.Minute, "held", 0)
		for _, id := range []string{"a", "b"} {
			if x := stripOf(r, id); x.Owned != 32 || x.State != "ready" || x.History[len(x.History)-1][0] != 32 {
				t.Errorf("two members: %+v", x)
			}
		}
		if a := stripOf(r, "a").History; a[len(a)-2][0] <= 32 {
			t.Errorf("the strip does not show the rebalance: %v", a)
		}
		crash()
		r = want(2*time.Minute, "held", 0)
		if a, b := stripOf(r, "a"), stripOf(r, "b"); a.Owned != 64 || b.Owned != 0 || b.State != "left" {
			t.Errorf("one is gone: %+v, %+v", a, b)
		}
		s.breaks(backends.ErrUnavailable)
		r = want(time.Minute, "unknown", 0)
		if a := stripOf(r, "a").History; a[len(a)-1][0] != -1 {
			t.Errorf("the strip shows what was not read: %v", a)
		}
		s.breaks(nil)
		want(time.Minute, "held", 0)
		leaveA()
		if r = want(time.Minute, "vacant", 64); r.Members != 0 || r.Strips[0].State != "none" || r.Strips[0].Owned != 64 {
			t.Errorf("no member: %+v", r)
		}
		if r = want(15*time.Minute, "vacant", 64); len(r.Strips) != 1 {
			t.Errorf("much later: %+v", r)
		}
	})
}

// A group whose last member has crashed has lapsed: its records alone do not show that.
func TestGroupLapses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, "a")
		_, crash := joins(t, s, "a", 4)
		f := fleet(t, Options{}, Store{URL: "test://a", Elections: []string{"orders"}})
		time.Sleep(time.Minute)
		crash()
		time.Sleep(30 * time.Second)
		if r := theGroup(t, f); r.State != "lapsed" || r.Without != 4 || stripOf(r, "a").State != "gone" {
			t.Errorf("%+v", r)
		}
	})
}

// With 10,000 partitions and many members the answer stays small, and the reads stay within
// the bound.
func TestLargeGroup(t *testing.T) {
	const members, partitions = 30, 10000
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, "a")
		for i := range members {
			joins(t, s, fmt.Sprintf("member-%02d", i), partitions)
		}
		time.Sleep(2 * time.Minute)
		f := fleet(t, Options{}, Store{URL: "test://a", Elections: []string{"orders", "never"}})
		time.Sleep(8 * time.Minute)
		r := theGroup(t, f)
		total := 0
		for _, s := range r.Strips {
			total += s.Owned
		}
		if r.State != "held" || r.Members != members || len(r.Strips) != mostStrips || total != partitions || r.Strips[mostStrips-1].Member != "7 other members" {
			t.Errorf("%s, %d members, %d strips of %d partitions, the last one %+v", r.State, r.Members, len(r.Strips), total, r.Strips[len(r.Strips)-1])
		}
		if b, err := json.Marshal(r); err != nil || len(b) > 16<<10 {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if most := 50*8*60 + 100; s.reads > most {
			t.Errorf("%d reads in 8 minutes, want at most %d", s.reads, most)
		}
	})
}

// With --all, what the store lists is sorted into groups and elections.
func TestAllGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, "a")
		leave, _ := joins(t, s, "a", 4)
		var names atomic.Pointer[[]string]
		names.Store(&[]string{"invoices", "orders.p.0", "orders.p.1", "orders.p.2", "orders.p.3", "orders.plan", "orders.seat.0"})
		f := New([]Store{{URL: "test://a"}}, Options{All: true, Every: time.Second, Reads: 50, Logger: slog.New(slog.DiscardHandler)})
		b := listing{&testBackend{s.Handle(), s}, &names}
		f.stores[0].backend, f.stores[0].paced = b, newPaced(f.stores[0], b)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		time.Sleep(2 * relist)
		var all snapshot
		get(t, f, "/elections", 200, &all)
		if r := theGroup(t, f); r.State != "held" || r.Partitions != 4 || len(all.Elections) != 1 {
			t.Errorf("%+v, %+v", r, all.Elections)
		}
		leave()
		names.Store(&[]string{"invoices"})
		time.Sleep(2 * relist)
		var after snapshot
		if get(t, f, "/elections?since="+all.Seq, 200, &after); !after.Complete || len(after.Groups) != 0 {
			t.Errorf("the group is gone: %+v", after)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A group that this version cannot read is an error of its own, not the store's.
func TestForeignGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, "a")
		joins(t, s, "a", 4)
		time.Sleep(time.Minute)
		put(t, s, "deploy.plan", "x", 7, 1) // an election
		f := fleet(t, Options{}, Store{URL: "test://a", Elections: []string{"orders", "deploy", "broken"}})
		s.Put("broken.plan", []byte("{}"))
		time.Sleep(time.Minute)
		theGroup(t, f)
		s.Put("orders.plan", []byte("{}"))
		time.Sleep(4 * time.Second)
		var all snapshot
		get(t, f, "/elections", 200, &all)
		if r := theGroup(t, f); r.State != "foreign" || !strings.Contains(r.Error, "foreign record") || !all.Stores[0].Answers {
			t.Errorf("%+v", r)
		}
		for _, name := range []string{"deploy", "broken"} {
			if r := row(t, f, name); r.State != "vacant" {
				t.Errorf("%+v", r)
			}
		}
		w := httptest.NewRecorder()
		f.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/leader?election=orders", nil))
		if w.Code != 200 || !strings.Contains(w.Body.String(), "foreign record") {
			t.Errorf("/leader: %d %s", w.Code, w.Body)
		}
	})
}
