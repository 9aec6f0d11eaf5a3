package electorgocron

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/elector-go/elector"
)

// An Elector is a gocron.Elector: the leader runs all jobs. NewElector makes it, and
// Run campaigns.
type Elector struct {
	elector *elector.Elector
	minHold time.Duration

	mutex sync.Mutex
	lease *elector.Lease // nil unless this process leads and was not told to stop
	last  time.Time      // when IsLeader last returned nil
}

// NewElector returns a gocron.Elector that leads when e does. minHold is the minimum
// hold, 0 for DefaultMinHold: if this process is told to stop, it keeps the lease for
// so long after the last tick that it ran. It is at most 0.4 of the time that a lease
// is valid, TTL*(1-ClockDrift), and of ReleaseTimeout.
func NewElector(e *elector.Elector, minHold time.Duration) *Elector {
	if minHold == 0 {
		minHold = DefaultMinHold
	}
	return &Elector{elector: e, minHold: minHold}
}

// Run campaigns, and leads, again and again. It blocks until ctx ends, and returns
// what [elector.Elector.Run] returns; and ErrInvalid if the minimum hold is too long.
//
// Run does not wait for jobs. End its context after the scheduler's Shutdown, which
// waits for them, or the next leader may run a job while it still runs here.
func (x *Elector) Run(ctx context.Context) error {
	return x.elector.Run(ctx, x.lead)
}

func (x *Elector) lead(ctx context.Context, lease *elector.Lease) error {
	// With the default options half of the lease is left whenever no renewal fails.
	if err := lease.CheckFor(x.minHold * 5 / 2); x.minHold < 0 || errors.Is(err, elector.ErrInvalid) {
		return fmt.Errorf("electorgocron: election %q: %w: the minimum hold is %v, not between 0 and 0.4 of the time that a lease is valid, TTL*(1-ClockDrift); raise Options.TTL", lease.Election(), elector.ErrInvalid, x.minHold)
	}
	x.mutex.Lock()
	x.lease, x.last = lease, time.Time{}
	x.mutex.Unlock()
	<-ctx.Done()
	x.mutex.Lock()
	x.lease = nil
	hold := time.Until(x.last.Add(x.minHold))
	x.mutex.Unlock()
	if lease.Check() == nil {
		time.Sleep(hold)
	}
	return nil
}

// IsLeader returns nil if this process leads, will not stop, and has a lease that is
// valid for the minimum hold even if no renewal succeeds. It never waits: it reads the
// clocks and not the store.
func (x *Elector) IsLeader(context.Context) error {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if x.lease == nil {
		return x.notLeader()
	}
	if err := x.lease.CheckFor(x.minHold); err != nil {
		return err
	}
	x.last = time.Now()
	return nil
}

// Lease returns the lease of this process, for its Check, Context and Token; or
// ErrNotLeader.
func (x *Elector) Lease() (*elector.Lease, error) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if x.lease == nil {
		return nil, x.notLeader()
	}
	return x.lease, nil
}

func (x *Elector) notLeader() error {
	return fmt.Errorf("electorgocron: election %q: %w", x.elector.Name(), elector.ErrNotLeader)
}
