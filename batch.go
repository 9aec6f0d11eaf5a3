package elector

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
)

// Leases that this process holds through one backend share their renewals'
// requests where the backend can make many at once, see backends.Batcher. A
// renewal that is due waits a moment for others, and they leave together; what
// one is refused for does not hinder the others. Nothing else changes: each
// lease has its own goroutine, its own write with its own attempt, and counts
// from before it has joined, so from before the request was sent.

// gathering is the longest that a renewal waits for others.
const gathering = 2 * time.Millisecond

// grid is how many times in a renewal interval the leases of a process renew,
// those with one interval, while they are so few that few requests carry them.
const grid = 4

// mostBytes bounds the texts of the records that share a request, IDs, values and
// extensions, before and after: stores take requests of a megabyte, and a byte
// may be written as six.
const mostBytes = 128 << 10

// batches joins the renewals of the leases held through one backend.
type batches struct {
	backend backends.Batcher
	most    int // renewals in a batch

	mutex   sync.Mutex
	leases  int
	open    *batch // takes renewals until it leaves; nil if there is none
	hanging int    // batches that everybody has given up and that have not returned
}

// shared are the batches of all backends through which this process leads.
var shared = struct {
	mutex sync.Mutex
	of    map[backends.Batcher]*batches
}{of: map[backends.Batcher]*batches{}}

// batchesOf counts a lease in. It returns nil, which renews nothing together,
// if the backend makes no batches.
func batchesOf(backend backends.Backend) *batches {
	b, ok := backend.(backends.Batcher)
	if !ok || !reflect.ValueOf(b).Comparable() {
		return nil
	}
	most := b.Describe().MaxBatch
	if most < 2 {
		return nil
	}
	shared.mutex.Lock()
	defer shared.mutex.Unlock()
	s := shared.of[b]
	if s == nil {
		s = &batches{backend: b, most: most}
		shared.of[b] = s
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.leases++
	return s
}

// leave counts a lease out.
func (s *batches) leave() {
	if s == nil {
		return
	}
	shared.mutex.Lock()
	defer shared.mutex.Unlock()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.leases--; s.leases == 0 {
		delete(shared.of, s.backend)
	}
}

// points is how many times in an interval the leases renew: none if there are
// no others to share with. Each grid is part of the finer ones, so that who has
// met goes on meeting when there are more.
func (s *batches) points() time.Duration {
	if s == nil {
		return 0
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.leases < 2 {
		return 0
	}
	points := grid
	for points*s.most < s.leases {
		points *= 2
	}
	return time.Duration(points)
}

// nextRenewal is when to renew after a renewal that worked: an interval after
// it was sent, or up to a quarter of one earlier if there are others to meet
// then.
func (l *Lease) nextRenewal() time.Duration {
	every := l.e.o.RenewEvery
	next := l.status.Load().start.Mono + every
	if points := l.batches.points(); points > 0 {
		next -= next % max(every/points, 1)
	}
	return next
}

// sharing is whether a lease's renewals go with others.
type sharing struct {
	shared  bool // the latest one did
	alone   int  // how many go by themselves now
	penalty int  // how many did after the last failure
}

// outcome notes what became of the latest renewal. After a shared one that failed
// as a whole, one goes by itself; after the next such failure three, then seven
// and so on up to 63: a store may take single writes while large requests hang.
func (s *sharing) outcome(f *failure) {
	switch {
	case !s.shared:
		s.alone = max(0, s.alone-1)
	case f == nil:
		s.penalty = 0
	case f.kind != conflicting && f.kind != unmarked:
		s.penalty = min(2*s.penalty+1, 63)
		s.alone = s.penalty
	}
}

// sender is how the next renewal is sent: with others, if there are any.
func (l *Lease) sender() swapper {
	l.shares.shared = l.shares.alone == 0 && l.batches.points() > 0
	if !l.shares.shared {
		return l.e.backend.Swap
	}
	return func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
		return l.batches.renew(ctx, l.e, backends.Renewal{Name: name, Prev: prev, Next: next})
	}
}

// A batch is renewals that share a request.
type batch struct {
	renewals []backends.Renewal
	electors []*Elector // of each: their Close waits for the batch; nil for who has given up
	bytes    int
	wait     time.Duration // for others
	left     chan struct{} // closed when nothing may join any more

	ctx     context.Context // ends when everybody has given up, with the cause of the last
	cancel  context.CancelCauseFunc
	waiting int  // of those who joined, who have not given up
	given   bool // everybody has given up

	answered chan struct{} // closed when outcomes are there
	outcomes []backends.Outcome
}

// renew makes a renewal together with others. What it returns is what Swap
// would.
func (s *batches) renew(ctx context.Context, e *Elector, r backends.Renewal) (backends.Record, error) {
	b, i := s.join(e, r)
	if b == nil {
		return s.backend.Swap(ctx, r.Name, r.Prev, r.Next)
	}
	select {
	case <-b.answered:
	case <-ctx.Done():
		s.abandon(b, i, ctx.Err())
		return backends.Record{}, ctx.Err()
	}
	o := b.outcomes[i]
	if o.Err == nil && o.Record.Attempt != r.Next.Attempt {
		return backends.Record{}, fmt.Errorf("%w: the backend answered with another renewal in the place of this one", ErrUnavailable)
	}
	if len(b.renewals) > 1 && o.Err != nil {
		if k := kindOf(o.Err); k == untried || k.hopeless() {
			// By itself, as it may be another one that the store has refused.
			// That is safe should this one have been applied: it is the same
			// write, and only one of the two can find the version that both
			// replace.
			return s.backend.Swap(ctx, r.Name, r.Prev, r.Next)
		}
	}
	return o.Record, o.Err
}

// join puts a renewal into the batch that leaves next, and returns which it is
// of that; no batch if too many hang, and the renewal goes by itself.
func (s *batches) join(e *Elector, r backends.Renewal) (*batch, int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.hanging >= mostUnanswered+s.leases/s.most {
		return nil, 0
	}
	bytes := chosen(r.Prev) + chosen(r.Next)
	if b := s.open; b != nil && (b.has(r.Name) || b.bytes+bytes > mostBytes) {
		s.leaves(b)
	}
	wait := min(gathering, e.o.RequestTimeout/32)
	b := s.open
	if b == nil {
		b = &batch{wait: wait, left: make(chan struct{}), answered: make(chan struct{})}
		b.ctx, b.cancel = context.WithCancelCause(context.Background())
		s.open = b
		go s.send(b, e)
	}
	b.renewals = append(b.renewals, r)
	b.electors = append(b.electors, e)
	b.bytes += bytes
	b.waiting++
	e.active.Add(1)
	if len(b.renewals) == s.most || wait < b.wait { // or it has no time for those who wait longer
		s.leaves(b)
	}
	return b, len(b.renewals) - 1
}

// chosen is how many bytes of a record its holder and others have chosen.
func chosen(r backends.Record) int { return len(r.Holder) + len(r.Value) + len(r.Extensions) }

// has reports whether a renewal of the election is in the batch already.
func (b *batch) has(name string) bool {
	for i := range b.renewals {
		if b.renewals[i].Name == name {
			return true
		}
	}
	return false
}

// leaves closes a batch for others. The caller holds the mutex.
func (s *batches) leaves(b *batch) {
	if s.open == b {
		s.open = nil
		close(b.left)
	}
}

// abandon gives up one's part in a batch. The request is given up with the last
// one, whose Close then waits for it: before that others wait for it.
func (s *batches) abandon(b *batch, i int, cause error) {
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

// send waits for more to join, makes the request, and tells everybody.
func (s *batches) send(b *batch, e *Elector) {
	due, stop := e.after(b.wait)
	select {
	case <-due:
	case <-b.left:
	}
	stop()
	s.mutex.Lock()
	s.leaves(b)
	s.mutex.Unlock()
	b.outcomes = s.request(b)
	close(b.answered)
	b.cancel(nil)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if b.given {
		s.hanging--
	}
	b.given = true // nobody can give it up any more
	for _, e := range b.electors {
		if e != nil {
			e.active.Done()
		}
	}
}

func (s *batches) request(b *batch) []backends.Outcome {
	if len(b.renewals) == 1 {
		only := b.renewals[0]
		r, err := s.backend.Swap(b.ctx, only.Name, only.Prev, only.Next)
		return []backends.Outcome{{Record: r, Err: err}}
	}
	outcomes := s.backend.RenewMany(b.ctx, b.renewals)
	if len(outcomes) == len(b.renewals) {
		return outcomes
	}
	return backends.Outcomes(len(b.renewals), fmt.Errorf("%w: the backend answered %d of %d renewals", ErrUnavailable, len(outcomes), len(b.renewals)))
}
