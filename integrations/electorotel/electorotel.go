// Package electorotel reports elections to OpenTelemetry, by metrics and spans, and groups
// of package partition, by metrics. One Trace serves all elections of a process, and
// another one all groups:
//
//	trace, err := electorotel.New(nil, nil)
//	...
//	e, err := elector.Open(ctx, url, "invoices", &elector.Options{Trace: trace})
//
//	groups, err := electorotel.NewGroup(nil)
//	...
//	g, err := partition.Join(ctx, url, "orders", &partition.Options{Partitions: 64, Trace: groups})
//
// If you have a Trace of your own, combine the two with [elector.MultiTrace] or
// [partition.MultiTrace]. The same Trace of elections in an [elector.Fence] counts the writes that the Fence refuses.
//
// # Metrics
//
// The attribute backend is the scheme of the store's URL.
//
//   - elector.leading ({leader}), with election and backend, is 1 while this process leads and 0
//     otherwise, from the first campaign on.
//   - elector.lease.remaining (s), with election and backend, is how long the lease
//     stays valid without another renewal, 0 without a lease.
//   - elector.renewal.margin (1), with election and backend, is a histogram of what was
//     left of the lease when a renewal was acknowledged, as a share of the whole, 0
//     to 1. With the default options it is 0.67 on a fast store and 0.5 if the store
//     takes RequestTimeout to answer. At 0 the lease is lost. It shrinks before any
//     renewal fails.
//   - elector.transitions ({transition}), with election, backend and cause, counts leases that this
//     process acquired, and their ends. cause is acquired, resigned, unhealthy
//     (Options.Healthy failed), lost, or deposed (see [elector.ErrDeposed]).
//   - elector.request.duration (s), with backend, operation and result, is a
//     histogram of the requests to the store. operation is load, swap, or healthy for
//     Options.Healthy; result is ok, conflict (another process wrote first),
//     cancelled (by the caller), or error. All elections share it.
//   - elector.lossy ({leader}), with election and backend, is 1 while this process leads on a
//     store that may lose acknowledged writes: another process may lead at the same time.
//     Other elections do not have it.
//   - elector.refused ({campaign}), with election and backend, is 1 while the store refuses
//     what a campaign of this process tries, until somebody changes something: a right, a
//     set-up, a foreign record. The campaign tries again. Other elections do not have it.
//   - elector.fence.refused ({write}) counts the writes that Fences refused. It does
//     not count what a guard in a store or package fencesql refuses.
//
// Of groups, with group and backend:
//
//   - elector.group.partitions ({partition}) is how many partitions the group has, as each
//     of its processes knows.
//   - elector.group.owned ({partition}) is how many of them this process owns. If the sum
//     over all processes is lower than elector.group.partitions, the rest has no owner.
//   - elector.group.wanted ({partition}) is how many this process should own by the plan.
//   - elector.group.transitions ({transition}), with cause too, counts partitions that this
//     process acquired, and the ends of their leases. cause is acquired, returned (given
//     up when the worker had returned), timeout (given up although the worker has not
//     returned within ReleaseTimeout), or lost.
//   - elector.group.unowned (s) is a histogram of how long a partition that this process
//     acquired had no owner: see [partition.LeaseInfo.Unowned] for what it has and has not.
//   - elector.group.drain.duration (s) is a histogram of how long it took to give a
//     partition up, from when its worker was told to stop.
//   - elector.group.worker.failures ({failure}) counts workers that failed, panicked or
//     returned although their partition was still this process's.
//
// The seats of a group are elections. Set Options.Elector.Trace to a Trace of New for their
// renewals: elections with the names of the group and ".seat." and a number.
//
// OpenTelemetry's Prometheus exporter gives them the names of package electorprom, and
// the alert rules and the dashboard beside that package fit both.
//
// # Cardinality
//
// No attribute has a candidate's ID, a token, the number of a partition, or the name of a
// fenced resource. In each process an election has 8 sets of attributes, 5 of them in
// elector.transitions, a group has 10, and a kind of store has one for each operation and
// result that occurred, at most 16. The SDK drops attributes beyond 2,000 sets of an
// instrument: a process with more than 400 elections must raise its limit, by
// metric.WithCardinalityLimit.
//
// # Spans
//
// elector.campaign and elector.release are children of the span in the context that
// was given to Campaign or Run. elector.renew, and elector.load, elector.swap and
// elector.healthy for requests that failed, are traces of their own with a link to
// that span, because a leader renews for as long as it lives. All have the attributes
// election and backend. Each span is made when it ends, on the goroutine that renews:
// export spans in batches (WithBatcher), because an exporter that is called at once
// (WithSyncer) makes renewals wait for the network.
//
// # Cost
//
// With metrics and a recorded span a renewal allocates fewer than 40 times more than
// without. [elector.Lease.Check] allocates nothing in either case.
package electorotel

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

const scope = "github.com/elector-go/elector/integrations/electorotel"

// New returns a Trace that reports to the two providers; nil means OpenTelemetry's
// global one. Call New once: it registers a callback for the gauges, which stays. It
// returns the errors of the MeterProvider.
func New(meters metric.MeterProvider, tracers trace.TracerProvider) (*elector.Trace, error) {
	if meters == nil {
		meters = otel.GetMeterProvider()
	}
	if tracers == nil {
		tracers = otel.GetTracerProvider()
	}
	r := &reporter{tracer: tracers.Tracer(scope), leases: map[key][]*elector.Lease{}, barred: map[key]bool{}}
	if err := r.instrument(meters.Meter(scope)); err != nil {
		return nil, err
	}
	return &elector.Trace{
		Campaigning: r.campaigning,
		Waiting:     r.waiting,
		Campaigned:  r.campaigned,
		Request:     r.request,
		Acquired:    r.acquired,
		Renewed:     r.renewed,
		Ended:       r.ended,
		Released:    r.released,
		Refused:     func(ctx context.Context, _ *elector.StaleError) { r.refused.Add(ctx, 1) },
	}, nil
}

// A reporter has the state behind a Trace.
type reporter struct {
	tracer      trace.Tracer
	margin      metric.Float64Histogram
	transitions metric.Int64Counter
	requests    metric.Float64Histogram
	refused     metric.Int64Counter

	mutex  sync.Mutex
	leases map[key][]*elector.Lease // of all elections, also without a lease
	barred map[key]bool             // campaigns that the store refuses
}

// A key names an election. A process with several candidates in one election has
// several leases on it, one after the other.
type key struct{ election, backend string }

func (k key) attributes(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributes(append(more, attribute.String("election", k.election), attribute.String("backend", k.backend))...)
}

func (r *reporter) instrument(meter metric.Meter) error {
	var errs [8]error
	var leading, lossy, barred metric.Int64ObservableGauge
	var remaining metric.Float64ObservableGauge
	leading, errs[0] = meter.Int64ObservableGauge("elector.leading", metric.WithUnit("{leader}"),
		metric.WithDescription("Whether this process leads the election."))
	remaining, errs[1] = meter.Float64ObservableGauge("elector.lease.remaining", metric.WithUnit("s"),
		metric.WithDescription("How long the lease stays valid without another renewal."))
	r.margin, errs[2] = meter.Float64Histogram("elector.renewal.margin", metric.WithUnit("1"),
		metric.WithDescription("What was left of the lease when a renewal was acknowledged, as a share of the whole."),
		metric.WithExplicitBucketBoundaries(.05, .1, .25, .4, .5, .55, .6, .65, .7, .8, .9))
	r.transitions, errs[3] = meter.Int64Counter("elector.transitions", metric.WithUnit("{transition}"),
		metric.WithDescription("Leases that this process acquired, and their ends, by cause."))
	r.requests, errs[4] = meter.Float64Histogram("elector.request.duration", metric.WithUnit("s"),
		metric.WithDescription("How long requests to the store took."),
		metric.WithExplicitBucketBoundaries(.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10))
	r.refused, errs[5] = meter.Int64Counter("elector.fence.refused", metric.WithUnit("{write}"),
		metric.WithDescription("Writes with a stale fencing token that were refused."))
	lossy, errs[6] = meter.Int64ObservableGauge("elector.lossy", metric.WithUnit("{leader}"),
		metric.WithDescription("Whether another process may lead at the same time, because the store may lose acknowledged writes."))
	barred, errs[7] = meter.Int64ObservableGauge("elector.refused", metric.WithUnit("{campaign}"),
		metric.WithDescription("Whether the store refuses what a campaign of this process tries, until somebody changes something."))
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	r.refused.Add(context.Background(), 0)
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for k, left := range r.remaining() {
			leads := int64(0)
			if left > 0 {
				leads = 1
			}
			o.ObserveInt64(leading, leads, k.attributes())
			o.ObserveFloat64(remaining, left.Seconds(), k.attributes())
		}
		for k := range r.lossy() {
			o.ObserveInt64(lossy, 1, k.attributes())
		}
		r.mutex.Lock()
		defer r.mutex.Unlock()
		for k := range r.barred {
			o.ObserveInt64(barred, 1, k.attributes())
		}
		return nil
	}, leading, remaining, lossy, barred)
	return err
}

// campaigning begins the series of an election, so that their first increase counts.
func (r *reporter) campaigning(ctx context.Context, i elector.CampaignInfo) {
	k := key{i.Election, backend(i.Store)}
	r.mutex.Lock()
	_, known := r.leases[k]
	if !known {
		r.leases[k] = nil
	}
	r.mutex.Unlock()
	if !known {
		for _, cause := range []string{"acquired", "resigned", "unhealthy", "lost", "deposed"} {
			r.transitions.Add(ctx, 0, k.attributes(attribute.String("cause", cause)))
		}
	}
}

func (r *reporter) waiting(_ context.Context, i elector.CampaignInfo) {
	k := key{i.Election, backend(i.Store)}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if delete(r.barred, k); backends.Permanent(i.Err) {
		r.barred[k] = true
	}
}

func (r *reporter) campaigned(ctx context.Context, i elector.CampaignInfo) {
	r.mutex.Lock()
	delete(r.barred, key{i.Election, backend(i.Store)})
	r.mutex.Unlock()
	err := i.Err
	if ctx.Err() != nil || errors.Is(err, elector.ErrHeld) {
		err = nil
	}
	r.span(ctx, "elector.campaign", i.Duration, i.Election, i.Store, err)
}

func (r *reporter) acquired(ctx context.Context, i elector.LeaseInfo) {
	k := key{i.Election, backend(i.Store)}
	r.transitions.Add(ctx, 1, k.attributes(attribute.String("cause", "acquired")))
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.leases[k] = append(slices.DeleteFunc(r.leases[k], over), i.Lease)
}

func (r *reporter) renewed(ctx context.Context, i elector.LeaseInfo) {
	r.margin.Record(ctx, float64(i.Margin)/float64(i.Validity), key{i.Election, backend(i.Store)}.attributes())
	took := i.Validity - i.Remaining // the lease counts from when the renewal was sent
	r.span(ctx, "elector.renew", took, i.Election, i.Store, nil, trace.WithNewRoot(), trace.WithLinks(trace.LinkFromContext(ctx)))
}

func (r *reporter) ended(ctx context.Context, i elector.LeaseInfo) {
	r.transitions.Add(ctx, 1, key{i.Election, backend(i.Store)}.attributes(attribute.String("cause", i.Cause)))
}

func (r *reporter) released(ctx context.Context, i elector.LeaseInfo) {
	r.span(ctx, "elector.release", i.Duration, i.Election, i.Store, i.Err)
}

func (r *reporter) request(ctx context.Context, i elector.RequestInfo) {
	if strings.HasPrefix(i.Op, "watch") { // lasts as long as it can
		return
	}
	r.requests.Record(ctx, i.Duration.Seconds(), metric.WithAttributes(
		attribute.String("backend", backend(i.Store)), attribute.String("operation", i.Op), attribute.String("result", i.Result)))
	if i.Result == "error" {
		r.span(ctx, "elector."+i.Op, i.Duration, i.Election, i.Store, i.Err, trace.WithNewRoot(), trace.WithLinks(trace.LinkFromContext(ctx)))
	}
}

// span makes a span that ends now.
func (r *reporter) span(ctx context.Context, name string, took time.Duration, election, store string, err error, options ...trace.SpanStartOption) {
	now := time.Now()
	_, span := r.tracer.Start(ctx, name, append(options, trace.WithTimestamp(now.Add(-took)), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("election", election), attribute.String("backend", backend(store))))...)
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End(trace.WithTimestamp(now))
}

// remaining returns how long this process leads each election without a renewal.
func (r *reporter) remaining() map[key]time.Duration {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	all := make(map[key]time.Duration, len(r.leases))
	for k, leases := range r.leases {
		all[k] = 0
		for _, l := range leases {
			all[k] = max(all[k], l.Remaining())
		}
	}
	return all
}

// lossy returns the elections that this process leads on stores that may lose writes.
func (r *reporter) lossy() map[key]bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	all := map[key]bool{}
	for k, leases := range r.leases {
		if slices.ContainsFunc(leases, func(l *elector.Lease) bool { return l.Lossy() != "" && !over(l) }) {
			all[k] = true
		}
	}
	return all
}

// over reports whether a lease has ended, for good.
func over(l *elector.Lease) bool { return l.Remaining() == 0 }

// backend returns the scheme of a store's URL.
func backend(store string) string {
	scheme, _, _ := strings.Cut(store, ":")
	return scheme
}
