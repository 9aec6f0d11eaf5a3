package handover

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/bench/results"
	"github.com/elector-go/elector/internal/leak"
	"github.com/elector-go/elector/internal/proof/child"
	"github.com/elector-go/elector/internal/proof/stores"
)

// TestMain lets the test binary be a leader too: start runs the program that it
// is called from.
func TestMain(m *testing.M) {
	if leaderMain([]peers.Library{fakeOverTCP}) {
		return
	}
	child.Prepare()
	leak.Main(m)
}

func TestMeasureRefuses(t *testing.T) {
	for _, ttl := range []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond} {
		if _, err := Measure(t.Context(), Options{TTL: ttl}); err == nil {
			t.Errorf("a TTL of %v is taken", ttl)
		}
	}
	if figures, err := Measure(t.Context(), Options{TTL: time.Second}); err != nil || len(figures) != 0 {
		t.Errorf("of no library: %v, error %v", figures, err)
	}
}

// Every library has rules, and a pushing one something to be seen by.
func TestRules(t *testing.T) {
	const ttl = 3 * time.Second
	for _, l := range peers.All() {
		r, err := rulesOf(l, ttl)
		if err != nil {
			t.Error(err)
			continue
		}
		if seen := r.count != nil || r.bids > 0; r.told && r.poll == 0 || !r.told && (r.poll > 0) == seen {
			t.Errorf("%s on %s: polls every %v, is told %v, counting is %v, a bid takes %v", l.Name, l.Store, r.poll, r.told, r.count != nil, r.bids)
		}
		if r.handover == "" || r.why == "" || r.renew <= 0 || r.renew >= ttl {
			t.Errorf("%s on %s lacks something", l.Name, l.Store)
		}
		if r.earliest < ttl/2 || r.latest <= r.earliest || r.latest > 3*ttl {
			t.Errorf("%s on %s is taken over between %v and %v", l.Name, l.Store, r.earliest, r.latest)
		}
	}
	for _, unknown := range []peers.Library{{Name: "nobody's", Store: stores.Etcd}, ourLibrary(t, "another store")} {
		if _, err := rulesOf(unknown, ttl); err == nil {
			t.Errorf("there are rules for %s on %s", unknown.Name, unknown.Store)
		}
	}
}

func ourLibrary(t *testing.T, store string) peers.Library {
	for _, l := range peers.All() {
		if l.Ours() {
			l.Store = store
			return l
		}
	}
	t.Fatal("ours is not among all")
	return peers.Library{}
}

// The bounds, worked out by hand for the TTL of the comparison.
func TestBounds(t *testing.T) {
	const ttl = 3 * time.Second
	const ms = time.Millisecond
	for _, c := range []struct {
		name, store      string
		earliest, latest time.Duration
	}{
		{"elector", stores.Etcd, 2400 * ms, 3550 * ms},
		{"elector", stores.ZooKeeper, 2400 * ms, 3550 * ms},
		{"elector", stores.Consul, 2400 * ms, 3550 * ms},
		{"elector", stores.NATS, 2400 * ms, 3550 * ms},
		{"elector", stores.Kubernetes, 2400 * ms, 3550 * ms},
		{"elector", stores.Postgres, 2400 * ms, 4540 * ms},
		{"elector", stores.DynamoDB, 2400 * ms, 4540 * ms},
		{"elector", stores.MySQL, 2400 * ms, 4540 * ms},
		{"etcd", stores.Etcd, 1500 * ms, 3500 * ms},
		{"client-go", stores.Kubernetes, 1600 * ms, 4760 * ms},
		{"client-go/timeout+release", stores.Kubernetes, 1600 * ms, 4760 * ms},
		{"zk-lock/careful", stores.ZooKeeper, 2000 * ms, 5000 * ms},
		{"pglock/pgx", stores.Postgres, 2250 * ms, 6000 * ms},
		{"redislock", stores.Redis, 2000 * ms, 3100 * ms},
		{"rueidislock", stores.Redis, 1500 * ms, 3100 * ms},
		{"dynamolock", stores.DynamoDB, 2250 * ms, 4000 * ms},
	} {
		l := peers.Library{Name: c.name, Store: c.store}
		if c.name == "elector" {
			l = ourLibrary(t, c.store)
		}
		r, err := rulesOf(l, ttl)
		if err != nil || r.earliest != c.earliest || r.latest != c.latest {
			t.Errorf("%s on %s is taken over between %v and %v, error %v; want %v and %v", c.name, c.store, r.earliest, r.latest, err, c.earliest, c.latest)
		}
	}
}

func TestRounds(t *testing.T) {
	pushes, polls := rules{}, rules{poll: time.Second}
	long, short := Options{}, Options{Short: true}
	for _, c := range []struct{ is, want int }{
		{long.handovers(pushes), 20}, {long.handovers(polls), 5}, {long.takeovers(), 5}, {len(long.waiters()), 3},
		{short.handovers(pushes), 3}, {short.handovers(polls), 3}, {short.takeovers(), 1}, {len(short.waiters()), 2},
	} {
		if c.is != c.want {
			t.Errorf("%+v", c)
		}
	}
}

// A library that does not release gets rows that say so, and touches no store.
func TestKeeps(t *testing.T) {
	l := peers.Library{Name: "client-go", Store: stores.Kubernetes}
	r, err := rulesOf(l, 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	figures, err := Options{TTL: 3 * time.Second}.handover(t.Context(), l, r, nil, "run", 10)
	if err != nil || len(figures) != 2 {
		t.Fatalf("%d figures, error %v; want two units", len(figures), err)
	}
	for _, f := range figures {
		if len(f.Values) != 0 || f.Note == "" || f.Count != 10 || f.Subject != results.Handover {
			t.Errorf("%+v", f)
		}
	}
}

func TestLanes(t *testing.T) {
	one, two := peers.Library{Name: "one"}, peers.Library{Name: "two"}
	rows := []*row{
		{name: "a", library: one, when: alone, waiters: 1}, {name: "b", library: one, when: alone, waiters: 10},
		{name: "c", library: two, when: alone, waiters: 1}, {name: "d", library: two, when: alone, waiters: 10},
		{name: "e", library: one, when: withPolls, waiters: 1}, {name: "f", library: one, when: withPolls, waiters: 10},
		{name: "g", library: two, when: withPolls, waiters: 1},
		{name: "h", library: one, when: withKills}, {name: "i", library: two, when: withKills},
	}
	got := ""
	for _, lane := range lanes(rows) {
		for _, side := range lane {
			for _, r := range side {
				got += r.name
			}
			got += " "
		}
		got += "/ "
	}
	if want := "acbd / ef g / h i / "; got != want {
		t.Errorf("%s; want %s", got, want)
	}
}

func TestSpread(t *testing.T) {
	const n = 5
	for i := range n {
		for _, random := range []float64{0, 0.5, 0.999} {
			at := spread(time.Second, i, n, random)
			if at < time.Duration(i)*time.Second/n || at >= time.Duration(i+1)*time.Second/n {
				t.Errorf("instant %d at random %v is %v", i, random, at)
			}
		}
	}
	if at := spread(0, 3, n, 0.9); at != 0 {
		t.Errorf("without polling it is %v", at)
	}
}

func TestInstant(t *testing.T) {
	for _, c := range []struct{ earliest, interval, phase, want time.Duration }{
		{0, 10, 3, 3},
		{3, 10, 3, 3},
		{4, 10, 3, 13},
		{13, 10, 3, 13},
		{14, 10, 3, 23},
		{27, 10, 9, 29},
	} {
		if got := instant(c.earliest, c.interval, c.phase); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestMedian(t *testing.T) {
	calls := 0
	if d, err := median(50, func() error { calls++; return nil }); err != nil || d < 0 || calls != 50 {
		t.Errorf("%v of %d calls, error %v", d, calls, err)
	}
	broken := errors.New("broken")
	if _, err := median(50, func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func TestValue(t *testing.T) {
	text := []byte("# HELP watcher_total Total number.\n# TYPE watcher_total gauge\nslow_watcher_total 7\nwatcher_total 51\nzk_watch_count\t12\n")
	for name, want := range map[string]int{"watcher_total": 51, "zk_watch_count": 12} {
		if n, err := value(text, name); err != nil || n != want {
			t.Errorf("%s is %d, error %v; want %d", name, n, err, want)
		}
	}
	if _, err := value(text, "total"); err == nil {
		t.Error("what is not told has a value")
	}
}

func TestLine(t *testing.T) {
	f := results.Figure{What: afterResign, Count: 10, Unit: "ms", Values: []float64{3, 1, 2}}
	if got := line(f); got != "from resign to the successor knowing, waiters: 10: least 1.00, median 2.00, most 3.00 ms (3)" {
		t.Error(got)
	}
	f.Values, f.Note = nil, "cannot"
	if got := line(f); got != "from resign to the successor knowing, waiters: 10: not measured: cannot" {
		t.Error(got)
	}
}

func TestElectionName(t *testing.T) {
	l := peers.Library{Name: "client-go/timeout+release"}
	if got := electionName("handover", l, "t5x", 50); got != "handover_client_go_timeout_release_t5x_50" {
		t.Error(got)
	}
}

// within gives a test that waits for others a generous end.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("the test takes more than a minute"))
	t.Cleanup(cancel)
	return ctx
}
