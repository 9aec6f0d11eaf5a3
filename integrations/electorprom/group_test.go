package electorprom_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/integrations/electorprom"
	"github.com/elector-go/elector/internal/fault"
	"github.com/elector-go/elector/partition"
)

// member starts a member of a group of 4 partitions. Its workers return after a second when
// they are told to stop.
func member(t *testing.T, b backends.Backend, id string, trace *partition.Trace, failing *atomic.Bool) (stop func()) {
	t.Helper()
	g, err := partition.New(b, "orders", &partition.Options{Partitions: 4, Trace: trace, Elector: elector.Options{ID: id, TTL: 30 * time.Second, Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- g.Run(ctx, func(ctx context.Context, l *partition.Lease) error {
			if l.Partition() == 0 && failing.CompareAndSwap(true, false) {
				return errors.New("no ledger")
			}
			<-ctx.Done()
			time.Sleep(time.Second)
			return nil
		})
	}()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		g.Close()
	}
}

// The metrics of a group: two members of two processes share it, and one is cut off.
func TestGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, a, b := memory.NewStore(), electorprom.New(), electorprom.New()
		var failing, fine atomic.Bool
		failing.Store(true)
		stopA := member(t, store.Handle(), "a", a.GroupTrace(), &failing)
		pass(time.Minute)
		shows := func(when string, m *electorprom.Metrics, want map[string]float64) {
			t.Helper()
			got := groupValues(t, m)
			for name, value := range want {
				if got[name] != value {
					t.Errorf("%s: %s is %v, want %v", when, name, got[name], value)
				}
			}
		}
		shows("alone", a, map[string]float64{
			"elector_group_partitions": 4, "elector_group_owned": 4, "elector_group_wanted": 4, "elector_group_transitions_total acquired": 4,
			"elector_group_unowned_seconds": 4, "elector_group_drain_duration_seconds": 0, "elector_group_worker_failures_total": 1,
		})
		broken, cut := fault.Wrap(store.Handle())
		stopB := member(t, cut, "b", b.GroupTrace(), &fine)
		pass(time.Minute)
		shows("once it has handed over", a, map[string]float64{
			"elector_group_owned": 2, "elector_group_wanted": 2, "elector_group_transitions_total returned": 2,
			"elector_group_drain_duration_seconds": 2, "elector_group_drain_duration_seconds sum": 2,
		})
		shows("the second", b, map[string]float64{"elector_group_partitions": 4, "elector_group_owned": 2, "elector_group_wanted": 2, "elector_group_transitions_total acquired": 2})
		broken.Always(fault.Hang)
		broken.CutWatches(backends.ErrUnavailable)
		pass(time.Minute)
		shows("cut off", b, map[string]float64{"elector_group_owned": 0, "elector_group_wanted": 0, "elector_group_transitions_total lost": 2, "elector_group_drain_duration_seconds": 0})
		shows("alone again", a, map[string]float64{"elector_group_owned": 4, "elector_group_wanted": 4, "elector_group_transitions_total acquired": 6})
		broken.Always(nil)
		broken.CutWatches(nil)
		stopB()
		stopA()
		shows("at the end", a, map[string]float64{"elector_group_partitions": 4, "elector_group_owned": 0, "elector_group_wanted": 0})
		problems, err := testutil.GatherAndLint(registry(a))
		if err != nil || len(problems) > 0 {
			t.Errorf("the names are not good: %v, %v", problems, err)
		}
	})
}

// groupValues returns the values of the metrics of groups, with their causes. Those of a
// histogram are its count and sum.
func groupValues(t *testing.T, m *electorprom.Metrics) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for _, family := range gather(t, m) {
		for _, metric := range family.GetMetric() {
			name, labels := family.GetName(), map[string]string{}
			for _, l := range metric.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["group"] == "" {
				continue
			}
			if labels["group"] != "orders" || labels["backend"] != "memory" {
				t.Errorf("%s has the labels %v", name, labels)
			}
			if cause := labels["cause"]; cause != "" {
				name += " " + cause
			}
			if h := metric.GetHistogram(); h != nil {
				all[name], all[name+" sum"] = float64(h.GetSampleCount()), h.GetSampleSum()
				continue
			}
			all[name] = value(metric)
		}
	}
	return all
}

func value(m *dto.Metric) float64 { return m.GetGauge().GetValue() + m.GetCounter().GetValue() }
