package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/elector-go/elector/backends"
)

// A meter counts the requests of one process, and can be cut off from the store.
type meter struct {
	backends.Backend
	group    string
	counts   *counts
	oneByOne bool // it takes one record in a request
	cut      atomic.Bool
}

// counts are requests of all processes.
type counts struct{ seats, plans, reads, moves atomic.Int64 }

// each returns the counts.
func (c *counts) each() [4]int64 {
	return [4]int64{c.seats.Load(), c.plans.Load(), c.reads.Load(), c.moves.Load()}
}

// since describes the requests since each was called.
func (c *counts) since(before [4]int64) string {
	now := c.each()
	return fmt.Sprintf("%d writes of seats, %d of plans, %d of partitions, %d reads", now[0]-before[0], now[1]-before[1], now[3]-before[3], now[2]-before[2])
}

func (m *meter) Load(ctx context.Context, name string) (backends.Record, error) {
	if m.cut.Load() {
		return backends.Record{}, backends.ErrUnavailable
	}
	m.counts.reads.Add(1)
	return m.Backend.Load(ctx, name)
}

func (m *meter) LoadMany(ctx context.Context, names []string) []backends.Outcome {
	if m.cut.Load() {
		return backends.Outcomes(len(names), backends.ErrUnavailable)
	}
	m.counts.reads.Add(1)
	return m.Backend.(backends.BatchLoader).LoadMany(ctx, names)
}

func (m *meter) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	if m.cut.Load() {
		return backends.Record{}, backends.ErrUnavailable
	}
	m.write(name)
	return m.Backend.Swap(ctx, name, prev, next)
}

func (m *meter) SwapMany(ctx context.Context, changes []backends.Change) []backends.Outcome {
	if m.cut.Load() {
		return backends.Outcomes(len(changes), backends.ErrUnavailable)
	}
	m.write(changes[0].Name)
	return m.Backend.(backends.BatchSwapper).SwapMany(ctx, changes)
}

func (m *meter) write(name string) {
	switch kind := strings.TrimPrefix(name, m.group); {
	case strings.HasPrefix(kind, ".seat."):
		m.counts.seats.Add(1)
	case kind == ".plan":
		m.counts.plans.Add(1)
	default:
		m.counts.moves.Add(1)
	}
}

func (m *meter) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	w, ok := m.Backend.(backends.Watcher)
	if !ok || m.cut.Load() {
		return backends.ErrUnavailable
	}
	return w.Watch(ctx, name, changed)
}

func (m *meter) Describe() backends.Description {
	d := m.Backend.Describe()
	if _, ok := m.Backend.(backends.BatchLoader); !ok || m.oneByOne {
		d.MaxLoads = 0
	}
	if _, ok := m.Backend.(backends.BatchSwapper); !ok || m.oneByOne {
		d.MaxSwaps = 0
	}
	if _, ok := m.Backend.(backends.Watcher); !ok {
		d.NoWatch = true
	}
	return d
}

// SameWrite implements backends.SameWriter.
func (m *meter) SameWrite(before, after backends.Version) bool {
	if s, ok := m.Backend.(backends.SameWriter); ok {
		return s.SameWrite(before, after)
	}
	return before == after
}

// total returns all requests so far.
func (c *counts) total() int64 {
	return c.seats.Load() + c.plans.Load() + c.reads.Load() + c.moves.Load()
}
