package overlap

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/network"
)

// A way is that of one candidate to the store: a proxy of its own.
type way struct {
	*network.Proxy
	leaked atomic.Int64 // what came through the dark, either way
}

func newWay(store string) (*way, error) {
	p, err := network.New(store)
	return &way{Proxy: p}, err
}

// swallowed is how many bytes the candidate sent into the dark.
func (w *way) swallowed() int64 { return w.Count().Requests }

// darken lets nothing pass in the direction any more, and looks behind that.
func (w *way) darken(direction string) error {
	if err := w.Darken(direction); err != nil {
		return err
	}
	return w.Tap("leak", direction, func([]byte) { w.leaked.Add(1) })
}

// cut is the blackhole: darkness in both directions.
func (w *way) cut() error {
	if err := w.darken(network.Requests); err != nil {
		return err
	}
	return w.darken(network.Replies)
}

// A renewal is the next one of the candidate, which is held back where it comes.
type renewal struct {
	seen chan struct{} // closed when it is there
	free chan struct{} // closed when it may go on
	goOn func()        // lets it go on
}

// hold waits for the next renewal: a request that has these bytes.
func (w *way) hold(bytesOf []byte) (renewal, error) {
	r := renewal{seen: make(chan struct{}), free: make(chan struct{})}
	r.goOn = sync.OnceFunc(func() { close(r.free) })
	var first sync.Once
	return r, w.Tap("renewal", network.Requests, func(b []byte) {
		if bytes.Contains(b, bytesOf) {
			first.Do(func() { close(r.seen); <-r.free })
		}
	})
}

// slowThenCut lets the renewal through to the store, and nothing after it; and
// lets its answer arrive late, and then nothing any more. It returns how late the
// answer was. It waits for the renewal as long as patience.
func (w *way) slowThenCut(r renewal, late, patience time.Duration) (time.Duration, error) {
	defer r.goOn() // nothing is held back for ever
	select {
	case <-r.seen:
	case <-time.After(patience):
		return 0, fmt.Errorf("no renewal was seen within %v", patience)
	}
	// The renewal is held back while the other direction is made slow. What the
	// store itself takes is part of the lateness.
	arrived := make(chan struct{})
	var arrival sync.Once
	var sent time.Time
	if err := w.Tap("slow", network.Replies, func([]byte) {
		select {
		case <-r.free:
			time.Sleep(time.Until(sent.Add(late)))
			arrival.Do(func() { close(arrived) })
		default: // it answers something else
		}
	}); err != nil {
		return 0, err
	}
	sent = time.Now()
	r.goOn()
	if err := w.darken(network.Requests); err != nil {
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
	return took, w.darken(network.Replies)
}
