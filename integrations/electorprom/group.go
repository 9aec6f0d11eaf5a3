package electorprom

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/elector-go/elector/partition"
)

// groups collects the metrics of all groups of a process. Metrics' mutex guards shares.
type groups struct {
	transitions *prometheus.CounterVec
	unowned     *prometheus.HistogramVec
	drains      *prometheus.HistogramVec
	failures    *prometheus.CounterVec

	shares map[groupKey]*share
}

// A groupKey names a group.
type groupKey struct{ group, backend string }

// A share is what this process has of a group. A process can have several members.
type share struct {
	partitions int
	planned    map[string]int // by member
	leases     map[*partition.Lease]bool
}

var (
	groupLabels = []string{"group", "backend"}
	partitions  = prometheus.NewDesc("elector_group_partitions", "How many partitions the group has.", groupLabels, nil)
	owned       = prometheus.NewDesc("elector_group_owned", "How many partitions this process owns.", groupLabels, nil)
	wanted      = prometheus.NewDesc("elector_group_wanted", "How many partitions this process should own.", groupLabels, nil)
)

func newGroups() groups {
	buckets := []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	return groups{
		transitions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "elector_group_transitions_total",
			Help: "Partitions that this process acquired, and the ends of their leases, by cause.",
		}, []string{"group", "backend", "cause"}),
		unowned: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "elector_group_unowned_seconds",
			Help:    "For how long a partition that this process acquired had no owner, as far as this process knows.",
			Buckets: buckets,
		}, groupLabels),
		drains: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "elector_group_drain_duration_seconds",
			Help:    "How long it took to give a partition up, from when its worker was told to stop.",
			Buckets: buckets,
		}, groupLabels),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "elector_group_worker_failures_total",
			Help: "Workers that ended although their partition was still this process's.",
		}, groupLabels),
		shares: map[groupKey]*share{},
	}
}

// GroupTrace returns callbacks for Options.Trace of any number of groups of package
// partition.
func (m *Metrics) GroupTrace() *partition.Trace {
	return &partition.Trace{
		Planned:  m.groupPlanned,
		Acquired: m.groupAcquired,
		Ended:    m.groupEnded,
		Failed: func(_ context.Context, i partition.LeaseInfo) {
			m.groups.failures.WithLabelValues(i.Group, backend(i.Store)).Inc()
		},
	}
}

// share returns this process's share of a group. It makes the series of a new one, so that
// their first increase counts. The caller has the mutex.
func (g *groups) share(k groupKey) *share {
	s := g.shares[k]
	if s == nil {
		s = &share{planned: map[string]int{}, leases: map[*partition.Lease]bool{}}
		g.shares[k] = s
		for _, cause := range []string{"acquired", "returned", "timeout", "lost"} {
			g.transitions.WithLabelValues(k.group, k.backend, cause)
		}
		g.unowned.WithLabelValues(k.group, k.backend)
		g.drains.WithLabelValues(k.group, k.backend)
		g.failures.WithLabelValues(k.group, k.backend)
	}
	return s
}

func (m *Metrics) groupPlanned(_ context.Context, i partition.PlanInfo) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	s := m.groups.share(groupKey{i.Group, backend(i.Store)})
	s.partitions, s.planned[i.ID] = i.Partitions, i.Planned
	if i.Planned == 0 {
		delete(s.planned, i.ID)
	}
}

func (m *Metrics) groupAcquired(_ context.Context, i partition.LeaseInfo) {
	k := groupKey{i.Group, backend(i.Store)}
	m.groups.transitions.WithLabelValues(k.group, k.backend, "acquired").Inc()
	m.groups.unowned.WithLabelValues(k.group, k.backend).Observe(i.Unowned.Seconds())
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.groups.share(k).leases[i.Lease] = true
}

func (m *Metrics) groupEnded(_ context.Context, i partition.LeaseInfo) {
	k := groupKey{i.Group, backend(i.Store)}
	m.groups.transitions.WithLabelValues(k.group, k.backend, i.Cause).Inc()
	if i.Cause != "lost" {
		m.groups.drains.WithLabelValues(k.group, k.backend).Observe(i.Drain.Seconds())
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.groups.share(k).leases, i.Lease)
}

func (m *Metrics) collectGroups(ch chan<- prometheus.Metric) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for k, s := range m.groups.shares {
		owns, wants := 0, 0
		for l := range s.leases {
			if l.Remaining() > 0 {
				owns++
			}
		}
		for _, n := range s.planned {
			wants += n
		}
		for desc, n := range map[*prometheus.Desc]int{partitions: s.partitions, owned: owns, wanted: wants} {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), k.group, k.backend)
		}
	}
}
