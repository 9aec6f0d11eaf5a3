package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elector-go/elector"
)

var lossCases = []simCase{
	{"res/overrun", overrun},
	{"err/opaque", opaqueErrors},
}

// A shift is a worker in Run that stays until it is let go.
type shift struct {
	began, ended, finish chan struct{}
	lease                *elector.Lease
	err                  error // what Run returned
	recovered            any
}

// run makes the node lead by Run. The worker does not call Check, and returns,
// or panics, when it is let go.
func (n *node) run(ctx context.Context, panics bool) *shift {
	s := &shift{began: make(chan struct{}), ended: make(chan struct{}), finish: make(chan struct{})}
	go func() {
		defer close(s.ended)
		defer func() { s.recovered = recover() }()
		s.err = n.elector.Run(ctx, func(_ context.Context, l *elector.Lease) error {
			o := n.w.check.acquired(n, l)
			n.w.check.starts(o, true)
			defer n.w.check.returns(o)
			s.lease = l
			close(s.began)
			<-s.finish
			if panics {
				n.w.check.panics(o)
				panic(errPanic)
			}
			return nil
		})
	}()
	<-s.began
	return s
}

// overrun: a worker takes too long to stop, and the record is still ours: it is released
// when the worker has returned, and only then; and never if the worker panicked. After an
// expiry it is not released.
func overrun(t *testing.T) {
	stalls := func(n *node) { n.options.StallTimeout = time.Second } // so it is not renewed
	for _, c := range []struct {
		how            string
		doubt, panics  bool
		drains, silent bool
	}{
		{how: "stalled", silent: true},
		{how: "stalled, panic", panics: true, silent: true},
		{how: "stalled, creation in doubt", doubt: true, silent: true},
		{how: "out of patience", drains: true},
		{how: "out of patience, panic", drains: true, panics: true, silent: true},
		{how: "out of patience, creation in doubt", drains: true, doubt: true},
	} {
		everyKind(t, func(w *world) {
			a := w.node(func(n *node) {
				if n.options.ReleaseTimeout = 2 * time.Second; !c.drains {
					stalls(n)
				}
			})
			if c.doubt {
				a.link.next("swap", unheard)
			}
			ctx, cancel := context.WithCancel(a.life)
			s := a.run(ctx, c.panics)
			w.pass(time.Second)
			if c.drains {
				cancel()
			}
			if c.drains {
				w.pass(2500 * time.Millisecond)
			} else {
				w.passUntil(hold + 500*time.Millisecond)
			}
			w.assert(errors.Is(s.lease.Check(), elector.ErrLost), "the lease is lost (%s)", c.how)
			w.assert(w.record().Holder == a.name, "the store is not told while the worker works (%s)", c.how)
			cancel()
			close(s.finish)
			<-s.ended
			w.assert((s.recovered != nil) == c.panics, "a panic goes through (%s)", c.how)
			w.pass(100 * time.Millisecond)
			w.assert(w.record().Vacant() != c.silent, "the store is told when the worker has returned, or never (%s)", c.how)
			w.node(nil).campaign().won(w, w.now()+claim+time.Second)
		})
	}
	// Campaign: a new campaign reports that the work has stopped.
	for _, doubt := range []bool{false, true} {
		everyKind(t, func(w *world) {
			a := w.node(stalls)
			if doubt {
				a.link.next("swap", unheard)
			}
			l := a.lead()
			w.passUntil(a.expiry(l) + 10*time.Millisecond)
			err := l.Release(w.Context())
			w.assert(errors.Is(err, elector.ErrLost) && w.record().Holder == a.name, "a lost lease cannot be resigned: %v", err)
			at := w.now()
			if bid := a.campaign(); doubt {
				w.pass(time.Second)
				w.assert(!bid.leads(), "a record whose creation was in doubt is not taken at once")
			} else {
				bid.won(w, at+time.Second)
			}
		})
	}
}

// opaqueErrors: whatever errors Healthy, the worker and contexts give, nothing
// is decided by them: the same happens at the same times.
func opaqueErrors(t *testing.T) {
	want := opaqueRun(t, errors.New("something else"))
	for i, err := range opaques {
		err = wrapped(err, i%4)
		if got := opaqueRun(t, err); !slices.Equal(got, want) {
			t.Errorf("with the error %q:\n%s\nand with another one:\n%s", err, lines(got), lines(want))
		}
	}
}

func lines(list []string) (text string) {
	for _, line := range list {
		text += "\t" + line + "\n"
	}
	return text
}

// opaqueRun lets everybody return an error, and tells what happened.
func opaqueRun(t *testing.T, opaque error) (events []string) {
	simulate(t, *seedFlag, polled, func(w *world) {
		var asked atomic.Int32
		var sick atomic.Bool
		a := w.node(func(n *node) {
			n.options.Healthy = func(context.Context) error {
				if asked.Add(1); sick.Load() {
					return opaque
				}
				return nil
			}
		})
		tell := func(format string, args ...any) {
			events = append(events, fmt.Sprintf("%v: %s; %d loads, %d swaps, asked %d times", w.now(), fmt.Sprintf(format, args...),
				a.link.requests("load"), a.link.requests("swap"), asked.Load()))
		}
		over := func(l *elector.Lease) string {
			err := l.Check()
			return fmt.Sprintf("lost %v, resigned %v, deposed %v", errors.Is(err, elector.ErrLost), errors.Is(err, elector.ErrResigned), errors.Is(err, elector.ErrDeposed))
		}
		// Campaign, and Healthy fails; then a campaign while it does.
		l := a.lead()
		sick.Store(true)
		w.pass(2 * every)
		tell("unhealthy: %s", over(l))
		ctx, cancel := context.WithCancelCause(a.life)
		time.AfterFunc(time.Minute, func() { cancel(opaque) })
		_, err := a.elector.Campaign(ctx)
		tell("campaign: %v", err != nil)
		_, err = a.elector.TryCampaign(a.life)
		tell("one try: %v", errors.Is(err, elector.ErrUnhealthy))
		// Run: Healthy fails and recovers, the context ends, the worker returns.
		sick.Store(false)
		time.AfterFunc(10*time.Second, func() { sick.Store(true) })
		time.AfterFunc(30*time.Second, func() { sick.Store(false) })
		ctx, cancel = context.WithCancelCause(a.life)
		time.AfterFunc(time.Minute, func() { cancel(opaque) })
		for range 2 {
			a.elector.Run(ctx, func(ctx context.Context, l *elector.Lease) error {
				w.check.acquired(a, l)
				tell("works")
				<-ctx.Done()
				a.machine.sleep(a.life, time.Second)
				tell("stops while it leads: %v", valid(l))
				return opaque
			})
			tell("Run returns")
		}
		a.elector.Run(a.life, func(ctx context.Context, l *elector.Lease) error {
			w.check.acquired(a, l)
			return opaque
		})
		tell("returned by itself")
	})
	return events
}
