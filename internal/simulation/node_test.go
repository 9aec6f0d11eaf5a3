package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/inject"
)

// A node is one process on one machine.
type node struct {
	w       *world
	name    string
	machine *machine
	link    *link
	backend backends.Backend // the link as the elector has it
	options elector.Options
	elector *elector.Elector
	second  *elector.Elector // in another election, over the same link; may be nil
	witness witness
	stream  func() (life time.Duration, delay func() time.Duration)
	stop    context.CancelFunc // of what the node does, may be nil
	crashed bool

	mutex  sync.Mutex
	warned []string // messages logged as warnings
}

// steady is a network on which each request takes 1 ms each way.
func steady(string) trip { return trip{out: time.Millisecond, back: time.Millisecond} }

// ttl, hold, claim and every are the times of nodes with the usual options: H,
// C and the renewal interval.
const (
	ttl   = 10 * time.Second
	hold  = 9 * time.Second
	claim = 11 * time.Second
	every = 3 * time.Second
)

// node adds a node with a perfect clock and a steady network; adjust may be nil.
func (w *world) node(adjust func(n *node)) *node {
	n := &node{w: w, name: fmt.Sprintf("n%d", len(w.nodes))}
	n.machine = newMachine(len(w.nodes))
	n.link = newLink(n, steady)
	n.options = elector.Options{ID: n.name, TTL: ttl}
	n.stream = func() (time.Duration, func() time.Duration) {
		return 1000 * time.Hour, func() time.Duration { return time.Millisecond }
	}
	number := uint64(len(w.nodes))
	n.options.Logger = slog.New(logHandler{w.history, n.name, func(r slog.Record) {
		if r.Level >= slog.LevelWarn {
			n.mutex.Lock()
			n.warned = append(n.warned, r.Message)
			n.mutex.Unlock()
		}
	}})
	if adjust != nil {
		adjust(n)
	}
	inject.Machine(&n.options, n.machine, w.randomFor(number))
	var b backends.Backend = n.link
	if w.watch != polled {
		b = watchLink{n.link}
	}
	e, err := elector.New(b, election, &n.options)
	if err != nil {
		w.Fatal(err)
	}
	n.elector, n.backend = e, b
	w.nodes = append(w.nodes, n)
	return n
}

// randomFor gives an elector random numbers that depend on the seed, the node
// and the instant, and on nothing else: of two goroutines that draw at the same
// instant nobody knows which is first.
func (w *world) randomFor(number uint64) func() uint64 {
	return func() uint64 { return newDice(w.seed, number, uint64(w.now()), 1).next() }
}

// retire lets the node run out: it is well, connected, and stops.
func (n *node) retire() {
	n.link.cut(false, false)
	n.link.random = steady
	n.machine.wake()
	if n.stop != nil {
		n.stop()
	}
}

// lead makes the node win the election, which must be possible soon.
func (n *node) lead() *elector.Lease {
	n.w.Helper()
	l, err := n.elector.Campaign(context.Background())
	if err != nil {
		n.w.Fatalf("seed %d: %s cannot lead: %v\n%s", n.w.seed, n.name, err, n.w.history.tail(60))
	}
	n.w.check.acquired(n, l)
	return l
}

// company makes the node lead an election of its own besides, whose renewals
// meet those of the one that is looked at.
func (n *node) company(ctx context.Context) {
	o := n.options
	o.ID, o.Logger = n.name+"'s", slog.New(slog.DiscardHandler)
	inject.Machine(&o, n.machine, n.w.randomFor(uint64(1000+len(n.w.nodes))))
	var err error
	if n.second, err = elector.New(n.backend, "company-of-"+n.name, &o); err != nil {
		n.w.Fatal(err)
	}
	go func() {
		for ctx.Err() == nil {
			n.second.Run(ctx, func(ctx context.Context, _ *elector.Lease) error {
				<-ctx.Done()
				return nil
			})
		}
	}()
}

// A bid is a campaign that goes on in the background.
type bid struct{ outcome atomic.Pointer[outcome] }

// An outcome is how a bid ended.
type outcome struct {
	lease *elector.Lease
	at    time.Duration
	err   error
}

// campaign makes the node campaign in the background.
func (n *node) campaign() *bid {
	b := &bid{}
	ctx, cancel := context.WithCancel(context.Background())
	n.stop = cancel
	go func() {
		l, err := n.elector.Campaign(ctx)
		if err == nil {
			n.w.check.acquired(n, l)
		}
		b.outcome.Store(&outcome{l, n.w.now(), err})
	}()
	return b
}

// leads reports whether the bid has won.
func (b *bid) leads() bool {
	o := b.outcome.Load()
	return o != nil && o.lease != nil
}

// won waits until the bid has won, which must be by an instant.
func (b *bid) won(w *world, by time.Duration) *elector.Lease {
	w.Helper()
	for b.outcome.Load() == nil && w.now() < by {
		w.pass(10 * time.Millisecond)
	}
	w.assert(b.leads(), "somebody leads by %v", by)
	return b.outcome.Load().lease
}

// valid reports whether Check succeeds.
func valid(l *elector.Lease) bool { return l.Check() == nil }

func (n *node) log(format string, args ...any) { n.w.history.add(n.name, format, args...) }
