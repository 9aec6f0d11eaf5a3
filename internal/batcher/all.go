package batcher

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/elector-go/elector/backends"
)

// apart is how many requests are under way at the same time where the backend takes one
// record in each.
const apart = 8

// SwapAll makes many swaps, each of another record, in as few requests as the backend
// allows, one after the other, and returns the outcome of each.
func (m *Member) SwapAll(ctx context.Context, changes []backends.Change) []backends.Outcome {
	alone := func(c backends.Change) backends.Outcome {
		return m.bounded(ctx, &m.hungSwaps, 1, func(ctx context.Context) []backends.Outcome {
			r, err := m.backend.Swap(ctx, c.Name, c.Prev, c.Next)
			return []backends.Outcome{{Record: r, Err: err}}
		})[0]
	}
	b, ok := m.backend.(backends.BatchSwapper)
	most := m.backend.Describe().MaxSwaps
	if !ok || most < 2 {
		return each(changes, alone)
	}
	var all []backends.Outcome
	for len(changes) > 0 {
		n, bytes := 0, 0
		for n < min(most, len(changes)) && (n == 0 || bytes+size(changes[n]) <= maxBytes) {
			bytes += size(changes[n])
			n++
		}
		some := changes[:n]
		all = append(all, together(&m.swaps, some, alone, func() []backends.Outcome {
			return m.bounded(ctx, &m.hungSwaps, n, func(ctx context.Context) []backends.Outcome { return b.SwapMany(ctx, some) })
		})...)
		changes = changes[n:]
	}
	return all
}

func size(c backends.Change) int { return chosen(c.Prev) + chosen(c.Next) }

// LoadAll reads many records in as few requests as the backend allows, one after the
// other, and returns the outcome of each.
func (m *Member) LoadAll(ctx context.Context, names []string) []backends.Outcome {
	alone := func(name string) backends.Outcome {
		return m.bounded(ctx, &m.hungLoads, 1, func(ctx context.Context) []backends.Outcome {
			r, err := m.backend.Load(ctx, name)
			return []backends.Outcome{{Record: r, Err: err}}
		})[0]
	}
	b, ok := m.backend.(backends.BatchLoader)
	most := m.backend.Describe().MaxLoads
	if !ok || most < 2 {
		return each(names, alone)
	}
	var all []backends.Outcome
	for len(names) > 0 {
		n := min(most, len(names))
		some := names[:n]
		all = append(all, together(&m.loads, some, alone, func() []backends.Outcome {
			return m.bounded(ctx, &m.hungLoads, n, func(ctx context.Context) []backends.Outcome { return b.LoadMany(ctx, some) })
		})...)
		names = names[n:]
	}
	return all
}

// mostHung bounds the requests of a kind that a backend does not return from although their
// contexts have ended. Simultaneous requests can exceed it by their number.
const mostHung = 16

// bounded makes a request for n records, and gives it up after the timeout of the Member,
// also if the backend does not return. Then it counts in hung until it does.
func (m *Member) bounded(ctx context.Context, hung *atomic.Int32, n int, request func(context.Context) []backends.Outcome) []backends.Outcome {
	if hung.Load() >= mostHung {
		return backends.Outcomes(n, fmt.Errorf("%w: %d requests hang and ignore their timeouts", backends.ErrUnavailable, mostHung))
	}
	ctx, cancel := m.clock.WithTimeout(ctx, m.timeout)
	defer cancel()
	answered := make(chan []backends.Outcome, 1)
	var over atomic.Bool // it is answered, or given up
	m.active.Add(1)
	go func() {
		defer m.active.Done()
		answered <- request(ctx)
		if !over.CompareAndSwap(false, true) {
			hung.Add(-1)
		}
	}()
	select {
	case outcomes := <-answered:
		return outcomes
	case <-ctx.Done():
		hung.Add(1)
		if !over.CompareAndSwap(false, true) {
			hung.Add(-1)
		}
		return backends.Outcomes(n, fmt.Errorf("%w: no answer: %w", backends.ErrUnavailable, context.Cause(ctx)))
	}
}

// together makes requests by a batch. After a batch that has failed as a whole, the next
// ones go one by one: see trust. If the first of these fails too, the others are not made.
func together[T any](t *trust, requests []T, alone func(T) backends.Outcome, batch func() []backends.Outcome) []backends.Outcome {
	if len(requests) == 1 || t.asks() {
		outcomes := batch()
		if err := whole(outcomes); len(requests) > 1 && !notTried(err) {
			t.outcome(err)
		}
		return again(requests, outcomes, alone)
	}
	first := alone(requests[0])
	t.solo(first.Err)
	if first.Err != nil && !answered(first.Err) && !backends.Permanent(first.Err) {
		return backends.Outcomes(len(requests), first.Err)
	}
	return append([]backends.Outcome{first}, each(requests[1:], alone)...)
}

// whole returns why a batch has failed, nil if the store has answered one of its requests.
func whole(outcomes []backends.Outcome) (err error) {
	for _, o := range outcomes {
		if o.Err == nil || answered(o.Err) {
			return nil
		}
		err = o.Err
	}
	return err
}

// again makes the requests of a batch one by one that were certainly not made in it.
func again[T any](requests []T, outcomes []backends.Outcome, alone func(T) backends.Outcome) []backends.Outcome {
	if len(outcomes) != len(requests) {
		return backends.Outcomes(len(requests), badAnswer(len(outcomes), len(requests)))
	}
	var left []int
	for i, o := range outcomes {
		if notTried(o.Err) {
			left = append(left, i)
		}
	}
	for j, o := range each(left, func(i int) backends.Outcome { return alone(requests[i]) }) {
		outcomes[left[j]] = o
	}
	return outcomes
}

// each makes requests by themselves, some at the same time.
func each[T any](requests []T, alone func(T) backends.Outcome) []backends.Outcome {
	outcomes := make([]backends.Outcome, len(requests))
	lane := make(chan struct{}, apart)
	var group sync.WaitGroup
	for i, r := range requests {
		lane <- struct{}{}
		group.Go(func() {
			outcomes[i] = alone(r)
			<-lane
		})
	}
	group.Wait()
	return outcomes
}
