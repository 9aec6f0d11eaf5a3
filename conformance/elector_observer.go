package conformance

import (
	"context"
	"time"

	"github.com/elector-go/elector"
)

// An observation is one pair of an Observe. The loop body waits until the case
// takes it.
type observation struct {
	leader elector.Leader
	err    error
}

// An observer is an Observe that runs in the background.
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

// ends fails the case unless the last pair has the error. Pairs before it do not
// matter.
func (o *observer) ends(want error, doing string) {
	o.s.Helper()
	var last observation
	for {
		select {
		case p, more := <-o.pairs:
			if !more {
				o.s.is(last.err, want, "observing "+doing)
				return
			}
			if last.err != nil {
				o.s.Errorf("the error of Observe is its last pair: after it came %v", p)
			}
			last = p
		case <-time.After(o.s.limit()):
			o.s.Fatalf("Observe ends with %q: its last pair was %v (%s)", want, last, doing)
		}
	}
}

// who returns a Leader without the fields that depend on time.
func who(l elector.Leader) elector.Leader {
	l.TTL, l.Unchanged = 0, 0
	return l
}
