package network

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Fault is one way in which the network breaks. It breaks the connections
// that are open and those that are made later. A client can always connect, but
// for Refuse: it is the proxy that it connects to.
type Fault string

const (
	// Cut is silence in both directions: requests and replies vanish. The
	// client sees its own deadlines pass.
	Cut Fault = "cut"

	// LoseRequests is silence from the client to the store. Replies that are
	// under way arrive, and so does what the store says by itself: events of a
	// watch, notifications.
	LoseRequests Fault = "lose requests"

	// LoseReplies is silence from the store to the client. Requests on
	// connections that are open arrive and are done, and the client sees its
	// deadline pass. On a new connection that begins with a handshake, to
	// every store but DynamoDB, GCS, AzureBlob and S3, it gets no further than that.
	LoseReplies Fault = "lose replies"

	// Reset ends connections with a reset, and new ones as soon as they are
	// made. The client sees an error at once.
	Reset Fault = "reset"

	// Refuse is a store that is not there: connections are reset, and new
	// ones refused.
	Refuse Fault = "refuse"

	// Latency delays requests and replies, each by what Delay has set or else
	// 200 ms. Nothing is lost. A request may arrive after its client gave up.
	Latency Fault = "latency"

	// Trickle lets through 16 bytes at a time, ten times a second at most.
	// Requests take seconds, and may arrive after their client gave up.
	Trickle Fault = "trickle"

	// SlowReplies delays replies by what Delay has set or else 250 ms, which
	// is just inside the deadline of requests with a TTL of 2 s.
	SlowReplies Fault = "slow replies"

	// SlowToConnect ends the connections, and makes no new one before 3 s, as a server
	// does that is slow to sign clients in.
	SlowToConnect Fault = "slow to connect"
)

// slowness is how long SlowToConnect lasts for a connection.
const slowness = 3 * time.Second

// Faults are all of them.
var Faults = []Fault{Cut, LoseRequests, LoseReplies, Reset, Refuse, Latency, Trickle, SlowReplies, SlowToConnect}

// Break breaks the network in one way and mends what was broken until now, as
// Heal does. It returns when the fault is in force.
func (p *Proxy) Break(f Fault) error {
	p.orders.Lock()
	defer p.orders.Unlock()
	return p.replace(f)
}

// Heal lets everything pass again. Connections that have lost something are cut
// so that clients see it; what was only delayed arrives at once.
func (p *Proxy) Heal() error {
	p.orders.Lock()
	defer p.orders.Unlock()
	return p.mend()
}

// Delay sets how long Latency delays a request on its way up to the store and a
// reply on its way down, and how long SlowReplies delays the reply. It breaks
// nothing by itself; if one of these two is in force it changes it.
func (p *Proxy) Delay(up, down time.Duration) error {
	p.orders.Lock()
	defer p.orders.Unlock()
	if up < 0 || down < 0 {
		return fmt.Errorf("a delay cannot be negative: %v up, %v down", up, down)
	}
	p.up, p.down, p.told = up, down, true
	if p.fault == Latency || p.fault == SlowReplies {
		return p.replace(p.fault)
	}
	return nil
}

// A Count is what faults have done since New.
type Count struct {
	Requests    int64 // bytes from clients that were lost or delayed
	Replies     int64 // bytes from the store that were lost or delayed
	Connections int64 // connections that were reset; refused ones cannot be counted
}

// Sum tells two counts apart: it grows with each effect of a fault.
func (c Count) Sum() int64 { return c.Requests + c.Replies + c.Connections }

// Count says what faults have done until now, so that a test can tell that its
// fault happened. Bytes count when they reach the proxy.
func (p *Proxy) Count() Count {
	return Count{p.requests.Load(), p.replies.Load(), p.cutByForce.Load()}
}

func (p *Proxy) replace(f Fault) error {
	if p.closed {
		return errors.New("the proxy is closed")
	}
	if !slices.Contains(Faults, f) {
		return fmt.Errorf("unknown fault %q; known are %q", f, Faults)
	}
	if err := p.mend(); err != nil {
		return err
	}
	p.mutex.Lock()
	p.fault = f
	p.mutex.Unlock()
	switch f {
	case Cut:
		return errors.Join(p.darken(Requests), p.darken(Replies))
	case LoseRequests:
		return p.darken(Requests)
	case LoseReplies:
		return p.darken(Replies)
	case Reset:
		p.cut(true)
	case Refuse:
		err := p.refuse()
		p.cut(true)
		return err
	case Latency:
		up, down := 200*time.Millisecond, 200*time.Millisecond
		if p.told {
			up, down = p.up, p.down
		}
		return errors.Join(p.delay(Requests, up), p.delay(Replies, down))
	case Trickle:
		slices := map[string]any{"average_size": 16, "delay": (100 * time.Millisecond).Microseconds()}
		return errors.Join(p.add("slow", Requests, "slicer", slices), p.add("slow", Replies, "slicer", slices))
	case SlowToConnect:
		p.cut(true)
	case SlowReplies:
		down := 250 * time.Millisecond
		if p.told {
			down = p.down
		}
		return p.delay(Replies, down)
	}
	return nil
}

// The two directions.
const (
	Requests = "upstream"
	Replies  = "downstream"
)

// Slow delays all that passes in a direction, besides the faults that are there,
// until Heal.
func (p *Proxy) Slow(direction string, d time.Duration) error {
	p.orders.Lock()
	defer p.orders.Unlock()
	return p.delay(direction, d)
}

// Darken lets nothing pass in a direction any more, behind the faults that are
// there, until Heal. Connections stay open, and new ones are accepted.
func (p *Proxy) Darken(direction string) error {
	p.orders.Lock()
	defer p.orders.Unlock()
	return p.darken(direction)
}

func (p *Proxy) darken(direction string) error {
	p.lossy = true
	return p.add("dark", direction, "timeout", nil)
}

func (p *Proxy) delay(direction string, d time.Duration) error {
	if d == 0 {
		return nil
	}
	return p.add("late", direction, "latency", map[string]any{"latency": d.Milliseconds()})
}

// A toxic is one of toxiproxy's, in one direction of every connection.
type toxic struct{ name, direction string }

// add puts a toxic behind those that are there.
func (p *Proxy) add(name, direction, kind string, attributes any) error {
	t := toxic{name + " " + direction, direction}
	config, err := json.Marshal(map[string]any{"name": t.name, "type": kind, "stream": direction, "attributes": attributes})
	if err != nil {
		return err
	}
	// No connection begins meanwhile: toxiproxy takes a lock of its own.
	if _, err := p.toxics.AddToxicJson(bytes.NewReader(config)); err != nil {
		return fmt.Errorf("toxiproxy does not take %s: %w", config, err)
	}
	p.broken = append(p.broken, t)
	if kind != "tap" {
		p.holds(direction, true)
	}
	return nil
}

func (p *Proxy) holds(direction string, held bool) {
	if direction == Requests {
		p.holdsRequests.Store(held)
	} else {
		p.holdsReplies.Store(held)
	}
}

// mend removes the fault.
func (p *Proxy) mend() error {
	if p.lossy {
		// While the toxics are in place, which swallow what comes: they would
		// cut too, but leave goroutines behind if something came.
		for more := true; more; {
			p.cut(false)
			p.mutex.Lock()
			if more = p.linked(); more {
				p.mutex.Unlock()
			}
		}
	} else {
		p.mutex.Lock()
	}
	var errs []error
	for _, t := range p.broken {
		p.holds(t.direction, false)
		errs = append(errs, p.toxics.RemoveToxic(context.Background(), t.name))
	}
	for _, id := range p.taps {
		taps.Delete(id)
	}
	p.broken, p.taps, p.lossy = nil, nil, false
	was := p.fault
	p.fault = ""
	p.mutex.Unlock()
	if was == Refuse {
		if err := p.listen(); err != nil {
			errs = append(errs, fmt.Errorf("a proxy of %s cannot listen again where it did: %w", p.upstream, err))
		}
	}
	return errors.Join(errs...)
}
