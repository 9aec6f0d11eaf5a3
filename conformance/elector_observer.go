package conformance

import (
	"context"
	"time"

	"github.com/elector-go/elector"
)

// An observation is one pair of an Observe that runs in the background. The
// loop body waits until the case takes it.
type observation struct {
	leader elector.Leader
	err    error
}

type observer struct {
	s     *suite
	pairs chan observation
}

// observe starts to observe.
func (c *candidate) observe(ctx context.Context) *observer {
	o := &observer{c.el.s, make(chan observation)}
	over, gone := make(chan struct{}), make(chan struct{})
	inner, cancel := context.WithCancel(ctx)
	c.el.s.Cleanup(func() { close(over); cancel(); <-gone })
	go func() {
		defer close(gone)
		defer close(o.pairs)
		for l, err := range c.Observe(inner) {
			select {
			case o.pairs <- observation{l, err}:
			case <-over:
				return
			}
		}
	}()
	return o
}

// next returns the next leader.
func (o *observer) next(rule string) elector.Leader {
	o.s.Helper()
	p := wait(o.s, o.pairs, rule)
	o.s.must(p.err, "observing (%s)", rule)
	return p.leader
}

// until returns the first leader that matches.
func (o *observer) until(rule string, match func(elector.Leader) bool) elector.Leader {
	o.s.Helper()
	for {
		if l := o.next(rule); match(l) {
			return l
		}
	}
}

// ends fails the case unless the error wanted is the next and last pair, but
// for vacancies.
func (o *observer) ends(want error, doing string) {
	o.s.Helper()
	p := wait(o.s, o.pairs, doing)
	for p.err == nil && p.leader.Vacant() && p.leader.ID != "" {
		p = wait(o.s, o.pairs, doing)
	}
	o.s.is(p.err, want, "observing "+doing)
	select {
	case p, more := <-o.pairs:
		if more {
			o.s.Errorf("after the error of Observe comes another pair: %v", p)
		}
	case <-time.After(watchdog):
		o.s.Errorf("Observe does not end after its error")
	}
}
