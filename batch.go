package elector

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
)

// Leases that this process holds through one backend share requests for their
// renewals, if the backend is a backends.Batcher. A renewal that is due waits a
// moment for others, and they go together; a refusal of one does not affect the
// others. Nothing else changes: each lease has its own goroutine and its own
// write with its own attempt, and counts from before it joined the batch, so from
// before the request was sent.

// gathering is the longest that a renewal waits for others.
const gathering = 2 * time.Millisecond

// grid is the number of times in a renewal interval at which the leases of a
// process renew, while few requests can carry them all.
const grid = 4

// mostBytes bounds the texts (IDs, values and extensions, before and after) of the
// records that share a request: stores take requests of a megabyte, and a byte
// may take six bytes in JSON.
const mostBytes = 128 << 10

// batches joins the renewals of the leases held through one backend.
type batches struct {
	backend backends.Batcher
	most    int // renewals in a batch

	mutex   sync.Mutex
	leases  int
	open    *batch // takes renewals until it leaves; nil if there is none
	hanging int    // batches that all members have given up and that have not returned
}

// shared holds the batches of all backends through which this process leads.
var shared = struct {
	mutex sync.Mutex
	of    map[backends.Batcher]*batches
}{of: map[backends.Batcher]*batches{}}

// batchesOf adds a lease. It returns nil if the backend is no Batcher: the leases
// then renew one by one.
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

// leave removes a lease.
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

// points is the number of times in an interval at which the leases renew, 0 if
// there is only one lease. Each grid is part of the finer ones, so that leases
// that share requests still do so when more leases come.
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

// nextRenewal is when to renew after a renewal that worked: one interval after it
// was sent, or up to a quarter of an interval earlier to share a request.
func (l *Lease) nextRenewal() time.Duration {
	every := l.e.o.RenewEvery
	next := l.status.Load().start.Mono + every
	if points := l.batches.points(); points > 0 {
		next -= next % max(every/points, 1)
	}
	return next
}

// sharing decides whether a lease's next renewal shares a request.
type sharing struct {
	shared  bool // the latest renewal did
	alone   int  // renewals that now go by themselves
	penalty int  // renewals that went by themselves after the last failure
}

// outcome records the result of the latest renewal. After a shared request that
// failed as a whole, one renewal goes by itself; after the next such failure
// three, then seven and so on up to 63: a store may take single writes while large
// requests hang.
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

// sender returns how to send the next renewal: with others, if there are any.
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
	electors []*Elector // of each renewal: its Close waits for the batch; nil once the renewal was given up
	bytes    int
	wait     time.Duration // for others
	left     chan struct{} // closed when no renewal may join any more

	ctx     context.Context // ends when all have given up, with the cause of the last
	cancel  context.CancelCauseFunc
	waiting int  // renewals that were not given up
	given   bool // all were given up

	answered chan struct{} // closed when outcomes is set
	outcomes []backends.Outcome
}

// renew makes a renewal in a batch. It returns what Swap would.
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
			// The store may have refused another renewal, so this one goes by
			// itself. That is safe even if this one was applied: it is the same
			// write, and only one of the two can find the version that both
			// replace.
			return s.backend.Swap(ctx, r.Name, r.Prev, r.Next)
		}
	}
	return o.Record, o.Err
}

// join adds a renewal to the batch that leaves next, and returns its index there.
// If too many batches hang it returns no batch, and the renewal goes by itself.
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
	if len(b.renewals) == s.most || wait < b.wait { // a full batch, or one that cannot wait so long
		s.leaves(b)
	}
	return b, len(b.renewals) - 1
}

// chosen counts the bytes of a record that its holder and other processes chose.
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

// leaves closes a batch to further renewals. The caller holds the mutex.
func (s *batches) leaves(b *batch) {
	if s.open == b {
		s.open = nil
		close(b.left)
	}
}

// abandon gives up one renewal of a batch. With the last one the request is given
// up, and the Close of that Elector waits for it.
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

// send waits for more renewals to join, makes the request, and wakes all.
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
	b.given = true // it can no longer be given up
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
