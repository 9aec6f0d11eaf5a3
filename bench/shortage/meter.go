package shortage

import (
	"context"
	"sync"

	"github.com/elector-go/elector/backends"
)

// Requests counts requests by their kinds. A batch of one record counts as a single one.
type Requests struct {
	Most    int // under way at a time, without watches
	Batches int // of several swaps
	Swaps   int // single ones
	Reads   int // of several records
	Loads   int // of a single one
	Watches int // begun; what a watch reads by itself is not counted
	Records int // that all requests were for
}

// Single counts the requests for a single record.
func (r Requests) Single() int { return r.Swaps + r.Loads }

// batching is what the backends have that are measured here.
type batching interface {
	backends.Watcher
	backends.BatchSwapper
	backends.BatchLoader
}

// A meter is a backend that counts its requests.
type meter struct {
	batching

	mutex  sync.Mutex
	under  int // requests under way
	counts Requests
}

// reset begins to count anew. What is under way counts again among the most.
func (m *meter) reset() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.counts = Requests{Most: m.under}
}

// read returns what was counted since the last reset.
func (m *meter) read() Requests {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.counts
}

// begin counts a request for some records, of one of two kinds.
func (m *meter) begin(single, several *int, records int) (end func()) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.under++
	m.counts.Most = max(m.counts.Most, m.under)
	m.counts.Records += records
	if records > 1 {
		*several++
	} else {
		*single++
	}
	return m.end
}

func (m *meter) end() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.under--
}

func (m *meter) swaps(records int) (end func()) {
	return m.begin(&m.counts.Swaps, &m.counts.Batches, records)
}

func (m *meter) loads(records int) (end func()) {
	return m.begin(&m.counts.Loads, &m.counts.Reads, records)
}

func (m *meter) Load(ctx context.Context, name string) (backends.Record, error) {
	defer m.loads(1)()
	return m.batching.Load(ctx, name)
}

func (m *meter) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	defer m.swaps(1)()
	return m.batching.Swap(ctx, name, prev, next)
}

func (m *meter) SwapMany(ctx context.Context, changes []backends.Change) []backends.Outcome {
	defer m.swaps(len(changes))()
	return m.batching.SwapMany(ctx, changes)
}

func (m *meter) LoadMany(ctx context.Context, names []string) []backends.Outcome {
	defer m.loads(len(names))()
	return m.batching.LoadMany(ctx, names)
}

func (m *meter) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	m.mutex.Lock()
	m.counts.Watches++
	m.mutex.Unlock()
	return m.batching.Watch(ctx, name, changed)
}
