// Package electorprom reports elections, and groups of package partition, to Prometheus.
// One collector serves all of a process:
//
//	metrics := electorprom.New()
//	prometheus.MustRegister(metrics)
//	e, err := elector.Open(ctx, url, "invoices", &elector.Options{Trace: metrics.Trace()})
//	g, err := partition.Join(ctx, url, "orders", &partition.Options{Partitions: 64, Trace: metrics.GroupTrace()})
//
// If you have a Trace of your own, combine the two with [elector.MultiTrace] or
// [partition.MultiTrace]. The same Trace of elections in an [elector.Fence] counts the writes that the Fence refuses.
//
// # Metrics
//
// The label backend is the scheme of the store's URL.
//
//   - elector_leading{election, backend} is 1 while this process leads and 0
//     otherwise, from the first campaign on.
//   - elector_lease_remaining_seconds{election, backend} is how long the lease stays
//     valid without another renewal, 0 without a lease.
//   - elector_renewal_margin{election, backend} is a histogram of what was left of
//     the lease when a renewal was acknowledged, as a share of the whole, 0 to 1. With
//     the default options it is 0.67 on a fast store and 0.5 if the store takes
//     RequestTimeout to answer. At 0 the lease is lost. It shrinks before any
//     renewal fails.
//   - elector_transitions_total{election, backend, cause} counts leases that this
//     process acquired, and their ends. cause is acquired, resigned, unhealthy
//     (Options.Healthy failed), lost, or deposed (see [elector.ErrDeposed]).
//   - elector_request_duration_seconds{backend, operation, result} is a histogram of
//     the requests to the store. operation is load, swap, or healthy for
//     Options.Healthy; result is ok, conflict (another process wrote first),
//     cancelled (by the caller), or error. All elections share it.
//   - elector_lossy{election, backend} is 1 while this process leads on a store that may
//     lose acknowledged writes: another process may lead at the same time. Other
//     elections do not have it.
//   - elector_refused{election, backend} is 1 while the store refuses what a campaign of this
//     process tries, until somebody changes something: a right, a set-up, a foreign record.
//     The campaign tries again. Other elections do not have it.
//   - elector_fence_refused_total counts the writes that Fences refused. It does not
//     count what a guard in a store or package fencesql refuses.
//
// Of groups:
//
//   - elector_group_partitions{group, backend} is how many partitions the group has, as
//     each of its processes knows.
//   - elector_group_owned{group, backend} is how many of them this process owns. If the
//     sum over all processes is lower than elector_group_partitions, the rest has no owner.
//   - elector_group_wanted{group, backend} is how many this process should own by the
//     plan.
//   - elector_group_transitions_total{group, backend, cause} counts partitions that this
//     process acquired, and the ends of their leases. cause is acquired, returned (given
//     up when the worker had returned), timeout (given up although the worker has not
//     returned within ReleaseTimeout), or lost.
//   - elector_group_unowned_seconds{group, backend} is a histogram of how long a
//     partition that this process acquired had no owner: see
//     [partition.LeaseInfo.Unowned] for what it has and has not.
//   - elector_group_drain_duration_seconds{group, backend} is a histogram of how long it
//     took to give a partition up, from when its worker was told to stop.
//   - elector_group_worker_failures_total{group, backend} counts workers that failed,
//     panicked or returned although their partition was still this process's.
//
// The seats of a group are elections. Set Options.Elector.Trace to Trace for their
// renewals: elections with the names of the group and ".seat." and a number.
//
// OpenTelemetry's Prometheus exporter gives the metrics of package electorotel the
// same names. The alert rules and the dashboard beside this file fit both.
//
// # Cardinality
//
// No label has a candidate's ID, a token, the number of a partition, or the name of a
// fenced resource. In each process an election has 21 series, buckets included, a group
// has 34, and a kind of store has 14 for each operation and result that occurred, at most
// 168. A process with 1,000 elections has about 21,000. Kubernetes' names are two more series for each name.
//
// # Cost
//
// A renewal allocates fewer than 8 times more with metrics than without, for the goroutine that
// calls them: see [elector.Trace]. [elector.Lease.Check] allocates nothing in either case.
package electorprom

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

// Metrics collects the metrics of all elections and groups of a process.
type Metrics struct {
	margin      *prometheus.HistogramVec
	transitions *prometheus.CounterVec
	requests    *prometheus.HistogramVec
	refused     prometheus.Counter
	slow        *prometheus.CounterVec
	groups      groups

	mutex  sync.Mutex
	leases map[key][]*elector.Lease // of all elections, also without a lease
	barred map[key]bool             // campaigns that the store refuses
}

// A key names an election. A process with several candidates in one election has
// several leases on it, one after the other.
type key struct{ election, backend string }

var (
	labels    = []string{"election", "backend"}
	leading   = prometheus.NewDesc("elector_leading", "Whether this process leads the election.", labels, nil)
	remaining = prometheus.NewDesc("elector_lease_remaining_seconds", "How long the lease stays valid without another renewal.", labels, nil)
	lossy     = prometheus.NewDesc("elector_lossy", "Whether another process may lead at the same time, because the store may lose acknowledged writes.", labels, nil)
	barred    = prometheus.NewDesc("elector_refused", "Whether the store refuses what a campaign of this process tries, until somebody changes something.", labels, nil)
	master    = prometheus.NewDesc("leader_election_master_status", "Whether this process leads the election, under Kubernetes' name.", []string{"name"}, nil)
)

// New returns Metrics. Register it once.
func New() *Metrics {
	return &Metrics{
		margin: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "elector_renewal_margin",
			Help:    "What was left of the lease when a renewal was acknowledged, as a share of the whole.",
			Buckets: []float64{.05, .1, .25, .4, .5, .55, .6, .65, .7, .8, .9},
		}, labels),
		transitions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "elector_transitions_total",
			Help: "Leases that this process acquired, and their ends, by cause.",
		}, []string{"election", "backend", "cause"}),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "elector_request_duration_seconds",
			Help:    "How long requests to the store took.",
			Buckets: prometheus.DefBuckets,
		}, []string{"backend", "operation", "result"}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "elector_fence_refused_total",
			Help: "Writes with a stale fencing token that were refused.",
		}),
		slow: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "leader_election_slowpath_total",
			Help: "Renewals that failed and read the record, under Kubernetes' name.",
		}, []string{"name"}),
		groups: newGroups(),
		leases: map[key][]*elector.Lease{},
		barred: map[key]bool{},
	}
}

// Trace returns callbacks for Options.Trace of any number of elections, and for
// Fence.Trace.
func (m *Metrics) Trace() *elector.Trace {
	return &elector.Trace{
		Campaigning: m.campaigning,
		Waiting:     m.waiting,
		Campaigned:  m.campaigned,
		Request:     m.request,
		Acquired:    m.acquired,
		Renewed: func(_ context.Context, i elector.LeaseInfo) {
			m.margin.WithLabelValues(i.Election, backend(i.Store)).Observe(float64(i.Margin) / float64(i.Validity))
		},
		Ended: func(_ context.Context, i elector.LeaseInfo) {
			m.transitions.WithLabelValues(i.Election, backend(i.Store), i.Cause).Inc()
		},
		Refused: func(context.Context, *elector.StaleError) { m.refused.Inc() },
	}
}

// campaigning makes the series of an election, so that their first increase counts.
func (m *Metrics) campaigning(_ context.Context, i elector.CampaignInfo) {
	k := key{i.Election, backend(i.Store)}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if _, known := m.leases[k]; known {
		return
	}
	m.leases[k] = nil
	m.margin.WithLabelValues(k.election, k.backend)
	for _, cause := range []string{"acquired", "resigned", "unhealthy", "lost", "deposed"} {
		m.transitions.WithLabelValues(k.election, k.backend, cause)
	}
	m.slow.WithLabelValues(k.election)
}

func (m *Metrics) waiting(_ context.Context, i elector.CampaignInfo) {
	k := key{i.Election, backend(i.Store)}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if delete(m.barred, k); backends.Permanent(i.Err) {
		m.barred[k] = true
	}
}

func (m *Metrics) campaigned(_ context.Context, i elector.CampaignInfo) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.barred, key{i.Election, backend(i.Store)})
}

func (m *Metrics) acquired(_ context.Context, i elector.LeaseInfo) {
	k := key{i.Election, backend(i.Store)}
	m.transitions.WithLabelValues(k.election, k.backend, "acquired").Inc()
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.leases[k] = append(slices.DeleteFunc(m.leases[k], over), i.Lease)
}

func (m *Metrics) request(_ context.Context, i elector.RequestInfo) {
	if strings.HasPrefix(i.Op, "watch") { // lasts as long as it can
		return
	}
	k := key{i.Election, backend(i.Store)}
	m.requests.WithLabelValues(k.backend, i.Op, i.Result).Observe(i.Duration.Seconds())
	if i.Op == "swap" && i.Result != "ok" && m.leads(k) {
		m.slow.WithLabelValues(k.election).Inc()
	}
}

// remaining returns how long this process leads each election without a renewal.
func (m *Metrics) remaining() map[key]time.Duration {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	all := make(map[key]time.Duration, len(m.leases))
	for k, leases := range m.leases {
		all[k] = 0
		for _, l := range leases {
			all[k] = max(all[k], l.Remaining())
		}
	}
	return all
}

// leads reports whether this process leads an election.
func (m *Metrics) leads(k key) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return slices.ContainsFunc(m.leases[k], func(l *elector.Lease) bool { return !over(l) })
}

// over reports whether a lease has ended, for good.
func over(l *elector.Lease) bool { return l.Remaining() == 0 }

// backend returns the scheme of a store's URL.
func backend(store string) string {
	scheme, _, _ := strings.Cut(store, ":")
	return scheme
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{leading, remaining, lossy, barred, partitions, owned, wanted} {
		ch <- d
	}
	for _, c := range m.vectors() {
		c.Describe(ch)
	}
}

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.vectors() {
		c.Collect(ch)
	}
	for k, left := range m.remaining() {
		ch <- prometheus.MustNewConstMetric(leading, prometheus.GaugeValue, oneIf(left > 0), k.election, k.backend)
		ch <- prometheus.MustNewConstMetric(remaining, prometheus.GaugeValue, left.Seconds(), k.election, k.backend)
	}
	for k := range m.lossy() {
		ch <- prometheus.MustNewConstMetric(lossy, prometheus.GaugeValue, 1, k.election, k.backend)
	}
	m.mutex.Lock()
	for k := range m.barred {
		ch <- prometheus.MustNewConstMetric(barred, prometheus.GaugeValue, 1, k.election, k.backend)
	}
	m.mutex.Unlock()
	m.collectGroups(ch)
}

// lossy returns the elections that this process leads on stores that may lose writes.
func (m *Metrics) lossy() map[key]bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	all := map[key]bool{}
	for k, leases := range m.leases {
		if slices.ContainsFunc(leases, func(l *elector.Lease) bool { return l.Lossy() != "" && !over(l) }) {
			all[k] = true
		}
	}
	return all
}

func (m *Metrics) vectors() []prometheus.Collector {
	return []prometheus.Collector{m.margin, m.transitions, m.requests, m.refused,
		m.groups.transitions, m.groups.unowned, m.groups.drains, m.groups.failures}
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Kubernetes returns another collector, with the metrics of Kubernetes' client-go
// for dashboards that have them: leader_election_master_status{name} is
// elector_leading, and leader_election_slowpath_total{name} counts renewals that
// failed and read the record.
func (m *Metrics) Kubernetes() prometheus.Collector { return kubernetes{m} }

type kubernetes struct{ *Metrics }

func (m kubernetes) Describe(ch chan<- *prometheus.Desc) {
	ch <- master
	m.slow.Describe(ch)
}

func (m kubernetes) Collect(ch chan<- prometheus.Metric) {
	m.slow.Collect(ch)
	names := map[string]time.Duration{}
	for k, left := range m.remaining() {
		names[k.election] = max(names[k.election], left)
	}
	for name, left := range names {
		ch <- prometheus.MustNewConstMetric(master, prometheus.GaugeValue, oneIf(left > 0), name)
	}
}
