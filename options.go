package elector

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/annex"
	"github.com/elector-go/elector/internal/aside"
	"github.com/elector-go/elector/internal/rule"
)

// Options adjust an Elector. A nil *Options, and the zero value of each field,
// mean the default. New returns ErrInvalid for values that do not fit together.
type Options struct {
	// ID names this candidate to people and observers. Safety does not depend
	// on a unique ID: each acquisition has a random number of its own.
	// Default: host name, process id and a random part.
	ID string

	// TTL is how long the leader may be silent before others may take over.
	// The record holds it, and challengers use the leader's.
	// Default 15 s; at most 24 h.
	TTL time.Duration

	// RenewEvery is the time between renewals. RenewEvery + RequestTimeout is
	// at most TTL*(1-ClockDrift), the time for which a leader trusts its
	// lease. Default a third of that time. Some stores limit the write rate; New
	// then refuses a shorter interval.
	RenewEvery time.Duration

	// RequestTimeout bounds each request to the store from when it is sent, at most
	// RenewEvery. A request for many elections has twice as long while others wait for it.
	// What waits to be sent waits until the lease is over or the context of the campaign ends.
	// Default half of RenewEvery, at most 30 s.
	RequestTimeout time.Duration

	// ReleaseTimeout bounds how long a worker in Run may take to return after
	// it was told to stop, and then how long its release may take.
	// Default TTL; at most 24 h.
	ReleaseTimeout time.Duration

	// ClockDrift is the largest error of this machine's clock rate, as a
	// fraction below 0.5: the holder trusts its lease for TTL*(1-ClockDrift), a
	// challenger waits for TTL*(1+ClockDrift). Default 0.1, the most by which
	// Linux time daemons slew a clock.
	ClockDrift float64

	// MinToken is the least token of an acquisition. Set it when you move from
	// another election system whose tokens were higher.
	MinToken Token

	// Priority, from 0 to 2147483647, orders the candidates that wait: the number of
	// a revision, for example. After a release the candidate with the highest priority
	// tries first. The others, if they have seen that leader, give it a head start:
	// where the store pushes changes five round trips, at least 50 ms and at most
	// 500 ms; elsewhere one of the leader's renewal intervals, at most 30 s. If it does
	// not try in time, they all try. After a crash the same holds from when the record may
	// be taken over. A priority never takes the lead from a leader. A successor that was
	// named, see ResignTo, comes before all priorities.
	//
	// A waiting candidate makes a bid in the leader's record, if its priority is higher
	// than that of the bid there. Where the store pushes changes, one of the candidates
	// with the default priority 0 makes a bid too, if there is none, so that a handover
	// takes two writes, however many candidates wait. A bid costs one read and one write
	// in each term, two requests of the leader, and one read of each waiter if the store
	// pushes no content. The candidate that has made it calls Healthy in each of the
	// leader's renewal intervals. See SetPriority.
	Priority int

	// Value is published with the record while this candidate leads: its
	// address, for example. At most 4096 bytes of UTF-8 without NUL. See
	// Lease.Proclaim.
	Value string

	// Healthy is called before each renewal and each attempt to become leader, and by a
	// waiting candidate that has made a bid, see Priority, in each renewal interval of
	// the leader instead. If it returns an error, a candidate does not campaign and a
	// leader resigns. A call that panics, or takes longer than RequestTimeout, counts as
	// an error.
	Healthy func(context.Context) error

	// Standby is called by Run each time it campaigns, on a goroutine of its own: to load
	// a cache or to follow a log, so that this candidate is warm when it leads. Its
	// context ends when this candidate leads or the campaign ends otherwise, and Run
	// calls the worker only after Standby has returned. The lease counts already then, in
	// Elector.Lease and State. If that takes longer than
	// ReleaseTimeout, Run resigns, and campaigns again once it has returned. A candidate
	// that must not lead before it is warm reports that in Healthy. A panic in Standby
	// ends the process. Default none.
	Standby func(context.Context)

	// StallTimeout, if not 0, allows renewals only if Lease.Check was called
	// within the last StallTimeout, so that a worker that hangs loses the
	// election within StallTimeout+TTL. Default off.
	StallTimeout time.Duration

	// Logger gets a line for each change of leadership, and for each new reason
	// why requests to the store fail. A handler whose Handle does not return holds nothing
	// up: 1,000 lines are kept for it, and it is told how many were lost. Default
	// slog.Default().
	Logger *slog.Logger

	// Trace has callbacks at each step. Default none.
	Trace *Trace

	writeInterval time.Duration // the store's, see backends.Description
}

// resolved returns the options with their defaults, or ErrInvalid.
func (o *Options) resolved(d backends.Description, random func() uint64) (Options, error) {
	var r Options
	if o != nil {
		r = *o
	}
	if r.ID == "" {
		r.ID = defaultID(random())
	}
	r.Logger = cmp.Or(r.Logger, slog.Default())
	r.Trace = cmp.Or(r.Trace, &Trace{})
	r.ClockDrift = cmp.Or(r.ClockDrift, 0.1)
	r.TTL = cmp.Or(r.TTL, max(15*time.Second, d.MinTTL))
	r.writeInterval = d.MinWriteInterval
	r.RenewEvery = cmp.Or(r.RenewEvery, max(r.hold()/3, r.writeInterval))
	r.RequestTimeout = cmp.Or(r.RequestTimeout, max(min(r.RenewEvery/2, 30*time.Second), 1))
	r.ReleaseTimeout = cmp.Or(r.ReleaseTimeout, r.TTL)
	least := max(d.MinTTL, minTTL)
	switch {
	case !(r.ClockDrift > 0 && r.ClockDrift < 0.5): // catches NaN too
		return r, invalid("ClockDrift is %v, not between 0 and 0.5", r.ClockDrift)
	case r.TTL < 0 || r.TTL > backends.MaxTTL:
		return r, invalid("TTL is %v, not between 0 and %v", r.TTL, backends.MaxTTL)
	case r.TTL < time.Microsecond:
		return r, invalid("TTL is %v; did you mean %d * time.Second?", r.TTL, r.TTL)
	case r.TTL < least:
		return r, invalid("TTL is %v, below %v, the shortest for this store", r.TTL, least)
	case r.RenewEvery < 0 || r.RenewEvery >= r.hold():
		return r, invalid("RenewEvery is %v, not between 0 and %v, which is how long a holder may trust its lease: TTL*(1-ClockDrift)", r.RenewEvery, r.hold())
	case r.RenewEvery < r.writeInterval:
		return r, invalid("RenewEvery is %v, and this store limits the write rate of a record to one every %v", r.RenewEvery, r.writeInterval)
	case r.RequestTimeout < 0 || r.RequestTimeout > r.RenewEvery:
		return r, invalid("RequestTimeout is %v, not between 0 and RenewEvery %v", r.RequestTimeout, r.RenewEvery)
	case r.RenewEvery+r.RequestTimeout > r.hold():
		return r, invalid("RenewEvery %v and RequestTimeout %v are together more than %v, which is how long a holder may trust its lease: TTL*(1-ClockDrift); one slow renewal would lose it", r.RenewEvery, r.RequestTimeout, r.hold())
	case r.ReleaseTimeout < 0 || r.ReleaseTimeout > backends.MaxTTL:
		return r, invalid("ReleaseTimeout is %v, not between 0 and %v", r.ReleaseTimeout, backends.MaxTTL)
	case r.StallTimeout < 0:
		return r, invalid("StallTimeout is %v, below 0", r.StallTimeout)
	case r.MinToken > MaxToken:
		return r, invalid("MinToken is above %d", MaxToken)
	}
	return r, cmp.Or(checkText("ID", r.ID), checkPriority(r.Priority, r.ID), checkText("Value", r.Value))
}

// minTTL is the shortest TTL that leaves room for timers at all.
const minTTL = 10 * time.Millisecond

// hold is H: see rule.Hold.
func (o *Options) hold() time.Duration { return rule.Hold(o.TTL, o.ClockDrift) }

// flushes is for how long Close waits for callbacks, and for the log.
const flushes = time.Second

// patience is for how long a step waits for a log handler or a callback, before it leaves
// that behind: what a lease has over after one slow renewal bounds it.
func (o *Options) patience() time.Duration {
	return min(aside.Patience, (o.hold()-o.RenewEvery-o.RequestTimeout)/4)
}

func checkText(what, s string) error {
	switch {
	case len(s) > backends.MaxText:
		return invalid("%s has %d bytes, more than %d", what, len(s), backends.MaxText)
	case strings.IndexByte(s, 0) >= 0:
		return invalid("%s has a NUL byte", what)
	case !backends.ValidText(s):
		return invalid("%s is not UTF-8", what)
	}
	return nil
}

func checkPriority(priority int, id string) error {
	if priority < 0 || priority >= annex.Named {
		return fmt.Errorf("%w: Priority is %d, not between 0 and %d", ErrInvalid, priority, annex.Named-1)
	}
	if priority > 0 {
		return checkSuccessor(id)
	}
	return nil
}

// checkSuccessor returns ErrInvalid unless id can name a successor.
func checkSuccessor(id string) error {
	if err := annex.CheckID(id); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w option: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

func defaultID(random uint64) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d-%06x", host, os.Getpid(), random&0xffffff)
}
