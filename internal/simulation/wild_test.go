package simulation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/annex"
)

// A wild run is one in which, besides, options differ from node to node, Electors
// share processes and names, people edit the record, health comes and goes, and
// every method is called at any time.
type wild struct {
	*storm
	oneID  bool      // all candidates have one ID
	drifts bool      // each machine has a ClockDrift of its own
	ttls   bool      // TTLs differ by up to 1:12
	armed  bool      // the next creation is applied once more, later
	bid    annex.Bid // that stood before, see stale

	farewell error // why the latest lease ended
}

// goWild makes a run a wild one.
func (s *storm) goWild() {
	d := newDice(s.w.seed, 9)
	x := &wild{storm: s, oneID: d.chance(0.3), drifts: d.chance(0.7), ttls: d.chance(0.6)}
	for kind, on := range map[faultKind]bool{oneIdentity: x.oneID, driftsMixed: x.drifts, ttlsMixed: x.ttls} {
		if on {
			s.hit(kind, nil)
		}
	}
	s.w.check.again = func() { s.hit(creationAgain, nil) }
	s.wild = x
}

// adjust draws a node's options.
func (x *wild) adjust(n *node) {
	d := newDice(x.w.seed, n.number, 17)
	o := &n.options
	if x.drifts {
		o.ClockDrift = []float64{0.01, 0.05, 0.2, 0.35, 0.49}[d.below(5)]
	}
	if x.ttls {
		o.TTL = x.ttl / 4 * time.Duration(1+d.below(12))
	}
	if d.chance(0.4) {
		o.Priority = d.below(8)
	}
	if x.oneID {
		o.ID = "everybody"
	}
	if d.chance(0.3) {
		o.StallTimeout = d.between(o.TTL/2, 2*o.TTL)
	}
	if d.chance(0.3) {
		o.ReleaseTimeout = d.between(o.TTL/10, o.TTL)
	}
	if d.chance(0.4) {
		o.Healthy = x.healthy(n)
	}
}

// begins starts a node, and perhaps a second Elector of its process.
func (x *wild) begins(n *node, after time.Duration) {
	go func() {
		time.Sleep(after)
		go x.meddle(n)
		x.serve(n)
	}()
	if newDice(x.w.seed, n.number, 18).chance(0.4) {
		x.hit(secondElector, n)
		x.another(n, after+x.ttl/7)
	}
}

// another starts one more Elector of a node's process.
func (x *wild) another(n *node, after time.Duration) {
	m := x.w.join(n, func(m *node) {
		m.storm = x.storm
		x.adjust(m)
		m.options.ClockDrift = n.options.ClockDrift // it is the machine's
		if newDice(x.w.seed, m.number, 19).chance(0.5) {
			m.options.ID = n.options.ID
		}
		m.stream = x.streams(m, int(m.number))
	})
	if m == nil {
		return
	}
	go func() {
		m.machine.sleep(m.life, after)
		go x.meddle(m)
		x.serve(m)
	}()
}

// healthy is a health that comes and goes.
func (x *wild) healthy(n *node) func(context.Context) error {
	return func(ctx context.Context) error {
		now := x.w.now()
		if x.calmed() || !newDice(x.w.seed, n.number, uint64(now/x.ttl), 12).chance(0.1) {
			return nil
		}
		x.hit(unhealthy, n)
		d := newDice(x.w.seed, n.number, uint64(now), 13)
		switch d.below(12) {
		case 0:
			<-ctx.Done()
			time.Sleep(time.Microsecond) // the caller is first to give up
		case 1:
			panic("the check panics")
		}
		return x.opaque(d)
	}
}

// opaque is an error of other code, which may be anything: nothing may be
// decided by it.
func (x *wild) opaque(d *dice) error {
	x.mutex.Lock()
	farewell := x.farewell
	x.mutex.Unlock()
	if farewell != nil && d.chance(0.3) {
		return farewell // as with elections that are nested
	}
	return wrapped(opaques[d.below(len(opaques))], d.below(4))
}

var opaques = []error{
	errors.New("something else"),
	elector.ErrLost, elector.ErrResigned, elector.ErrNotLeader, elector.ErrHeld, elector.ErrBusy, elector.ErrUnhealthy,
	elector.ErrClosed, elector.ErrDeposed, elector.ErrTokenRegressed, elector.ErrTokenExhausted, elector.ErrInvalid,
	elector.ErrForeignRecord, elector.ErrDenied, elector.ErrMisconfigured, elector.ErrUnavailable,
	backends.ErrConflict, backends.ErrNotTried, context.Canceled, context.DeadlineExceeded,
	&elector.HeldError{Leader: elector.Leader{ID: "somebody", Token: 7}},
}

// wrapped returns an error in one of the ways in which it can come.
func wrapped(err error, way int) error {
	switch way {
	case 0:
		return fmt.Errorf("of the worker: %w", err)
	case 1:
		return errors.Join(errors.New("two things"), err)
	case 2:
		return &elector.Error{Op: "lead", Election: "another", Err: err}
	}
	return err
}

// longest is the longest that one of the nodes must wait to take over from
// another one.
func (x *wild) longest() time.Duration {
	var ttl, most time.Duration
	for _, n := range x.w.all() {
		ttl = max(ttl, n.options.TTL)
	}
	for _, n := range x.w.all() {
		most = max(most, time.Duration(float64(challenge(n, ttl))/(1-rho(n))))
	}
	return most
}

// pester asks a leader without faults to resign, again and again, which must
// not cost it its lease.
func (x *wild) pester() {
	c := x.w.check
	d := newDice(x.w.seed, 20)
	o := c.leader()
	if o == nil || o.n.options.StallTimeout > 0 || o.lease.Remaining() < holds(o.n)/2 || !o.n.witness.wrote(x.w.record()) {
		return // it may lose its lease by what was before, or has already and does not know
	}
	for range 20 {
		x.w.pass(d.between(o.n.options.TTL/20, o.n.options.TTL/5))
		c.edit(d.request)
		if over := o.lease.Context().Err(); over != nil {
			cause := context.Cause(o.lease.Context())
			x.w.assert(errors.Is(cause, elector.ErrResigned), "a request costs no lease: %v", cause)
			return
		}
	}
}
