package simulation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/elector-go/elector/backends"
)

// A trip is what the network does to one request.
type trip struct {
	lag       time.Duration // on the machine
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

func (t trip) String() string {
	return fmt.Sprintf("out %v back %v lost %v mute %v breaks %v again %v second %v pause %v", t.out, t.back, t.lost, t.mute, t.breaks, t.again, t.second, t.pause+t.suspend)
}

// A network draws the trip of a request, by its kind and who makes it: two
// requests of one instant must not be answered at one instant, or their order
// would not be the seed's.
type network func(op string, who uint64) trip

// An answer is what the store answers, of a batch for the election that is
// looked at.
type answer struct {
	name     string
	to       *node
	r        backends.Record
	err      error
	outcomes []backends.Outcome // of a batch, all of them
	sent     time.Duration      // when the caller asked for it
	served   time.Duration      // when the store gave it
}

// travel takes a request over the network, and is what the caller sees of it;
// the request goes its way also when the caller has given up.
func (l *link) travel(ctx context.Context, t trip, op string, names []string, send func() answer) answer {
	m, sent := l.machine, l.w.now()
	// What a machine learns at one moment, for example when it runs again, it learns in an order.
	order := time.Duration(0)
	if l.w.random {
		order = time.Duration(newDice(uint64(len(names)), uint64(len(op)), uint64(len(names[0])), uint64(names[0][len(names[0])-1])).below(1000))
	}
	defer func() {
		l.mutex.Lock()
		l.flying--
		l.mutex.Unlock()
	}()
	time.Sleep(t.lag)
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
	defer func() { time.Sleep(order) }()
	select {
	case a = <-arrived:
		a.sent = sent
		if ctx.Err() == nil && a.name == election && a.to != nil && (a.err == nil || op == "load") {
			if look, ok := ctx.Value(lookKey{}).(*look); ok {
				look.served.Store(int64(a.served))
				op = "look"
			}
			a.to.saw(op, a)
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
	a.served = l.w.now()
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
	l.machine.runs(false)
	arrived <- a
}

// brief prints an answer in the history.
type brief struct{ answer }

func (b brief) String() string {
	if b.err != nil {
		return b.err.Error()
	}
	r := b.r
	if r.TTL == 0 {
		return "no record"
	}
	return strings.TrimSpace(fmt.Sprintf("{%q token %d attempt %.6s.%d version %q} %s", r.Holder, r.Token, r.Attempt.Nonce, r.Attempt.Sequence, r.Version, r.Extensions.Without("k_history")))
}
