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
	random func(op string) trip // draws a trip

	mutex    sync.Mutex
	scripted map[string][]trip // by op, to be taken before random ones
	cutOut   bool              // nothing goes out
	cutIn    bool              // nothing comes back
	flying   int               // requests that the elector has not given up
	count    map[string]int    // requests by op
}

func newLink(n *node, random func(string) trip) *link {
	return &link{n: n, handle: n.w.store.Handle(), random: random, scripted: map[string][]trip{}, count: map[string]int{}}
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
	return l.travel(ctx, l.take("load"), "load", func() (backends.Record, error) {
		return l.handle.Load(context.Background(), name)
	})
}

// Swap implements backends.Backend.
func (l *link) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	t := l.take("swap")
	l.n.w.check.sends(l.n, prev, next, t)
	return l.travel(ctx, t, "swap", func() (backends.Record, error) {
		return l.n.w.check.apply(l.n, next, func() (backends.Record, error) {
			return l.handle.Swap(context.Background(), name, prev, next)
		})
	})
}

type answer struct {
	r   backends.Record
	err error
}

// travel takes a request over the network, and is what the caller sees of it;
// the request goes its way also when the caller has given up.
func (l *link) travel(ctx context.Context, t trip, op string, send func() (backends.Record, error)) (backends.Record, error) {
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
		if ctx.Err() == nil && (a.err == nil || op == "load") {
			l.n.saw(op, a)
		}
	case <-broken:
		m.runs(false)
		a.err = errBroken
	case <-ctx.Done():
		a.err = ctx.Err()
	}
	return a.r, a.err
}

// deliver brings a request to the store and the answer to the machine.
func (l *link) deliver(t trip, send func() (backends.Record, error), arrived chan<- answer) {
	time.Sleep(t.out)
	r, err := send()
	if t.again > 0 {
		repeat := make(chan answer, 1)
		go func() {
			time.Sleep(t.again)
			r, err := send()
			repeat <- answer{r, err}
		}()
		if t.second {
			a := <-repeat
			r, err = a.r, a.err
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
	arrived <- answer{r, err}
}

// Describe implements backends.Backend.
func (l *link) Describe() backends.Description {
	return backends.Description{Store: "simulated://", PushesRenewals: l.n.w.watch == pushesAll}
}

// Close implements backends.Backend.
func (l *link) Close() error { return nil }
