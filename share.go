package elector

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
)

// A sharer joins requests of one kind that come at about the same time through one
// backend: renewals, or reads.
type sharer[T any] struct {
	backend backends.Backend
	home    *sharers[T]
	most    int                                           // requests in a batch
	bytes   func(T) int                                   // what a request counts against mostBytes; nil for nothing
	clash   func(a, b T) bool                             // whether two may not go together; nil if all may
	sent    func(T)                                       // called for each before a batch is sent; may be nil
	send    func(context.Context, []T) []backends.Outcome // makes the requests of a batch

	mutex   sync.Mutex
	members int       // leases, or waiters and observers
	open    *batch[T] // takes requests until it leaves; nil if there is none
	flying  int       // requests on their way, of several or of one
	hanging int       // batches that all members have given up and that have not returned
}

// sharers hold the sharers of all backends that have members.
type sharers[T any] struct {
	mutex sync.Mutex
	of    map[backends.Backend]*sharer[T]
}

// enter adds a member. A nil sharer is that of a backend whose requests go one by
// one.
func (h *sharers[T]) enter(b backends.Backend, most int, make func() *sharer[T]) *sharer[T] {
	if most < 2 || !reflect.ValueOf(b).Comparable() {
		return nil
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	s := h.of[b]
	if s == nil {
		s = make()
		s.backend, s.home, s.most = b, h, most
		h.of[b] = s
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.members++
	return s
}

// leave removes a member.
func (s *sharer[T]) leave() {
	if s == nil {
		return
	}
	s.home.mutex.Lock()
	defer s.home.mutex.Unlock()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.members--; s.members == 0 {
		delete(s.home.of, s.backend)
	}
}

// points is the number of times in an interval at which the members make their
// requests, 0 if there is only one member. Each grid is part of the finer ones, so
// that those that share requests still do so when more members come.
func (s *sharer[T]) points() time.Duration {
	if s == nil {
		return 0
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.members < 2 {
		return 0
	}
	points := grid
	for points*s.most < s.members {
		points *= 2
	}
	return time.Duration(points)
}

// A batch is requests that are made as one.
type batch[T any] struct {
	requests []T
	electors []*Elector // of each request: its Close waits for the batch; nil once the request was given up
	bytes    int
	wait     time.Duration // for others
	left     chan struct{} // closed when no request may join any more

	ctx     context.Context // ends when all have given up, with the cause of the last
	cancel  context.CancelCauseFunc
	waiting int  // requests that were not given up
	given   bool // all were given up

	answered chan struct{} // closed when outcomes is set
	outcomes []backends.Outcome
}

// share makes a request in a batch that leaves after wait or before. It returns the
// outcome, and how many requests went together; or 0 if the request was not made,
// because too many batches hang.
func (s *sharer[T]) share(ctx context.Context, e *Elector, r T, wait time.Duration) (o backends.Outcome, together int) {
	b, i := s.join(e, r, wait)
	if b == nil {
		return backends.Outcome{}, 0
	}
	select {
	case <-b.answered:
	case <-ctx.Done():
		s.abandon(b, i, ctx.Err())
		return backends.Outcome{Err: ctx.Err()}, 1
	}
	return b.outcomes[i], len(b.requests)
}

// join adds a request to the batch that leaves next, and returns its index there.
// If too many batches hang it returns no batch.
func (s *sharer[T]) join(e *Elector, r T, wait time.Duration) (*batch[T], int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.hanging >= mostUnanswered+s.members/s.most {
		return nil, 0
	}
	bytes := 0
	if s.bytes != nil {
		bytes = s.bytes(r)
	}
	if b := s.open; b != nil && (s.clashes(b, r) || b.bytes+bytes > mostBytes) {
		s.leaves(b)
	}
	b := s.open
	if b == nil {
		b = &batch[T]{wait: wait, left: make(chan struct{}), answered: make(chan struct{})}
		b.ctx, b.cancel = context.WithCancelCause(context.Background())
		s.open = b
		go s.carry(b, e)
	}
	b.requests = append(b.requests, r)
	b.electors = append(b.electors, e)
	b.bytes += bytes
	b.waiting++
	e.active.Add(1)
	if len(b.requests) == s.most || wait < b.wait { // a full batch, or one that cannot wait so long
		s.leaves(b)
	}
	return b, len(b.requests) - 1
}

// clashes reports whether the batch has a request that r may not go with.
func (s *sharer[T]) clashes(b *batch[T], r T) bool {
	return s.clash != nil && slices.ContainsFunc(b.requests, func(other T) bool { return s.clash(other, r) })
}

// leaves closes a batch to further requests. The caller holds the mutex.
func (s *sharer[T]) leaves(b *batch[T]) {
	if s.open == b {
		s.open = nil
		close(b.left)
	}
}

// abandon gives up one request of a batch. With the last one the batch is given up,
// and the Close of that Elector waits for it.
func (s *sharer[T]) abandon(b *batch[T], i int, cause error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if b.given {
		return
	}
	if b.waiting--; b.waiting > 0 {
		b.electors[i].active.Done()
		b.electors[i] = nil
		return
	}
	b.given = true
	s.hanging++
	s.leaves(b)
	b.cancel(cause)
}

// carry waits for more requests to join, makes them, and wakes all.
func (s *sharer[T]) carry(b *batch[T], e *Elector) {
	due, stop := e.after(b.wait)
	select {
	case <-due:
	case <-b.left:
	}
	stop()
	s.mutex.Lock()
	s.leaves(b)
	s.flying++
	s.mutex.Unlock()
	b.outcomes = s.request(b)
	s.mutex.Lock()
	s.flying--
	if b.given {
		s.hanging--
	}
	b.given = true // it can no longer be given up
	s.mutex.Unlock()
	close(b.answered)
	b.cancel(nil)
	for _, e := range b.electors {
		if e != nil {
			e.active.Done()
		}
	}
}

// request makes the requests of a batch, which no other can join any more.
func (s *sharer[T]) request(b *batch[T]) []backends.Outcome {
	if s.sent != nil {
		for _, r := range b.requests {
			s.sent(r)
		}
	}
	outcomes := s.send(b.ctx, b.requests)
	if len(outcomes) == len(b.requests) {
		return outcomes
	}
	return backends.Outcomes(len(b.requests), fmt.Errorf("%w: the backend answered %d of %d requests", ErrUnavailable, len(outcomes), len(b.requests)))
}
