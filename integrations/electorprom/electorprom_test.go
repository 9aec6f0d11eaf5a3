package electorprom_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/integrations/electorprom"
	"github.com/elector-go/elector/internal/fault"
	"github.com/elector-go/elector/partition"
)

// join makes a candidate whose lease is valid for 27 s and renewed every 9 s.
func join(t *testing.T, b backends.Backend, name string, trace *elector.Trace, o elector.Options) *elector.Elector {
	t.Helper()
	o.TTL, o.Trace, o.Logger = 30*time.Second, trace, slog.New(slog.DiscardHandler)
	e, err := elector.New(b, name, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func win(t *testing.T, e *elector.Elector) *elector.Lease {
	t.Helper()
	l, err := e.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// pass lets time pass in the bubble, and then all goroutines come to rest.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func registry(collectors ...prometheus.Collector) *prometheus.Registry {
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(collectors...)
	return r
}

func gather(t *testing.T, c prometheus.Collector) []*dto.MetricFamily {
	t.Helper()
	families, err := registry(c).Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// expect compares some of the metrics with the text format.
func expect(t *testing.T, when string, c prometheus.Collector, want string, names ...string) {
	t.Helper()
	if err := testutil.CollectAndCompare(c, strings.NewReader(want), names...); err != nil {
		t.Errorf("%s: %v", when, err)
	}
}

const gauges = `
# HELP elector_leading Whether this process leads the election.
# TYPE elector_leading gauge
elector_leading{backend="memory",election="invoices"} LEADING
# HELP elector_lease_remaining_seconds How long the lease stays valid without another renewal.
# TYPE elector_lease_remaining_seconds gauge
elector_lease_remaining_seconds{backend="memory",election="invoices"} LEFT
`

// The life of a lease on a store that takes a second for each write, until the
// store fails.
func TestLifeOfALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := fault.Wrap(memory.NewStore().Handle())
		s.Always(fault.Slow(time.Second))
		metrics := electorprom.New()
		shows := func(when string, leading, left string) {
			t.Helper()
			expect(t, when, metrics, strings.NewReplacer("LEADING", leading, "LEFT", left).Replace(gauges), "elector_leading", "elector_lease_remaining_seconds")
		}
		e := join(t, s, "invoices", metrics.Trace(), elector.Options{})
		l := win(t, e)
		shows("after the acquisition", "1", "26")
		pass(10 * time.Second) // the renewal is sent after 8 s
		shows("after a renewal", "1", "25")
		pass(7 * time.Second)
		shows("before the next", "1", "18")
		expect(t, "after a renewal", metrics, `
# HELP elector_renewal_margin What was left of the lease when a renewal was acknowledged, as a share of the whole.
# TYPE elector_renewal_margin histogram
elector_renewal_margin_bucket{backend="memory",election="invoices",le="0.05"} 0
elector_renewal_margin_bucket{backend="memory",election="invoices",le="0.1"} 0
elector_renewal_margin_bucket{backend="memory",election="invoices",le="0.25"} 0
elector_renewal_margin_bucket{backend="memory",election="invoices",le="0.4"} 0
elector_renewal_margin_bucket{backend="memory",election="invoices",le="0.5"} 0
elector_renewal_margin_bucket{backend="memory",election="invoices",le="0.55"} 0
elector_renewal_margin_bucket{backend="memory",election="invoices",le="0.6"} 0
elector_renewal_margin_bucket{backend="memory",election="invoices",le="0.65"} 1
elector_renewal_margin_bucket{backend="memory",election="invoices",le="0.7"} 1
elector_renewal_margin_bucket{backend="memory",election="invoices",le="0.8"} 1
elector_renewal_margin_bucket{backend="memory",election="invoices",le="0.9"} 1
elector_renewal_margin_bucket{backend="memory",election="invoices",le="+Inf"} 1
elector_renewal_margin_sum{backend="memory",election="invoices"} 0.6296296296296297
elector_renewal_margin_count{backend="memory",election="invoices"} 1
`, "elector_renewal_margin")
		s.Always(fault.Hang)
		<-l.Context().Done()
		shows("when the lease is lost", "0", "0")
		pass(time.Minute)
		expect(t, "at the end", metrics, transitions(1, 1, 0), "elector_transitions_total")
	})
}

func transitions(acquired, lost, unhealthy int) string {
	r := strings.NewReplacer("ACQUIRED", strconv.Itoa(acquired), "LOST", strconv.Itoa(lost), "UNHEALTHY", strconv.Itoa(unhealthy))
	return r.Replace(`
# HELP elector_transitions_total Leases that this process acquired, and their ends, by cause.
# TYPE elector_transitions_total counter
elector_transitions_total{backend="memory",cause="acquired",election="invoices"} ACQUIRED
elector_transitions_total{backend="memory",cause="deposed",election="invoices"} 0
elector_transitions_total{backend="memory",cause="lost",election="invoices"} LOST
elector_transitions_total{backend="memory",cause="resigned",election="invoices"} 0
elector_transitions_total{backend="memory",cause="unhealthy",election="invoices"} UNHEALTHY
`)
}

func TestUnhealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sick atomic.Bool
		metrics := electorprom.New()
		e := join(t, memory.New(), "invoices", metrics.Trace(), elector.Options{Healthy: func(context.Context) error {
			if sick.Load() {
				return errors.New("the disk is full")
			}
			return nil
		}})
		win(t, e)
		sick.Store(true)
		pass(time.Minute)
		expect(t, "at the end", metrics, transitions(1, 0, 1), "elector_transitions_total")
	})
}

// The operations and results of requests.
func TestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := fault.Wrap(memory.NewStore().Handle())
		metrics := electorprom.New()
		win(t, join(t, s, "invoices", metrics.Trace(), elector.Options{}))
		s.Always(fault.Hang)
		pass(time.Minute)
		metrics.Trace().Request(t.Context(), elector.RequestInfo{Store: "memory://", Op: "watch", Result: "error", Duration: time.Hour})
		metrics.Trace().Request(t.Context(), elector.RequestInfo{Store: "memory://", Op: "swap", Result: "conflict"})
		counts := map[string]uint64{}
		for _, family := range gather(t, metrics) {
			if family.GetName() != "elector_request_duration_seconds" {
				continue
			}
			for _, m := range family.GetMetric() {
				key := ""
				for _, label := range m.GetLabel() {
					key += " " + label.GetValue()
				}
				counts[key[1:]] = m.GetHistogram().GetSampleCount()
			}
		}
		for key, want := range map[string]uint64{"memory load ok": 1, "memory swap ok": 1, "memory swap conflict": 1} {
			if counts[key] != want {
				t.Errorf("%s: %d requests, want %d", key, counts[key], want)
			}
		}
		if counts["memory swap error"] == 0 || counts["memory load error"] == 0 || len(counts) != 5 {
			t.Errorf("the requests are %v", counts)
		}
	})
}

// One collector serves many elections, with the number of series that the
// documentation names.
func TestManyElections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := electorprom.New()
		b, trace := memory.New(), metrics.Trace()
		series := func() (n int) {
			for _, family := range gather(t, metrics) {
				for _, m := range family.GetMetric() {
					n++
					if h := m.GetHistogram(); h != nil {
						n += len(h.GetBucket()) + 2 // +Inf, sum and count, of which one was counted
					}
				}
			}
			return n
		}
		win(t, join(t, b, "invoices", trace, elector.Options{}))
		one := series()
		for i := range 10 {
			win(t, join(t, b, "invoices-"+strconv.Itoa(i), trace, elector.Options{}))
		}
		if each := (series() - one) / 10; each != 21 {
			t.Errorf("an election has %d series", each)
		}
		before := series()
		for _, op := range []string{"load", "swap", "healthy", "watch", "watch-presence"} {
			for _, result := range []string{"ok", "conflict", "cancelled", "error"} {
				trace.Request(t.Context(), elector.RequestInfo{Store: "etcd://host", Op: op, Result: result})
			}
		}
		if n := series() - before; n != 168 {
			t.Errorf("a kind of store has %d series", n)
		}
		before = series()
		metrics.GroupTrace().Planned(t.Context(), partition.PlanInfo{Group: "orders", Store: "memory://"})
		if n := series() - before; n != 34 {
			t.Errorf("a group has %d series", n)
		}
		problems, err := testutil.GatherAndLint(registry(metrics))
		if err != nil || len(problems) > 0 {
			t.Errorf("the names are not good: %v, %v", problems, err)
		}
	})
}

func TestKubernetes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := fault.Wrap(memory.NewStore().Handle())
		metrics := electorprom.New()
		win(t, join(t, s, "invoices", metrics.Trace(), elector.Options{}))
		want := `
# HELP leader_election_master_status Whether this process leads the election, under Kubernetes' name.
# TYPE leader_election_master_status gauge
leader_election_master_status{name="invoices"} LEADING
# HELP leader_election_slowpath_total Renewals that failed and read the record, under Kubernetes' name.
# TYPE leader_election_slowpath_total counter
leader_election_slowpath_total{name="invoices"} SLOW
`
		expect(t, "while it leads", metrics.Kubernetes(), strings.NewReplacer("LEADING", "1", "SLOW", "0").Replace(want))
		s.Always(fault.Hang)
		pass(14 * time.Second) // 9 s until the renewal, which has 4.5 s
		expect(t, "after a renewal without an answer", metrics.Kubernetes(), strings.NewReplacer("LEADING", "1", "SLOW", "1").Replace(want))
		registry(metrics, metrics.Kubernetes())
	})
}

func TestFence(t *testing.T) {
	metrics := electorprom.New()
	f := elector.Fence{Trace: metrics.Trace()}
	for _, token := range []elector.Token{2, 1, 3} {
		f.Admit(t.Context(), "ledger", token)
	}
	expect(t, "after one refusal", metrics, `
# HELP elector_fence_refused_total Writes with a stale fencing token that were refused.
# TYPE elector_fence_refused_total counter
elector_fence_refused_total 1
`)
}

// What metrics cost a renewal, counted; and Check, for which they cost nothing.
func TestAllocations(t *testing.T) {
	renewal := func(trace *elector.Trace) (each float64) {
		synctest.Test(t, func(t *testing.T) {
			l := win(t, join(t, memory.New(), "invoices", trace, elector.Options{}))
			pass(9 * time.Second)
			each = testing.AllocsPerRun(100, func() { pass(9 * time.Second) })
			if n := testing.AllocsPerRun(100, func() { l.Check() }); n != 0 {
				t.Errorf("Check allocates %v times", n)
			}
		})
		return each
	}
	trace := electorprom.New().Trace()
	without, with := renewal(nil), renewal(trace)
	t.Logf("a renewal allocates %v times, and %v times with metrics", without, with)
	if with >= without+8 {
		t.Errorf("metrics cost a renewal %v allocations, not fewer than 8", with-without)
	}
	if n := testing.AllocsPerRun(100, func() {
		trace.Request(t.Context(), elector.RequestInfo{Election: "invoices", Store: "memory://", Op: "swap", Result: "ok", Duration: time.Second})
		trace.Renewed(t.Context(), elector.LeaseInfo{Election: "invoices", Store: "memory://", Validity: 27 * time.Second, Margin: 18 * time.Second})
	}); n != 0 {
		t.Errorf("the callbacks of a renewal allocate %v times", n)
	}
}

// An oblivious store may lose acknowledged writes.
type oblivious struct{ *memory.Backend }

func (o oblivious) Describe() backends.Description {
	d := o.Backend.Describe()
	d.Lossy = "it forgets"
	return d
}

// elector_lossy is there while this process leads on a store that may lose writes.
func TestLossy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := electorprom.New()
		lossy := func(when, want string) {
			t.Helper()
			expect(t, when, metrics, want, "elector_lossy")
		}
		other := win(t, join(t, memory.New(), "ledger", metrics.Trace(), elector.Options{}))
		l := win(t, join(t, oblivious{memory.New()}, "invoices", metrics.Trace(), elector.Options{}))
		lossy("while it leads", `
# HELP elector_lossy Whether another process may lead at the same time, because the store may lose acknowledged writes.
# TYPE elector_lossy gauge
elector_lossy{backend="memory",election="invoices"} 1
`)
		for _, l := range []*elector.Lease{l, other} {
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		lossy("afterwards", "")
	})
}

// elector_refused is there while the store refuses what a campaign tries.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := electorprom.New()
		faults, b := fault.Wrap(memory.New())
		e := join(t, b, "invoices", metrics.Trace(), elector.Options{})
		if err := win(t, e).Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		refused := func(when, want string) {
			t.Helper()
			expect(t, when, metrics, want, "elector_refused")
		}
		const yes = `
# HELP elector_refused Whether the store refuses what a campaign of this process tries, until somebody changes something.
# TYPE elector_refused gauge
elector_refused{backend="memory",election="invoices"} 1
`
		refused("before", "")
		faults.Always(fault.Fails(backends.ErrDenied))
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if _, err := e.Campaign(ctx); !errors.Is(err, backends.ErrDenied) {
			t.Fatal(err)
		}
		synctest.Wait()
		refused("after the campaign", "")
		won := make(chan error, 1)
		go func() {
			_, err := e.Campaign(t.Context())
			won <- err
		}()
		time.Sleep(time.Minute)
		refused("meanwhile", yes)
		faults.Always(nil)
		if err := <-won; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		refused("once it leads", "")
	})
}
