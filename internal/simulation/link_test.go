package simulation

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/internal/annex"
)

// A link is a process's connection to the store: the backend of its Electors.
type link struct {
	w       *world
	machine *machine
	handle  *memory.Backend
	others  *memory.Backend     // with all other elections: the versions of this one count its own writes
	random  network             // draws a trip
	creates func() (trip, bool) // draws one for a write that creates the record; may be nil

	mutex    sync.Mutex
	nodes    []*node           // whose link it is
	scripted map[string][]trip // by op, to be taken before random ones
	cutOut   bool              // nothing goes out
	cutIn    bool              // nothing comes back
	flying   int               // requests that the elector has not given up
	count    map[string]int    // requests by op
	shared   int               // writes of the election that went with others
	joined   int               // reads of the election that went with others
}

func newLink(w *world, m *machine, random network) *link {
	return &link{w: w, machine: m, handle: w.store.Handle(), others: w.others.Handle(), random: random, scripted: map[string][]trip{}, count: map[string]int{}}
}

// add notes whose link it is too, and returns how late the timers of that node
// are.
func (l *link) add(n *node) (lag time.Duration) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.nodes = append(l.nodes, n)
	return time.Duration(len(l.nodes)-1) * 41
}

// whose returns the node that makes a request: the one that the context names, or
// that has drawn the nonce. A request of several has no context of a node's.
func (l *link) whose(ctx context.Context, nonce string) *node {
	if n, marked := ctx.Value(nodeKey{}).(*node); marked {
		return n
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, n := range l.nodes {
		if _, drew := n.drew(nonce); drew {
			return n
		}
	}
	return l.nodes[0]
}

// nonceOf returns the nonce that a write's sender has drawn: that of its acquisition, or
// of its word for another leader.
func nonceOf(prev, next backends.Record) string {
	if isWord(prev, next) {
		for _, name := range steers {
			was, _ := prev.Extensions.Get(name)
			if is, _ := next.Extensions.Get(name); is != was {
				return annex.Split(is, 2)[1]
			}
		}
	}
	return next.Attempt.Nonce
}

// in is a number of a node that requests.
func (n *node) in(name string) uint64 {
	if name == election {
		return n.number
	}
	return n.number + 1000 // of its company
}

func (l *link) setRandom(random network) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.random, l.creates = random, nil
}

// on returns the store of an election.
func (l *link) on(name string) *memory.Backend {
	if name == election {
		return l.handle
	}
	return l.others
}

// next scripts the next trips of requests of a kind.
func (l *link) next(op string, trips ...trip) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.scripted[op] = append(l.scripted[op], trips...)
}

// left returns how many scripted trips were not taken yet.
func (l *link) left() int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return len(l.scripted["load"]) + len(l.scripted["swap"])
}

func (l *link) cut(out, in bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.cutOut, l.cutIn = out, in
}

func (l *link) isCut() (out, in bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.cutOut, l.cutIn
}

func (l *link) inFlight() int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.flying
}

func (l *link) requests(op string) int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.count[op]
}

func (l *link) take(op string, who uint64) trip {
	l.mutex.Lock()
	l.count[op]++
	l.flying++
	if queue := l.scripted[op]; len(queue) > 0 {
		l.scripted[op] = queue[1:]
		l.mutex.Unlock()
		return queue[0]
	}
	random := l.random
	l.mutex.Unlock()
	return random(op, who)
}

// takeSwap draws the trip of a write.
func (l *link) takeSwap(name string, n *node, prev backends.Record) trip {
	t := l.take("swap", n.in(name))
	l.mutex.Lock()
	creates := l.creates
	l.mutex.Unlock()
	if name == election && !prev.Exists() && creates != nil {
		if special, ok := creates(); ok {
			return special
		}
	}
	return t
}

// Load implements backends.Backend.
func (l *link) Load(ctx context.Context, name string) (backends.Record, error) {
	if _, marked := ctx.Value(nodeKey{}).(*node); !marked { // it waited for others, and none came
		o := l.LoadMany(ctx, []string{name})[0]
		return o.Record, o.Err
	}
	n := l.whose(ctx, "")
	a := l.travel(ctx, l.take("load", n.in(name)), "load", []string{name}, func() answer {
		r, err := l.on(name).Load(context.Background(), name)
		return answer{r: r, err: err, name: name, to: n}
	})
	return a.r, a.err
}

// Swap implements backends.Backend.
func (l *link) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	n := l.whose(ctx, nonceOf(prev, next))
	t := l.takeSwap(name, n, prev)
	if name == election {
		l.w.check.sends(n, prev, next, t)
	}
	a := l.travel(ctx, t, "swap", []string{name}, func() answer {
		r, err := l.write(n, name, prev, next)
		return answer{r: r, err: err, name: name, to: n}
	})
	if name == election {
		l.w.check.answered(n, prev, next, a.err)
	}
	return a.r, a.err
}

// write is a Swap that has reached the store.
func (l *link) write(n *node, name string, prev, next backends.Record) (backends.Record, error) {
	swap := func() (backends.Record, error) { return l.on(name).Swap(context.Background(), name, prev, next) }
	if name != election {
		return swap()
	}
	return l.w.check.apply(n, next, swap)
}

// SwapMany implements backends.BatchSwapper. Some batches are passed over in part.
func (l *link) SwapMany(ctx context.Context, changes []backends.Change) []backends.Outcome {
	t := l.take("swap", l.whose(ctx, "").in(election)+2000)
	var n *node
	var names []string
	for _, r := range changes {
		names = append(names, r.Name)
		if r.Name == election {
			n = l.whose(context.Background(), nonceOf(r.Prev, r.Next))
			l.w.check.sends(n, r.Prev, r.Next, t)
			l.mutex.Lock()
			l.shared++
			l.mutex.Unlock()
		}
	}
	a := l.travel(ctx, t, "swap", names, func() answer {
		a := answer{name: election, to: n, err: backends.ErrNotTried, outcomes: make([]backends.Outcome, len(changes))}
		for i, r := range changes {
			o := &a.outcomes[i]
			if o.Err = backends.ErrNotTried; !newDice(l.w.seed, uint64(l.w.now()), uint64(len(r.Name)), 6).chance(0.1) {
				o.Record, o.Err = l.write(n, r.Name, r.Prev, r.Next)
			}
			if r.Name == election {
				a.r, a.err = o.Record, o.Err
			}
		}
		return a
	})
	if a.outcomes == nil { // there was no answer
		a.outcomes = backends.Outcomes(len(changes), a.err)
	}
	for i, r := range changes {
		if err := a.outcomes[i].Err; r.Name == election && err != nil { // of a success it may not hear: it may have given up
			l.w.check.answered(n, r.Prev, r.Next, err)
		}
	}
	return a.outcomes
}

// LoadMany implements backends.BatchLoader. Some names are passed over. So is the election
// if it is not known who reads it, or if that one may read no more once it is answered:
// when the others read next depends on whether it is gone at that instant.
func (l *link) LoadMany(ctx context.Context, names []string) []backends.Outcome {
	n := l.whose(ctx, "")
	t := l.take("load", n.in(election)+3000)
	only := l.only(n)
	if only && len(names) > 1 && slices.Contains(names, election) {
		l.mutex.Lock()
		l.joined++
		l.mutex.Unlock()
	}
	// What comes later than this has perhaps been given up by some.
	ctx, cancel := l.machine.WithTimeout(ctx, n.requestTimeout()/2)
	defer cancel()
	a := l.travel(ctx, t, "load", names, func() answer {
		a := answer{err: backends.ErrNotTried, outcomes: make([]backends.Outcome, len(names))}
		for i, name := range names {
			o := &a.outcomes[i]
			switch d := newDice(l.w.seed, uint64(l.w.now()), uint64(len(name)), 7); {
			case d.chance(0.05), name == election && !only:
				o.Err = backends.ErrNotTried
			case d.chance(0.05):
				o.Err = backends.ErrUnavailable
			default:
				o.Record, o.Err = l.on(name).Load(context.Background(), name)
				if name == election {
					a.name, a.to, a.r, a.err = election, n, o.Record, o.Err
				}
			}
		}
		return a
	})
	if a.outcomes == nil { // there was no answer
		return backends.Outcomes(len(names), a.err)
	}
	return a.outcomes
}

// only reports whether all reads of the election are those of a long campaign of n.
func (l *link) only(n *node) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return len(l.nodes) == 1 && n.brief.Load() == 0
}

// Describe implements backends.Backend.
func (l *link) Describe() backends.Description {
	return backends.Description{Store: "simulated://", MaxSwaps: 10, MaxLoads: 10, PushesRenewals: l.w.watch == pushesAll}
}

// Close implements backends.Backend.
func (l *link) Close() error { return nil }
