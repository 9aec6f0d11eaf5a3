package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/rs/zerolog"
)

// A network is the way of one candidate to the store: a proxy of its own.
type network struct {
	proxy *toxiproxy.Proxy
	taps  []int // to forget

	swallowed atomic.Int64 // what the candidate sent into the dark
	leaked    atomic.Int64 // what came through it, either way
}

func newNetwork(store string) (*network, error) {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	n := &network{proxy: toxiproxy.NewProxy(server, "candidate", "127.0.0.1:0", store)}
	return n, n.proxy.Start()
}

func (n *network) address() string { return n.proxy.Listen }

func (n *network) close() {
	n.proxy.Stop()
	for _, id := range n.taps {
		taps.Delete(id)
	}
}

// The two directions.
const (
	requests  = "upstream"
	responses = "downstream"
)

// add puts a toxic at the end of what is there already in the direction, on
// connections there are and on new ones.
func (n *network) add(name, kind, direction string, attributes any) error {
	b, err := json.Marshal(map[string]any{"name": name, "type": kind, "stream": direction, "attributes": attributes})
	if err != nil {
		return err
	}
	if _, err := n.proxy.Toxics.AddToxicJson(bytes.NewReader(b)); err != nil {
		return fmt.Errorf("the proxy does not take %s: %w", b, err)
	}
	return nil
}

// tap calls f with all that passes in the direction, before it goes on.
func (n *network) tap(name, direction string, f func([]byte)) error {
	id := int(lastTap.Add(1))
	n.taps = append(n.taps, id)
	taps.Store(id, f)
	return n.add(name, "tap", direction, tap{id})
}

// darken lets nothing pass in the direction any more. Connections stay open,
// and new ones are accepted.
func (n *network) darken(direction string) error {
	if direction == requests {
		if err := n.tap("swallowed", requests, func([]byte) { n.swallowed.Add(1) }); err != nil {
			return err
		}
	}
	if err := n.add("dark-"+direction, "timeout", direction, toxics.TimeoutToxic{Timeout: 0}); err != nil {
		return err
	}
	return n.tap("leaked-"+direction, direction, func([]byte) { n.leaked.Add(1) })
}

// cut is the blackhole: darkness in both directions.
func (n *network) cut() error {
	if err := n.darken(requests); err != nil {
		return err
	}
	return n.darken(responses)
}

// slowThenCut lets the next renewal, a request that has these bytes, through to
// the store, and nothing after it; and lets its answer arrive late, and then
// nothing any more. It returns how late the answer was. It waits for the renewal
// as long as patience.
func (n *network) slowThenCut(renewal []byte, late, patience time.Duration) (time.Duration, error) {
	seen, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	defer once.Do(func() { close(goOn) }) // nothing is held back for ever
	var first sync.Once
	if err := n.tap("renewal", requests, func(b []byte) {
		if bytes.Contains(b, renewal) {
			first.Do(func() { close(seen); <-goOn })
		}
	}); err != nil {
		return 0, err
	}
	select {
	case <-seen:
	case <-time.After(patience):
		return 0, fmt.Errorf("no renewal was seen within %v", patience)
	}
	// The renewal is held back while the other direction is made slow. What the
	// store itself takes is part of the lateness.
	arrived := make(chan struct{})
	var arrival sync.Once
	var sent time.Time
	if err := n.tap("slow", responses, func([]byte) {
		select {
		case <-goOn:
			time.Sleep(time.Until(sent.Add(late)))
			arrival.Do(func() { close(arrived) })
		default: // it answers something else
		}
	}); err != nil {
		return 0, err
	}
	sent = time.Now()
	once.Do(func() { close(goOn) })
	if err := n.darken(requests); err != nil {
		return 0, err
	}
	select {
	case <-arrived:
	case <-time.After(late + patience):
		return 0, fmt.Errorf("the store did not answer a renewal within %v", patience)
	}
	took := time.Since(sent)
	// The answer may have come in pieces, all of them at about the same time.
	time.Sleep(100 * time.Millisecond)
	return took, n.darken(responses)
}

// A tap is a toxic that harms nobody: it shows what passes.
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
