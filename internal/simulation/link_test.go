package simulation

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

// A trip is what the network does to one request.
type trip struct {
	out, back time.Duration // on the way to the store and back
	lost      bool          // the request does not arrive
	mute      bool          // the answer does not arrive
	breaks    time.Duration // the caller gets an error after so long; 0: it hears nothing
	again     time.Duration // the request arrives once more so long after; 0: it does not
	second    bool          // it is the second answer that comes back
	pause     time.Duration // the machine is paused before the request leaves it
	suspend   time.Duration // the same, suspended
}

var errBroken = errors.New("the simulated connection broke")

// A link is a node's connection to the store: the backend of its elector.
type link struct {
	n      *node
	handle *memory.Handle
	others *memory.Handle       // with all other elections: the versions of this one count its own writes
	random func(op string) trip // draws a trip

	mutex    sync.Mutex
	scripted map[string][]trip // by op, to be taken before random ones
	cutOut   bool              // nothing goes out
	cutIn    bool              // nothing comes back
	flying   int               // requests that the elector has not given up
	count    map[string]int    // requests by op
	shared   int               // renewals of the election that went with others
}

func newLink(n *node, random func(string) trip) *link {
	return &link{n: n, handle: n.w.store.Handle(), others: n.w.others.Handle(), random: random, scripted: map[string][]trip{}, count: map[string]int{}}
}

// on returns the store of an election.
func (l *link) on(name string) *memory.Handle {
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

func (l *link) take(op string) trip {
	l.mutex.Lock()
	l.count[op]++
	l.flying++
	if queue := l.scripted[op]; len(queue) > 0 {
		l.scripted[op] = queue[1:]
		l.mutex.Unlock()
		return queue[0]
	}
	l.mutex.Unlock()
	return l.random(op)
}

// Load implements backends.Backend.
func (l *link) Load(ctx context.Context, name string) (backends.Record, error) {
	a := l.travel(ctx, l.take("load"), "load", func() answer {
		r, err := l.on(name).Load(context.Background(), name)
		return answer{r: r, err: err, name: name}
	})
	return a.r, a.err
}

// Swap implements backends.Backend.
func (l *link) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	t := l.take("swap")
	if name == election {
		l.n.w.check.sends(l.n, prev, next, t)
	}
	a := l.travel(ctx, t, "swap", func() answer {
		r, err := l.write(name, prev, next)
		return answer{r: r, err: err, name: name}
	})
	return a.r, a.err
}

// write is a Swap that has reached the store.
func (l *link) write(name string, prev, next backends.Record) (backends.Record, error) {
	swap := func() (backends.Record, error) { return l.on(name).Swap(context.Background(), name, prev, next) }
	if name != election {
		return swap()
	}
	return l.n.w.check.apply(l.n, next, swap)
}

// RenewMany implements backends.Batcher. Some batches are passed over in part.
func (l *link) RenewMany(ctx context.Context, renewals []backends.Renewal) []backends.Outcome {
	t := l.take("swap")
	for _, r := range renewals {
		if r.Name == election {
			l.n.w.check.sends(l.n, r.Prev, r.Next, t)
			l.mutex.Lock()
			l.shared++
			l.mutex.Unlock()
		}
	}
	a := l.travel(ctx, t, "swap", func() answer {
		a := answer{name: election, err: backends.ErrNotTried, outcomes: make([]backends.Outcome, len(renewals))}
		for i, r := range renewals {
			o := &a.outcomes[i]
			if o.Err = backends.ErrNotTried; !newDice(l.n.w.seed, uint64(l.n.w.now()), uint64(len(r.Name)), 6).chance(0.1) {
				o.Record, o.Err = l.write(r.Name, r.Prev, r.Next)
			}
			if r.Name == election {
				a.r, a.err = o.Record, o.Err
			}
		}
		return a
	})
	if a.outcomes == nil { // there was no answer
		a.outcomes = make([]backends.Outcome, len(renewals))
		for i := range a.outcomes {
			a.outcomes[i].Err = a.err
		}
	}
	return a.outcomes
}

// An answer is what the store answers, of a batch for the election that is
// looked at.
type answer struct {
	name     string
	r        backends.Record
	err      error
	outcomes []backends.Outcome // of a batch, all of them
}

// travel takes a request over the network, and is what the caller sees of it;
// the request goes its way also when the caller has given up.
func (l *link) travel(ctx context.Context, t trip, op string, send func() answer) answer {
	m := l.n.machine
	defer func() {
		l.mutex.Lock()
		l.flying--
		l.mutex.Unlock()
	}()
	if t.pause > 0 {
		m.pause(t.pause)
	}
	if t.suspend > 0 {
		m.suspend(t.suspend)
	}
	m.runs(false)
	out, _ := l.isCut()
	arrived := make(chan answer, 1)
	if !out && !t.lost {
		go l.deliver(t, send, arrived)
	}
	var broken <-chan time.Time
	if t.breaks > 0 {
		broken = time.After(t.breaks)
	}
	a := answer{}
	select {
	case a = <-arrived:
		if ctx.Err() == nil && a.name == election && (a.err == nil || op == "load") {
			l.n.saw(op, a)
		}
	case <-broken:
		m.runs(false)
		a.err = errBroken
	case <-ctx.Done():
		a.err = ctx.Err()
	}
	return a
}

// deliver brings a request to the store and the answer to the machine.
func (l *link) deliver(t trip, send func() answer, arrived chan<- answer) {
	time.Sleep(t.out)
	a := send()
	if t.again > 0 {
		repeat := make(chan answer, 1)
		go func() {
			time.Sleep(t.again)
			repeat <- send()
		}()
		if t.second {
			a = <-repeat
		}
	}
	if t.mute {
		return
	}
	time.Sleep(t.back)
	if _, in := l.isCut(); in {
		return
	}
	l.n.machine.runs(false)
	arrived <- a
}

// Describe implements backends.Backend.
func (l *link) Describe() backends.Description {
	return backends.Description{Store: "simulated://", MaxBatch: 10, PushesRenewals: l.n.w.watch == pushesAll}
}

// Close implements backends.Backend.
func (l *link) Close() error { return nil }
