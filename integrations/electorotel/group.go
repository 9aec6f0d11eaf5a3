package electorotel

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/elector-go/elector/partition"
)

// NewGroup returns a Trace for Options.Trace of package partition, for any number of groups.
// It reports metrics to the provider; nil means OpenTelemetry's global one. Call NewGroup
// once: it registers a callback for the gauges, which stays. It returns the errors of the
// MeterProvider.
func NewGroup(meters metric.MeterProvider) (*partition.Trace, error) {
	if meters == nil {
		meters = otel.GetMeterProvider()
	}
	r := &groups{shares: map[groupKey]*share{}}
	if err := r.instrument(meters.Meter(scope)); err != nil {
		return nil, err
	}
	return &partition.Trace{
		Planned:  r.planned,
		Acquired: r.acquired,
		Ended:    r.ended,
		Failed: func(ctx context.Context, i partition.LeaseInfo) {
			r.failures.Add(ctx, 1, groupKey{i.Group, backend(i.Store)}.attributes())
		},
	}, nil
}

// groups has the state behind a Trace of groups.
type groups struct {
	transitions metric.Int64Counter
	unowned     metric.Float64Histogram
	drains      metric.Float64Histogram
	failures    metric.Int64Counter

	mutex  sync.Mutex
	shares map[groupKey]*share
}

// A groupKey names a group.
type groupKey struct{ group, backend string }

func (k groupKey) attributes(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributes(append(more, attribute.String("group", k.group), attribute.String("backend", k.backend))...)
}

// A share is what this process has of a group. A process can have several members.
type share struct {
	partitions int
	planned    map[string]int // by member
	leases     map[*partition.Lease]bool
}

func (r *groups) instrument(meter metric.Meter) error {
	var errs [7]error
	var partitions, owned, wanted metric.Int64ObservableGauge
	buckets := metric.WithExplicitBucketBoundaries(.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60)
	partitions, errs[0] = meter.Int64ObservableGauge("elector.group.partitions", metric.WithUnit("{partition}"),
		metric.WithDescription("How many partitions the group has."))
	owned, errs[1] = meter.Int64ObservableGauge("elector.group.owned", metric.WithUnit("{partition}"),
		metric.WithDescription("How many partitions this process owns."))
	wanted, errs[2] = meter.Int64ObservableGauge("elector.group.wanted", metric.WithUnit("{partition}"),
		metric.WithDescription("How many partitions this process should own."))
	r.transitions, errs[3] = meter.Int64Counter("elector.group.transitions", metric.WithUnit("{transition}"),
		metric.WithDescription("Partitions that this process acquired, and the ends of their leases, by cause."))
	r.unowned, errs[4] = meter.Float64Histogram("elector.group.unowned", metric.WithUnit("s"), buckets,
		metric.WithDescription("For how long a partition that this process acquired had no owner, as far as this process knows."))
	r.drains, errs[5] = meter.Float64Histogram("elector.group.drain.duration", metric.WithUnit("s"), buckets,
		metric.WithDescription("How long it took to give a partition up, from when its worker was told to stop."))
	r.failures, errs[6] = meter.Int64Counter("elector.group.worker.failures", metric.WithUnit("{failure}"),
		metric.WithDescription("Workers that ended although their partition was still this process's."))
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		for k, s := range r.shares {
			owns, wants := 0, 0
			for l := range s.leases {
				if l.Remaining() > 0 {
					owns++
				}
			}
			for _, n := range s.planned {
				wants += n
			}
			o.ObserveInt64(partitions, int64(s.partitions), k.attributes())
			o.ObserveInt64(owned, int64(owns), k.attributes())
			o.ObserveInt64(wanted, int64(wants), k.attributes())
		}
		return nil
	}, partitions, owned, wanted)
	return err
}

// change changes the share of a group. It begins the counters of a new one, so that their
// first increase counts.
func (r *groups) change(ctx context.Context, k groupKey, change func(s *share)) {
	r.mutex.Lock()
	s, known := r.shares[k]
	if !known {
		s = &share{planned: map[string]int{}, leases: map[*partition.Lease]bool{}}
		r.shares[k] = s
	}
	change(s)
	r.mutex.Unlock()
	if known {
		return
	}
	for _, cause := range []string{"acquired", "returned", "timeout", "lost"} {
		r.transitions.Add(ctx, 0, k.attributes(attribute.String("cause", cause)))
	}
	r.failures.Add(ctx, 0, k.attributes())
}

func (r *groups) planned(ctx context.Context, i partition.PlanInfo) {
	r.change(ctx, groupKey{i.Group, backend(i.Store)}, func(s *share) {
		s.partitions, s.planned[i.ID] = i.Partitions, i.Planned
		if i.Planned == 0 {
			delete(s.planned, i.ID)
		}
	})
}

func (r *groups) acquired(ctx context.Context, i partition.LeaseInfo) {
	k := groupKey{i.Group, backend(i.Store)}
	r.change(ctx, k, func(s *share) { s.leases[i.Lease] = true })
	r.transitions.Add(ctx, 1, k.attributes(attribute.String("cause", "acquired")))
	r.unowned.Record(ctx, i.Unowned.Seconds(), k.attributes())
}

func (r *groups) ended(ctx context.Context, i partition.LeaseInfo) {
	k := groupKey{i.Group, backend(i.Store)}
	r.change(ctx, k, func(s *share) { delete(s.leases, i.Lease) })
	r.transitions.Add(ctx, 1, k.attributes(attribute.String("cause", i.Cause)))
	if i.Cause != "lost" {
		r.drains.Record(ctx, i.Drain.Seconds(), k.attributes())
	}
}
