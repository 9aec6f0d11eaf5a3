package partition

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/internal/rule"
)

// A Lease is this process's hold on one partition. Many goroutines may use it. It ends
// with the lease on the process's seat, or before that when the partition is given up.
type Lease struct {
	group     *Group
	seat      *elector.Lease
	partition int
	ctx       context.Context
	cancel    context.CancelCauseFunc

	won     atomic.Pointer[backends.Record] // the state that acquired; written again if it was deleted
	audited atomic.Pointer[clock.Reading]   // before the request was sent that showed the record last
	sign    atomic.Int64                    // of the worker's life, the latest, as a monotonic time; 0 while none is called
	over    atomic.Pointer[ending]          // nil while only the seat's lease or the audit can end it
}

// An ending is why a lease is over.
type ending struct{ err error }

// Partition returns the number of the partition, from 0.
func (l *Lease) Partition() int { return l.partition }

// Election returns the name of the partition's record, which is that of the resource in
// guards and fences.
func (l *Lease) Election() string { return l.group.record(l.partition) }

// Token returns the fencing token, even after the end of the lease. Each owner of a
// partition has a greater one than all before.
func (l *Lease) Token() elector.Token { return elector.Token(l.won.Load().Token) }

// Lossy is that of [elector.Lease].
func (l *Lease) Lossy() string { return l.seat.Lossy() }

// Context returns a context that ends when the worker must stop: when the partition moves
// to another member, when this process leaves the group, and at the end of the lease. In the first
// two cases the lease stays valid until the worker has returned, for at most
// ReleaseTimeout.
func (l *Lease) Context() context.Context { return l.ctx }

// Check returns nil while the lease is valid; elector.ErrLost or elector.ErrResigned from
// then on. Call it before each side effect. It reads the clocks, takes no lock, allocates
// nothing and never waits.
//
// A process that pauses after Check can act late: send the token with the write, and let
// the resource refuse it.
func (l *Lease) Check() error {
	if at := l.sign.Load(); at != 0 && l.group.options.StallTimeout > 0 {
		l.sign.CompareAndSwap(at, int64(l.group.now())) // unless the call has ended
	}
	if err := l.seat.Check(); err != nil {
		return err
	}
	return l.valid()
}

// stalls returns when the worker has not called Check for StallTimeout.
func (l *Lease) stalls() time.Duration {
	at := l.sign.Load()
	if at == 0 || l.group.options.StallTimeout == 0 {
		return rule.Never
	}
	return time.Duration(at) + l.group.options.StallTimeout
}

// valid is what rule 1 of docs/design-partitions.md adds to the seat's lease.
func (l *Lease) valid() error {
	if over := l.over.Load(); over != nil {
		return over.err
	}
	if l.unaudited() > 0 {
		return nil
	}
	l.end(fmt.Errorf("%w: its record was not read for %v", elector.ErrLost, l.group.auditHold()))
	return l.over.Load().err
}

// unaudited returns for how long the lease is valid unless its record is read again.
func (l *Lease) unaudited() time.Duration {
	return l.group.auditHold() - clock.Elapsed(l.group.clock, *l.audited.Load())
}

// Remaining returns how long the lease stays valid unless the seat's lease is renewed, 0
// after its end.
func (l *Lease) Remaining() time.Duration {
	left := l.seat.Remaining()
	if left == 0 || l.valid() != nil {
		return 0
	}
	return min(left, max(0, l.unaudited()))
}

// Acquisition implements [backends.Lease], for the guards of the backends. It counts as a
// call of Check.
func (l *Lease) Acquisition() (backends.Acquisition, error) {
	if err := l.Check(); err != nil {
		return backends.Acquisition{}, err
	}
	left := l.Remaining()
	if left <= 0 {
		return backends.Acquisition{}, l.ended()
	}
	return backends.Acquisition{Backend: l.group.backend, Election: l.Election(), Record: *l.won.Load(), Remaining: left}, nil
}

// ended returns why a lease is over that was not valid a moment ago.
func (l *Lease) ended() error {
	if err := l.Check(); err != nil {
		return err
	}
	return l.group.fail("lead", l.partition, fmt.Errorf("%w: it was not renewed in time", elector.ErrLost))
}

// end ends the lease; the first cause stays.
func (l *Lease) end(cause error) {
	err := l.group.fail("lead", l.partition, cause)
	l.over.CompareAndSwap(nil, &ending{err})
	l.cancel(err)
}

// stop tells the worker to return. The lease stays valid.
func (l *Lease) stop(why string) {
	l.cancel(l.group.fail("lead", l.partition, fmt.Errorf("%w: %s", elector.ErrResigned, why)))
}

// String returns the partition and the token, for logs.
func (l *Lease) String() string {
	return fmt.Sprintf("partition %d, token %d", l.partition, l.Token())
}
