package metrics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/integrations/electorotel"
	"github.com/elector-go/elector/integrations/electorprom"
	"github.com/elector-go/elector/partition"
)

// OpenTelemetry's Prometheus exporter shows the metrics of electorotel as electorprom
// shows its own: the same names, types, labels and buckets. So the alert rules and the
// dashboard fit both.
func TestNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		direct, exported := prometheus.NewRegistry(), prometheus.NewRegistry()
		metrics := electorprom.New()
		direct.MustRegister(metrics)
		reader, err := exporter.New(exporter.WithRegisterer(exported), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
		if err != nil {
			t.Fatal(err)
		}
		provider := metric.NewMeterProvider(metric.WithReader(reader))
		trace, err := electorotel.New(provider, nil)
		if err != nil {
			t.Fatal(err)
		}
		var sick atomic.Bool
		e, err := elector.New(memory.New(), "invoices", &elector.Options{
			Trace: elector.MultiTrace(metrics.Trace(), trace),
			Healthy: func(context.Context) error {
				if sick.Load() {
					return errors.New("the disk is full")
				}
				return nil
			},
			Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		if _, err := e.Campaign(t.Context()); err != nil {
			t.Fatal(err)
		}
		groups, err := electorotel.NewGroup(provider)
		if err != nil {
			t.Fatal(err)
		}
		both := partition.MultiTrace(metrics.GroupTrace(), groups)
		store := memory.NewStore()
		defer member(t, store.Handle(), "a", time.Minute, both)()
		time.Sleep(time.Minute)
		defer member(t, store.Handle(), "b", time.Minute, both)()
		time.Sleep(time.Minute)
		sick.Store(true)
		time.Sleep(time.Minute)
		a, b := shapes(t, direct), shapes(t, exported)
		if len(a) == 0 || !maps.Equal(a, b) {
			t.Errorf("electorprom: %v\nelectorotel: %v", a, b)
		}
	})
}

// shapes returns all that names a series, with what counted of it.
func shapes(t *testing.T, from prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			slices.Sort(labels)
			name := f.GetName() + " " + f.GetType().String() + " " + strings.Join(labels, ",")
			all[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			for _, b := range m.GetHistogram().GetBucket() {
				all[name+" "+time.Duration(b.GetUpperBound()*float64(time.Second)).String()] = float64(b.GetCumulativeCount())
			}
		}
	}
	return all
}

// The SDK has a place for the causes of 400 elections, and needs a higher limit for
// more, as the documentation of electorotel says.
func TestLimit(t *testing.T) {
	for _, c := range []struct {
		elections int
		options   []metric.Option
		overflows bool
	}{
		{399, nil, false},
		{401, nil, true},
		{401, []metric.Option{metric.WithCardinalityLimit(5*401 + 1)}, false},
	} {
		reader := metric.NewManualReader()
		trace, err := electorotel.New(metric.NewMeterProvider(append(c.options, metric.WithReader(reader))...), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.elections {
			trace.Campaigning(t.Context(), elector.CampaignInfo{Election: strconv.Itoa(i), Store: "memory://"})
		}
		var read metricdata.ResourceMetrics
		if err := reader.Collect(t.Context(), &read); err != nil {
			t.Fatal(err)
		}
		if overflows := strings.Contains(fmt.Sprint(read), "otel.metric.overflow"); overflows != c.overflows {
			t.Errorf("%d elections, %d options: dropped attributes: %v", c.elections, len(c.options), overflows)
		}
	}
}
