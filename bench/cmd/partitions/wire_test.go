package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

// answer is how long a request of a simulated process takes.
const answer = 5 * time.Millisecond

// A wire is a simulated process's way to the store. It counts bytes: those of names and
// records, without a store's protocol.
type wire struct {
	*memory.Backend
	bytes *atomic.Int64
}

func (w *wire) name(name string) { w.bytes.Add(int64(len(name))) }

func (w *wire) record(name string, r backends.Record) {
	if r != (backends.Record{}) {
		w.bytes.Add(int64(len(backends.Encode(name, r))))
	}
}

// Load implements backends.Backend.
func (w *wire) Load(ctx context.Context, name string) (backends.Record, error) {
	o := w.LoadMany(ctx, []string{name})[0]
	return o.Record, o.Err
}

// LoadMany implements backends.BatchLoader.
func (w *wire) LoadMany(ctx context.Context, names []string) []backends.Outcome {
	time.Sleep(answer)
	all := w.Backend.LoadMany(ctx, names)
	for i, o := range all {
		w.name(names[i])
		w.record(names[i], o.Record)
	}
	return all
}

// Swap implements backends.Backend.
func (w *wire) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	o := w.SwapMany(ctx, []backends.Change{{Name: name, Prev: prev, Next: next}})[0]
	return o.Record, o.Err
}

// SwapMany implements backends.BatchSwapper. The state that a swap compares with counts,
// as etcd and PostgreSQL send it.
func (w *wire) SwapMany(ctx context.Context, changes []backends.Change) []backends.Outcome {
	time.Sleep(answer)
	for _, c := range changes {
		w.name(c.Name)
		w.record(c.Name, c.Prev)
		w.record(c.Name, c.Next)
	}
	return w.Backend.SwapMany(ctx, changes)
}

// Watch implements backends.Watcher.
func (w *wire) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	return w.Backend.Watch(ctx, name, func(r backends.Record) {
		w.record(name, r)
		changed(r)
	})
}
