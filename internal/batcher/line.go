package batcher

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
)

const (
	// lanes is how many requests may be on their way before those that wait are held
	// back, so that a store that is slow gets few full requests and not many small ones.
	lanes = 2

	// longestHold bounds for how long they are held back.
	longestHold = 50 * time.Millisecond

	// mostHanging bounds the batches of a backend that ignores its contexts.
	mostHanging = 16
)

// A line joins requests of one kind: swaps, or reads.
type line[T any] struct {
	most  int                                           // requests in a batch
	wait  time.Duration                                 // for others, at most
	bytes func(T) int                                   // what a request counts against maxBytes; nil for nothing
	clash func(a, b T) bool                             // whether two may not go together; nil if all may
	send  func(context.Context, []T) []backends.Outcome // makes the requests of a batch

	mutex   sync.Mutex
	members int       // places
	open    *batch[T] // takes requests until it leaves; nil if there is none
	flying  int       // requests on their way, of several or of one
	hanging int       // batches that all members have given up and that have not returned
}

// A batch is requests that are made as one.
type batch[T any] struct {
	requests []T
	active   []*sync.WaitGroup // of each request's member; nil once the request was given up
	bytes    int
	hold     time.Duration // how long it may be held back
	held     bool          // it would have left, and waits for a lane
	left     chan struct{} // closed when no request may join any more

	ctx     context.Context // ends when all have given up, with the cause of the last
	cancel  context.CancelCauseFunc
	waiting int  // requests that were not given up
	given   bool // all were given up

	answered chan struct{} // closed when outcomes is set
	outcomes []backends.Outcome
}

// beginSolo begins a request of one, unless it should share one: if another is on its
// way, or if it may gather others and there are any.
func (l *line[T]) beginSolo(gather bool) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if gather && l.members > 1 || l.open != nil || l.flying > l.hanging {
		return false
	}
	l.flying++
	return true
}

func (l *line[T]) endSolo() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.landed()
}

// landed counts a request that has returned. A batch that was held back leaves. The
// caller holds the mutex.
func (l *line[T]) landed() {
	l.flying--
	if b := l.open; b != nil && b.held {
		l.leaves(b)
	}
}

// share makes a request in a batch. It returns the outcome, and how many requests
// went together; or 0 if the request was not made, because too many batches hang.
func (l *line[T]) share(ctx context.Context, m *Member, r T) (o backends.Outcome, together int) {
	b, i := l.join(m, r)
	if b == nil {
		return backends.Outcome{}, 0
	}
	select {
	case <-b.answered:
	case <-ctx.Done():
		l.abandon(b, i, ctx.Err())
		return backends.Outcome{Err: ctx.Err()}, 1
	}
	return b.outcomes[i], len(b.requests)
}

// join adds a request to the batch that leaves next, and returns its index there.
// If too many batches hang it returns no batch.
func (l *line[T]) join(m *Member, r T) (*batch[T], int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.hanging >= mostHanging+l.members/l.most {
		return nil, 0
	}
	bytes := 0
	if l.bytes != nil {
		bytes = l.bytes(r)
	}
	if b := l.open; b != nil && (l.clashes(b, r) || b.bytes+bytes > maxBytes) {
		l.leaves(b)
	}
	hold := min(longestHold, m.timeout/32)
	b := l.open
	if b == nil {
		b = &batch[T]{hold: hold, left: make(chan struct{}), answered: make(chan struct{})}
		b.ctx, b.cancel = context.WithCancelCause(context.Background())
		l.open = b
		go l.carry(b, m)
	}
	b.requests = append(b.requests, r)
	b.active = append(b.active, m.active)
	b.bytes += bytes
	b.waiting++
	m.active.Add(1)
	if len(b.requests) == l.most || hold < b.hold { // a full batch, or one that cannot wait so long
		l.leaves(b)
	}
	return b, len(b.requests) - 1
}

// clashes reports whether a batch has a request that r may not go with.
func (l *line[T]) clashes(b *batch[T], r T) bool {
	return l.clash != nil && slices.ContainsFunc(b.requests, func(other T) bool { return l.clash(other, r) })
}

// leaves closes a batch to further requests. The caller holds the mutex.
func (l *line[T]) leaves(b *batch[T]) {
	if l.open == b {
		l.open = nil
		close(b.left)
	}
}

// abandon gives up one request of a batch. With the last one the batch is given up,
// and that member waits for it.
func (l *line[T]) abandon(b *batch[T], i int, cause error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if b.given {
		return
	}
	if b.waiting--; b.waiting > 0 {
		b.active[i].Done()
		b.active[i] = nil
		return
	}
	b.given = true
	l.hanging++
	l.leaves(b)
	b.cancel(cause)
}

// carry waits for more requests to join, makes them, and wakes all.
func (l *line[T]) carry(b *batch[T], m *Member) {
	wait := min(l.wait, b.hold)
	b.await(m, wait)
	if l.holdBack(b) {
		b.await(m, b.hold-wait)
	}
	l.mutex.Lock()
	l.leaves(b)
	l.flying++
	l.mutex.Unlock()
	b.outcomes = l.request(b)
	l.mutex.Lock()
	l.landed()
	if b.given {
		l.hanging--
	}
	b.given = true // it can no longer be given up
	l.mutex.Unlock()
	close(b.answered)
	b.cancel(nil)
	for _, active := range b.active {
		if active != nil {
			active.Done()
		}
	}
}

// await blocks for d, or until the batch leaves.
func (b *batch[T]) await(m *Member, d time.Duration) {
	due := make(chan struct{})
	stop := m.clock.AfterFunc(d, func() { close(due) })
	defer stop()
	select {
	case <-due:
	case <-b.left:
	}
}

// holdBack reports whether the batch, which is due, waits for a request to return.
func (l *line[T]) holdBack(b *batch[T]) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	b.held = l.open == b && l.flying-l.hanging >= lanes
	return b.held
}

// request makes the requests of a batch, which no other can join any more.
func (l *line[T]) request(b *batch[T]) []backends.Outcome {
	outcomes := l.send(b.ctx, b.requests)
	if len(outcomes) == len(b.requests) {
		return outcomes
	}
	return backends.Outcomes(len(b.requests), badAnswer(len(outcomes), len(b.requests)))
}

func badAnswer(outcomes, requests int) error {
	return fmt.Errorf("%w: the backend answered %d of %d requests", backends.ErrUnavailable, outcomes, requests)
}
