package electortest

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/internal/fault"
)

// Start calls f on a goroutine of its own: a function of your service that calls Run
// of the Elector, or a closure that calls only that.
//
// stop tells f to stop, as SIGTERM tells a process: it ends f's context, waits until
// f has returned, and returns f's error. It fails the test if f does not return. The
// end of the test calls it too.
func (s *Script) Start(f func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	returned := make(chan error, 1)
	s.event(func() { s.ended = false })
	go func() {
		err := f(ctx)
		s.event(func() { s.ended, s.result = true, err })
		returned <- err
	}()
	stop = func() error {
		s.t.Helper()
		cancel()
		late := time.NewTimer(s.patience)
		defer late.Stop()
		select {
		case err := <-returned:
			returned <- err // for the next call
			return err
		case <-late.C:
			s.t.Fatalf("electortest: the function that Start called has not returned within %v of being told to stop; does the worker of election %q return when its context ends?", s.patience, s.name)
			return nil
		}
	}
	s.t.Cleanup(func() {
		s.Restore()
		_ = stop() // its error is the business of a test that calls stop
	})
	return stop
}

// Win waits until the candidate leads: after a start, a deploy, or the end of an
// outage. In a bubble the worker has been called.
func (s *Script) Win() {
	s.t.Helper()
	s.await(func() bool {
		last := len(s.terms) - 1
		if last < 0 || s.terms[last].over {
			return false
		}
		s.next = last
		token, err := s.Elector.Token()
		return err == nil && token == s.terms[last].token
	}, "does not lead")
}

// Loss waits until the lease of the candidate is over, and returns why: an
// [elector.ErrLost], or an [elector.ErrResigned] if the candidate gave the lease up.
// Each lease ends once: a second call waits for the end of the next lease.
func (s *Script) Loss() error {
	s.t.Helper()
	var err error
	s.await(func() bool {
		if s.next >= len(s.terms) || !s.terms[s.next].over {
			return false
		}
		err = s.terms[s.next].err
		s.next++
		return true
	}, "has not lost a lease")
	return err
}

// Outage makes the store unreachable for the candidate until Restore: a network that
// drops packets, or a store that hangs. Requests get no answer, and watches break. A
// lease ends TTL*(1-ClockDrift) after its last renewal was sent. Other processes reach
// the store: see AnotherLeads.
func (s *Script) Outage() { s.set(func() { s.down = true }) }

// Slow makes the store answer each request of the candidate d after it has served it:
// a store under load, or with a slow disk. With a d above
// [elector.Options.RequestTimeout] the store applies writes, and the candidate does
// not learn of it in time: it loses its lease as in an outage.
func (s *Script) Slow(d time.Duration) { s.set(func() { s.delay = d }) }

// Restore ends Outage and Slow. Requests under way are not answered any more. A
// candidate that campaigns pauses between two tries, for up to RenewEvery.
func (s *Script) Restore() { s.set(func() { s.down, s.delay = false, 0 }) }

// Depose waits until the candidate leads, deposes it, and waits until its lease is
// over, with [elector.ErrDeposed]: on ZooKeeper an operator deletes the leader's
// ephemeral node, or a disconnection outlasts the session. On other stores it stands
// for a record that was edited or deleted. The candidate then leaves the election to
// others for TTL*(1+ClockDrift).
func (s *Script) Depose() {
	s.t.Helper()
	s.Win()
	s.store.Depose(s.name)
	s.awaitEnd(s.next)
}

// Pause stops the process of the candidate for d, at the instant of the call, and
// returns at once: a suspended virtual machine, a SIGSTOP, a long garbage collection.
// The candidate's clocks then show d more; other clocks and timers, such as the
// worker's own, do not move. If the lease was valid for less than d, Check fails from
// then on. The context of the worker ends a little later, as after a real pause: when
// Check is called, or the next renewal is due.
func (s *Script) Pause(d time.Duration) { s.machine.asleep.Add(int64(d)) }

// AnotherLeads makes another process with this ID and value the leader, and returns
// its lease: call Release on the lease to hand over. The value is its
// [elector.Options.Value], such as its address.
//
// The candidate is cut off from the store meanwhile, as by a partition of the network.
// If it led, its lease expires first, and then the other process takes over, after
// TTL*(1+ClockDrift). An earlier process of AnotherLeads resigns.
func (s *Script) AnotherLeads(id, value string) *elector.Lease {
	s.t.Helper()
	s.set(func() { s.cut = true })
	if s.other != nil {
		if err := s.other.Close(); err != nil {
			s.t.Fatalf("electortest: %v", err)
		}
	}
	o := s.others
	o.ID, o.Value = id, value
	s.other = s.candidate(s.store.Handle(), newMachine(s.bubble), &o)
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	defer cancel()
	lease, err := s.other.Campaign(ctx)
	if err != nil {
		s.t.Fatalf("electortest: the candidate of AnotherLeads: %v", err)
	}
	s.awaitEnd(len(s.terms) - 1) // it cannot win another one
	s.set(func() { s.cut = false })
	return lease
}

// awaitEnd waits until a term of the candidate is over, if there was one.
func (s *Script) awaitEnd(number int) {
	s.t.Helper()
	s.await(func() bool { return number < 0 || s.terms[number].over }, "still leads")
}

// set changes how the store behaves for the candidate.
func (s *Script) set(change func()) {
	s.mutex.Lock()
	change()
	unreachable, delay := s.down || s.cut, s.delay
	s.mutex.Unlock()
	connect(s.fault, unreachable, delay)
	s.settle()
}

// connect changes how a store behaves.
func connect(f *fault.Backend, unreachable bool, delay time.Duration) {
	var requests fault.Fault
	var watches error
	switch {
	case unreachable:
		requests, watches = fault.Hang, errOutage
	case delay > 0:
		requests = slow(delay)
	}
	f.Always(requests)
	f.CutWatches(watches)
}

var errOutage = fmt.Errorf("%w: electortest: the watch broke", backends.ErrUnavailable)

// slow answers d after the store did.
func slow(d time.Duration) fault.Fault {
	return func(ctx context.Context, _ fault.Call, send fault.Send) (backends.Record, error) {
		r, err := send(ctx)
		answer := time.NewTimer(d)
		defer answer.Stop()
		select {
		case <-answer.C:
			return r, err
		case <-ctx.Done():
			return backends.Record{}, ctx.Err()
		}
	}
}

// A machine is the clocks of a machine that was suspended for a while: its monotonic
// clock stood still, as on Linux, and the others went on.
type machine struct {
	clock.System
	asleep atomic.Int64 // a time.Duration
	until  atomic.Int64 // by the monotonic clock: the others show this time until then
}

// newMachine returns a machine. In a bubble of testing/synctest, where time begins in
// 2000, its time of day is a later one, so that fencing tokens are as large as in
// production.
func newMachine(bubble bool) *machine {
	var m machine
	if bubble {
		m.asleep.Store(int64(26 * 365 * 24 * time.Hour))
	}
	return &m
}

// Now implements [clock.Clock].
func (m *machine) Now() clock.Reading {
	r := m.System.Now()
	r.Wall += time.Duration(m.asleep.Load()) + m.ahead(r.Mono)
	return r
}

// Boot implements [clock.Clock].
func (m *machine) Boot() time.Duration {
	boot := m.System.Boot()
	if boot != 0 {
		boot += time.Duration(m.asleep.Load()) + m.ahead(m.System.Now().Mono)
	}
	return boot
}

// ahead is by how much the clocks are ahead in a pause, whose end they show from its start.
func (m *machine) ahead(now time.Duration) time.Duration {
	return max(0, time.Duration(m.until.Load())-now)
}
