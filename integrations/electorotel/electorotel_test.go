package electorotel_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/integrations/electorotel"
	"github.com/elector-go/elector/internal/fault"
)

// A process has the SDK, with what it would export.
type process struct {
	*testing.T
	trace   *elector.Trace
	reader  *metric.ManualReader
	spans   *tracetest.SpanRecorder
	tracers *sdktrace.TracerProvider
}

func start(t *testing.T) *process {
	t.Helper()
	p := &process{T: t, reader: metric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	p.tracers = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(p.spans))
	var err error
	p.trace, err = electorotel.New(metric.NewMeterProvider(metric.WithReader(p.reader)), p.tracers)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// join makes a candidate whose lease is valid for 27 s and renewed every 9 s.
func join(t *testing.T, b backends.Backend, trace *elector.Trace) *elector.Elector {
	t.Helper()
	e, err := elector.New(b, "invoices", &elector.Options{TTL: 30 * time.Second, Trace: trace, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// pass lets time pass in the bubble, and then all goroutines come to rest.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// metrics returns all values with their names, units and attributes. The value of a
// histogram is its count and sum.
func (p *process) metrics() map[string]string {
	p.Helper()
	var read metricdata.ResourceMetrics
	if err := p.reader.Collect(p.Context(), &read); err != nil {
		p.Fatal(err)
	}
	all := map[string]string{}
	add := func(m metricdata.Metrics, attributes attribute.Set, value any) {
		all[fmt.Sprintf("%s (%s) %s", m.Name, m.Unit, attributes.Encoded(attribute.DefaultEncoder()))] = fmt.Sprint(value)
	}
	for _, scope := range read.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Gauge[int64]:
				for _, d := range data.DataPoints {
					add(m, d.Attributes, d.Value)
				}
			case metricdata.Gauge[float64]:
				for _, d := range data.DataPoints {
					add(m, d.Attributes, d.Value)
				}
			case metricdata.Sum[int64]:
				for _, d := range data.DataPoints {
					add(m, d.Attributes, d.Value)
				}
			case metricdata.Histogram[float64]:
				for _, d := range data.DataPoints {
					add(m, d.Attributes, fmt.Sprintf("%d %.3f", d.Count, d.Sum))
				}
			}
		}
	}
	return all
}

func (p *process) expect(when string, want map[string]string) {
	p.Helper()
	if got := p.metrics(); !maps.Equal(got, want) {
		for _, k := range slices.Sorted(maps.Keys(got)) {
			p.Logf("got %s: %s", k, got[k])
		}
		p.Errorf("%s: the metrics are not %v", when, want)
	}
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		s, _ := fault.Wrap(memory.NewStore().Handle())
		s.Always(fault.Slow(time.Second))
		l, err := join(t, s, p.trace).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Second) // the renewal is sent after 8 s
		want := map[string]string{
			"elector.fence.refused ({write}) ":                                                    "0",
			"elector.lease.remaining (s) backend=memory,election=invoices":                        "25",
			"elector.leading ({leader}) backend=memory,election=invoices":                         "1",
			"elector.renewal.margin (1) backend=memory,election=invoices":                         "1 0.630",
			"elector.request.duration (s) backend=memory,operation=load,result=ok":                "1 0.000",
			"elector.request.duration (s) backend=memory,operation=swap,result=ok":                "2 2.000",
			"elector.transitions ({transition}) backend=memory,cause=acquired,election=invoices":  "1",
			"elector.transitions ({transition}) backend=memory,cause=deposed,election=invoices":   "0",
			"elector.transitions ({transition}) backend=memory,cause=lost,election=invoices":      "0",
			"elector.transitions ({transition}) backend=memory,cause=resigned,election=invoices":  "0",
			"elector.transitions ({transition}) backend=memory,cause=unhealthy,election=invoices": "0",
		}
		p.expect("while it leads", want)
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		f := elector.Fence{Trace: p.trace}
		f.Admit(t.Context(), "ledger", 2)
		f.Admit(t.Context(), "ledger", 1)
		maps.Copy(want, map[string]string{
			"elector.fence.refused ({write}) ":                                                   "1",
			"elector.lease.remaining (s) backend=memory,election=invoices":                       "0",
			"elector.leading ({leader}) backend=memory,election=invoices":                        "0",
			"elector.request.duration (s) backend=memory,operation=swap,result=ok":               "3 3.000",
			"elector.transitions ({transition}) backend=memory,cause=resigned,election=invoices": "1",
		})
		p.expect("after it has resigned", want)
		refused := elector.CampaignInfo{Election: "invoices", Store: "memory://", Err: backends.ErrDenied}
		p.trace.Waiting(t.Context(), refused)
		want["elector.refused ({campaign}) backend=memory,election=invoices"] = "1"
		p.expect("while the store refuses", want)
		p.trace.Campaigned(t.Context(), refused)
		delete(want, "elector.refused ({campaign}) backend=memory,election=invoices")
		p.expect("after the campaign", want)
	})
}

// Spans of a lease on a store that takes a second for each write, and of requests
// while the store is down. The renewals are traces of their own.
func TestSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		s, _ := fault.Wrap(memory.NewStore().Handle())
		s.Always(fault.Slow(time.Second))
		ctx, parent := p.tracers.Tracer("").Start(t.Context(), "main")
		l, err := join(t, s, p.trace).Campaign(ctx)
		if err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Second)
		s.Always(fault.Hang)
		pass(15 * time.Second) // the next renewal hangs for 4.5 s, and the read after it
		s.Always(fault.Slow(time.Second))
		if err := l.Release(ctx); err != nil {
			t.Fatal(err)
		}
		type span struct {
			took   time.Duration
			failed bool
			child  bool // otherwise with a link
		}
		want := map[string]span{
			"elector.campaign": {time.Second, false, true},
			"elector.renew":    {time.Second, false, false},
			"elector.swap":     {4500 * time.Millisecond, true, false},
			"elector.load":     {4500 * time.Millisecond, true, false},
			"elector.release":  {time.Second, false, true},
		}
		got := map[string]span{}
		for _, s := range p.spans.Ended() {
			if attributes := attribute.NewSet(s.Attributes()...); attributes.Encoded(attribute.DefaultEncoder()) != "backend=memory,election=invoices" {
				t.Errorf("%s has the attributes %v", s.Name(), s.Attributes())
			}
			child := s.Parent().SpanID() == parent.SpanContext().SpanID()
			linked := len(s.Links()) == 1 && s.Links()[0].SpanContext.Equal(parent.SpanContext()) && s.SpanContext().TraceID() != parent.SpanContext().TraceID()
			if child == linked {
				t.Errorf("%s: child of the caller's span is %v, linked to it is %v", s.Name(), child, linked)
			}
			if _, before := got[s.Name()]; !before {
				got[s.Name()] = span{s.EndTime().Sub(s.StartTime()), s.Status().Code == codes.Error, child}
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("the spans are %v, want %v", got, want)
		}
	})
}

// A campaign that fails has a span with the error, one that is told to stop has none
// that failed.
func TestCampaignSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		status := func(campaign func()) sdktrace.Status {
			t.Helper()
			before := len(p.spans.Ended())
			campaign()
			spans := p.spans.Ended()[before:]
			last := spans[len(spans)-1]
			if last.Name() != "elector.campaign" {
				t.Errorf("the last span is %s", last.Name())
			}
			return last.Status()
		}
		m := memory.NewStore()
		if _, err := join(t, m.Handle(), nil).Campaign(t.Context()); err != nil {
			t.Fatal(err)
		}
		waiting := join(t, m.Handle(), p.trace)
		if s := status(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			waiting.Campaign(ctx)
		}); s.Code != codes.Unset {
			t.Errorf("the span of a campaign that was told to stop is %+v", s)
		}
		if s := status(func() { waiting.TryCampaign(t.Context()) }); s.Code != codes.Unset {
			t.Errorf("the span of a try while another process leads is %+v", s)
		}
		denied := join(t, closed{m.Handle()}, p.trace)
		if s := status(func() { denied.Campaign(t.Context()) }); s.Code != codes.Error || !strings.Contains(s.Description, "denied") {
			t.Errorf("the span of a campaign that was denied is %+v", s)
		}
	})
}

// A closed store denies everything.
type closed struct{ backends.Backend }

func (closed) Load(context.Context, string) (backends.Record, error) {
	return backends.Record{}, fmt.Errorf("%w: the role has no rights", elector.ErrDenied)
}

// What metrics and spans cost a renewal, counted; and Check, for which they cost
// nothing.
func TestAllocations(t *testing.T) {
	renewal := func(trace *elector.Trace) (each float64) {
		synctest.Test(t, func(t *testing.T) {
			l, err := join(t, memory.New(), trace).Campaign(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			pass(9 * time.Second)
			each = testing.AllocsPerRun(100, func() { pass(9 * time.Second) })
			if n := testing.AllocsPerRun(100, func() { l.Check() }); n != 0 {
				t.Errorf("Check allocates %v times", n)
			}
		})
		return each
	}
	without, with := renewal(nil), renewal(start(t).trace)
	off, err := electorotel.New(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("a renewal allocates %v times, %v without providers, and %v with metrics and a recorded span", without, renewal(off), with)
	if with >= without+40 {
		t.Errorf("metrics and a span cost a renewal %v allocations, not fewer than 40", with-without)
	}
}

// The number of sets of attributes that the documentation names.
func TestCardinality(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		campaign := func(name string) {
			t.Helper()
			e, err := elector.New(memory.New(), name, &elector.Options{TTL: 30 * time.Second, Trace: p.trace, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { e.Close() })
			if _, err := e.Campaign(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		campaign("invoices")
		pass(time.Minute)
		one := len(p.metrics())
		campaign("payments")
		pass(time.Minute)
		if n := len(p.metrics()) - one; n != 8 {
			t.Errorf("an election has %d sets of attributes", n)
		}
		before := len(p.metrics())
		for _, op := range []string{"load", "swap", "healthy", "watch", "watch-presence"} {
			for _, result := range []string{"ok", "conflict", "cancelled", "error"} {
				p.trace.Request(t.Context(), elector.RequestInfo{Store: "etcd://host", Op: op, Result: result})
			}
		}
		if n := len(p.metrics()) - before; n != 12 {
			t.Errorf("a kind of store has %d sets of attributes", n)
		}
	})
}
