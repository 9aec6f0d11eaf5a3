// Package shortage measures what becomes of many elections of one process while it has too
// little processor, while the store stands still, and when all campaigns begin at once.
package shortage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/elector-go/elector/internal/proof/stores"
)

// A Part is one shortage.
type Part string

// The parts, in their order. One process goes through all but the last.
const (
	Scarce  Part = "65"    // percent of the processor time that the elections take at rest
	Starved Part = "45"    // the same
	Stopped Part = "stop"  // the store stands still
	Begun   Part = "begin" // all campaigns begin at once
)

// Parts are all parts.
var Parts = []Part{Scarce, Starved, Stopped, Begun}

// share returns which share of the processor time at rest a part leaves; 0 if it leaves all.
func (p Part) share() float64 {
	switch p {
	case Scarce:
		return 0.65
	case Starved:
		return 0.45
	}
	return 0
}

// String says what a part is.
func (p Part) String() string {
	switch p {
	case Scarce, Starved:
		return fmt.Sprintf("%.0f %% of the processor time at rest, for %v", 100*p.share(), shortage)
	case Stopped:
		return fmt.Sprintf("the store stopped for %v", stopped)
	}
	return "all campaigns begun at once"
}

const (
	shortage = time.Minute      // how long a process has too little
	stopped  = 8 * time.Second  // how long the store stands still
	limit    = 15 * time.Minute // of a child, and of a store
	atATime  = 64               // campaigns, where they do not begin at once
)

// Options say what to measure.
type Options struct {
	Kind      string // of store: etcd or postgres
	Parts     []Part
	Elections int // of a process that is led
	Begun     int // campaigns that begin at once
	Log       func(format string, args ...any)
}

// Measure starts a store, and measures one part after the other. It calls report with the
// row of each. It blocks for minutes.
func Measure(ctx context.Context, o Options, report func(Row)) (err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s, err := stores.StartDurable(ctx, o.Kind)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	led := slices.DeleteFunc(slices.Clone(o.Parts), func(p Part) bool { return p == Begun })
	if len(led) > 0 {
		if err := o.short(ctx, s, led, report); err != nil {
			return err
		}
	}
	if len(led) < len(o.Parts) {
		return o.crowd(ctx, s, report)
	}
	return nil
}

// short measures elections that are led.
func (o Options) short(ctx context.Context, s *stores.Store, parts []Part, report func(Row)) (err error) {
	began := time.Now()
	p, err := start(ctx, s.URL, o.Elections, atATime)
	if err != nil {
		return err
	}
	var q *quota
	defer func() {
		if q != nil {
			err = errors.Join(err, q.lift())
		}
		err = errors.Join(err, p.end())
		if q != nil {
			err = errors.Join(err, q.close())
		}
	}()
	if err := p.begin(ctx); err != nil {
		return err
	}
	all, err := p.watch(ctx, 2*time.Minute, func() bool { return p.last.Led == o.Elections })
	if err == nil && !all {
		err = fmt.Errorf("%d of %d elections are led after two minutes", p.last.Led, o.Elections)
	}
	if err != nil {
		return err
	}
	o.Log("%s: %d elections are led after %.0f s", o.Kind, o.Elections, time.Since(began).Seconds())
	if err := p.rest(ctx, ttl); err != nil {
		return err
	}
	idle := 0.0
	if slices.ContainsFunc(parts, func(p Part) bool { return p.share() > 0 }) {
		if q, err = newQuota(groups, p.PID()); err != nil {
			return err
		}
		if idle, err = o.idle(ctx, p); err != nil {
			return err
		}
	}
	for i, part := range parts {
		begin, end, d := s.Pause, s.Continue, stopped
		if share := part.share(); share > 0 {
			begin, end, d = func() error { return q.set(share * idle) }, q.lift, shortage
		}
		g, err := o.through(ctx, p, Row{Kind: o.Kind, Part: part, Elections: o.Elections}, begin, end, d)
		if err != nil {
			return fmt.Errorf("%v: %w", part, err)
		}
		report(g.row)
		if g.row.After < 0 && i+1 < len(parts) {
			return fmt.Errorf("not all elections are led again within %v, so what follows is not measured", patience)
		}
	}
	return nil
}

// idle returns which share of a core the process takes at rest, and logs what a renewal takes.
func (o Options) idle(ctx context.Context, p *process) (share float64, err error) {
	before, began := p.last, time.Now()
	if err := p.rest(ctx, 2*ttl); err != nil {
		return 0, err
	}
	took, records := p.last.Processor-before.Processor, p.last.Requests.Records-before.Requests.Records
	share = took.Seconds() / time.Since(began).Seconds()
	o.Log("%s: %d elections take %.1f %% of a core at rest, and each of %d renewals %v and %.1f allocations", o.Kind, o.Elections, share*100,
		records, took/time.Duration(max(records, 1)), float64(p.last.Allocated-before.Allocated)/float64(max(records, 1)))
	return share, nil
}

// through lets a shortage pass, and waits until all are led again.
func (o Options) through(ctx context.Context, p *process, r Row, begin, end func() error, d time.Duration) (*gauge, error) {
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	g := newGauge(r, p.phase, ttl, time.Now())
	look := func() bool { return g.take(p.last, time.Now()) }
	if err := begin(); err != nil {
		return nil, errors.Join(err, end())
	}
	_, err := p.watch(ctx, d, look)
	if err := errors.Join(err, end()); err != nil {
		return nil, err
	}
	g.lifted = time.Now()
	_, err = p.watch(ctx, patience+g.settle, look)
	return g, err
}

// crowd measures campaigns that begin at once.
func (o Options) crowd(ctx context.Context, s *stores.Store, report func(Row)) (err error) {
	p, err := start(ctx, s.URL, o.Begun, o.Begun)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	now := time.Now()
	g := newGauge(Row{Kind: o.Kind, Part: Begun, Elections: o.Begun}, 1, time.Minute, now)
	g.lifted = now
	if err := p.begin(ctx); err != nil {
		return err
	}
	if _, err := p.watch(ctx, patience+g.settle, func() bool { return g.take(p.last, time.Now()) }); err != nil {
		return err
	}
	report(g.row)
	return nil
}
