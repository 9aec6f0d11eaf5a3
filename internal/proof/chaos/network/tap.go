package network

import (
	"sync"
	"sync/atomic"

	"github.com/Shopify/toxiproxy/v2/toxics"
)

// Tap calls f with all that passes in a direction from now on, before it goes
// on: on every connection, behind the toxics that are there. What f blocks stays
// where it is. Heal removes the tap.
func (p *Proxy) Tap(name, direction string, f func([]byte)) error {
	id := int(lastTap.Add(1))
	taps.Store(id, f)
	p.orders.Lock()
	defer p.orders.Unlock()
	p.taps = append(p.taps, id)
	return p.add(name, direction, "tap", tap{id})
}

// A tap is a toxic that does no harm: it shows what passes.
type tap struct {
	ID int `json:"id"`
}

var (
	taps    sync.Map // by ID: func([]byte); toxics are made from JSON
	lastTap atomic.Int64
)

func init() { toxics.Register("tap", new(tap)) }

// Pipe implements toxics.Toxic.
func (t *tap) Pipe(stub *toxics.ToxicStub) {
	for {
		select {
		case <-stub.Interrupt:
			return
		case c := <-stub.Input:
			if c == nil {
				stub.Close()
				return
			}
			if f, ok := taps.Load(t.ID); ok {
				f.(func([]byte))(c.Data)
			}
			stub.Output <- c
		}
	}
}
