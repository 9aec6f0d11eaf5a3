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
	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/internal/inject"
)

// A node is one Elector of a process on a machine. A second one of the same
// process shares the machine and the link.
type node struct {
	w       *world
	name    string
	number  uint64
	machine *machine
	link    *link
	backend backends.Backend // the link as the elector has it
	options elector.Options
	elector *elector.Elector
	others  []*elector.Elector // in another election, over the same link
	witness witness
	trail   *trail
	stream  func() (life time.Duration, delay func() time.Duration)
	life    context.Context // of what the node does
	stop    context.CancelFunc
	lag     time.Duration // of its timers, so that they do not fire with those of its process's other Electors

	crashed atomic.Bool
	closed  atomic.Bool            // Close was called
	office  atomic.Pointer[office] // the latest
	brief   atomic.Int32           // calls that may end when a read is answered
	drawn   sync.Map               // by random number: see random
	storm   *storm                 // that it lives in; nil outside of the random campaign

	mutex  sync.Mutex
	warned []string // messages logged as warnings
}

// steady is a network on which each request takes 1 ms each way.
func steady(string, uint64) trip { return trip{out: time.Millisecond, back: time.Millisecond} }

// ttl, hold, claim and every are the times of nodes with the usual options: H,
// C and the renewal interval.
const (
	ttl   = 10 * time.Second
	hold  = 9 * time.Second
	claim = 11 * time.Second
	every = 3 * time.Second
)

// node adds a node with a perfect clock and a steady network; adjust may be nil.
func (w *world) node(adjust func(n *node)) *node { return w.join(nil, adjust) }

// join adds a node, to the process of another one if there is a mate. It
// returns nil if the world is over.
func (w *world) join(mate *node, adjust func(n *node)) *node {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.over {
		return nil
	}
	n := &node{w: w, name: fmt.Sprintf("n%d", len(w.nodes)), number: uint64(len(w.nodes))}
	n.life, n.stop = context.WithCancel(n.mark(context.Background()))
	if mate == nil {
		n.machine = newMachine(len(w.nodes))
		n.link = newLink(w, n.machine, steady)
		n.backend = n.link
		if w.watch != polled {
			n.backend = watchLink{n.link}
		}
	} else {
		n.machine, n.link, n.backend = mate.machine, mate.link, mate.backend
	}
	n.options = elector.Options{ID: n.name, TTL: ttl}
	n.stream = func() (time.Duration, func() time.Duration) {
		return 1000 * time.Hour, func() time.Duration { return time.Millisecond }
	}
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
	n.lag = n.link.add(n)
	n.trail = newTrail(n)
	e, err := elector.New(inject.Backend{Backend: n.backend, Clock: timepiece{n.machine, n}, Random: n.random(), Report: n.trail.take}, election, &n.options)
	if err != nil {
		w.Fatal(err)
	}
	n.elector = e
	w.nodes = append(w.nodes, n)
	return n
}

// A timepiece is a machine's clock in the hands of one Elector: it marks the
// contexts of requests, so that the link knows whose they are.
type timepiece struct {
	*machine
	n *node
}

var _ clock.Clock = timepiece{}

func (t timepiece) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return t.machine.WithTimeout(t.n.mark(ctx), d+t.n.lag)
}

func (t timepiece) AfterFunc(d time.Duration, f func()) func() bool {
	return t.machine.AfterFunc(d+t.n.lag, f)
}

// A companion is a machine's clock in the hands of a company, with timers that do
// not fire with the node's, nor with those of another companion.
type companion struct {
	*machine
	lag time.Duration
}

func (c companion) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return c.machine.WithTimeout(ctx, d+c.lag)
}

func (c companion) AfterFunc(d time.Duration, f func()) func() bool {
	return c.machine.AfterFunc(d+c.lag, f)
}

type nodeKey struct{}

// mark notes in a context that what is done with it is the node's.
func (n *node) mark(ctx context.Context) context.Context {
	return context.WithValue(ctx, nodeKey{}, n)
}

// randomFor gives an elector random numbers that depend on the seed, the node
// and the instant, and on nothing else: of two goroutines that draw at the same
// instant the order is unknown.
func (w *world) randomFor(number uint64) func() uint64 {
	return func() uint64 { return newDice(w.seed, number, uint64(w.now()), 1).next() }
}

// random gives the node's elector random numbers, and remembers the highest token that
// it had seen when it drew each: a write may leave later, when it has waited for others.
func (n *node) random() func() uint64 {
	random := n.w.randomFor(n.number)
	return func() uint64 {
		number := random()
		n.witness.mutex.Lock()
		highest := n.witness.highest
		n.witness.mutex.Unlock()
		n.drawn.LoadOrStore(fmt.Sprintf("%016x", number), highest)
		return number
	}
}

// drew reports whether the node's elector has drawn a nonce, and after which token.
func (n *node) drew(nonce string) (highest uint64, drawn bool) {
	h, drawn := n.drawn.Load(nonce[:min(16, len(nonce))])
	highest, _ = h.(uint64)
	return highest, drawn
}

// retire lets the node run out: it is well, connected, and stops.
func (n *node) retire() {
	n.link.cut(false, false)
	n.link.setRandom(steady)
	n.machine.wake()
	n.stop()
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

// requestTimeout is the elector's.
func (n *node) requestTimeout() time.Duration {
	o := n.options
	if o.RenewEvery == 0 {
		o.RenewEvery = time.Duration(float64(o.TTL) * (1 - rho(n)) / 3)
	}
	if o.RequestTimeout == 0 {
		o.RequestTimeout = o.RenewEvery / 2
	}
	return o.RequestTimeout
}

// company makes the node lead an election of its own besides, and observe it, by an Elector
// for each, so that what the one does at an instant does not depend on the other. The
// renewals and the reads meet those of the one that is looked at.
func (n *node) company(ctx context.Context) {
	leads, observes := n.companion(1), n.companion(2)
	go func() {
		for ctx.Err() == nil {
			n.machine.sleep(ctx, 123456789) // nothing else happens at the same instant
			for range observes.Observe(ctx) {
			}
		}
	}()
	go func() {
		for ctx.Err() == nil {
			leads.Run(ctx, func(ctx context.Context, _ *elector.Lease) error {
				<-ctx.Done()
				return nil
			})
		}
	}()
}

// companion makes an Elector of the company.
func (n *node) companion(number uint64) *elector.Elector {
	o := n.options
	o.ID, o.Logger = fmt.Sprint(n.name, "'s ", number), slog.New(slog.DiscardHandler)
	o.Healthy, o.StallTimeout = nil, 0
	o.RenewEvery, o.RequestTimeout = o.TTL/20, 0 // often, to meet often
	timers := companion{n.machine, 27 + 2*time.Duration(number)}
	e, err := elector.New(inject.Backend{Backend: n.backend, Clock: timers, Random: n.w.randomFor(1000*number + n.number + 1)}, "company-of-"+n.name, &o)
	if err != nil {
		n.w.Fatal(err)
	}
	n.others = append(n.others, e)
	return e
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
	go func() {
		l, err := n.elector.Campaign(n.life)
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
	w.assert(b.leads(), "the node leads by %v", by)
	return b.outcome.Load().lease
}

// valid reports whether Check succeeds.
func valid(l *elector.Lease) bool { return l.Check() == nil }

func (n *node) log(format string, args ...any) { n.w.history.add(n.name, format, args...) }
