//go:build nats

package stores

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/conformance"
)

// natsMidst are the cases in whose midst a member is cut off or killed, and comes back.
// Those of the backend write each attempt once, so that a patient handle can find out what
// became of a write. Those of the elector compete under faults of their own, and may lose
// leases. All other cases need a store that answers in time, or reach it by Raw: a member
// is gone before they begin, and until they have ended.
var natsMidst = []string{
	"backend/part/read-after-write", "backend/tok/strict", "backend/mx/attempt", "backend/mx/race",
	"backend/res/foreign", "backend/part/stale-read", "backend/rec/term",
	"elector/mx/two-valid", "group/grp/disorder",
}

// The suite on a bucket with three replicas, of which one at a time is gone: cut off from
// the others or killed, the stream's leader and a follower by turns.
func TestNATSUnderCuts(t *testing.T) {
	const (
		prefix = "cuts"
		long   = 5 // cases until another member goes
	)
	const unwatched = "until the servers have noticed that a member is gone, they may put a Watch's consumer on it: the Watch ends within 5 s, and the elector watches again"
	c := &cuts{T: t, cluster: cluster(t, NATS), prefix: prefix, kinds: map[string]int{}}
	begun := time.Now()
	conform(t, NATS+" 3 nodes, one gone", c.cluster.Members[0].How, conformance.Harness{
		Open:         c.open,
		OpenReadOnly: func(t testing.TB) backends.Backend { return readOnlyOpener(c.url())(t) },
		Slow:         true,
		TTL:          time.Second,
		Raw:          c.raw(),
		NotApplicable: map[string]string{
			"watch/subscribe": unwatched, "watch/many": unwatched, "watch/end": unwatched, "auth/reader": unwatched,
		},
		Report: func(string, string, string) { c.finished(long) },
	})
	must(t, c.back())
	t.Logf("%d times a member was gone, in %v: %v", c.rounds, time.Since(begun).Round(time.Second), c.kinds)
	if !t.Failed() && (c.midst != len(natsMidst) || c.rounds-c.midst < 3 || len(c.kinds) != 4) {
		t.Errorf("a member was gone in the midst of %d cases and before others %d times, in the ways %v; want %d, 3 and all four ways", c.midst, c.rounds-c.midst, c.kinds, len(natsMidst))
	}
}

// cuts take one member at a time away from a cluster. The suite's cases call the methods one
// after the other.
type cuts struct {
	*testing.T
	cluster *Cluster
	prefix  string

	kase   string         // that runs
	round  *round         // in its midst, or nil
	gone   func() error   // brings back the member that is gone, or nil
	served int            // cases since it went
	rounds int            // how many times a member went
	midst  int            // and of those in the midst of a case
	kinds  map[string]int // how they went
}

func (c *cuts) ready() error {
	ctx, cancel := context.WithTimeout(c.Context(), enough)
	defer cancel()
	return c.cluster.Ready(ctx)
}

// take takes a member away, and returns when the others answer.
func (c *cuts) take() error {
	i, err := c.cluster.Leader(c.Context())
	if err != nil {
		return err
	}
	who, how := "the leader", "cut off"
	if c.rounds%2 == 1 {
		who, i = "a follower", (i+1)%3
	}
	leave := func() error { return c.cluster.Isolate(i) }
	c.gone = func() error { return c.cluster.Join(i) }
	if c.rounds/2%2 == 1 {
		how, leave = "killed", c.cluster.Members[i].Kill
		c.gone = func() error { return c.cluster.Members[i].Restart(c.Context()) }
	}
	if err := leave(); err != nil {
		return err
	}
	c.rounds++
	c.kinds[who+" "+how]++
	return c.ready()
}

// back brings the member back that is gone, and returns when all answer.
func (c *cuts) back() error {
	if c.gone == nil {
		return nil
	}
	err := c.gone()
	c.gone, c.served = nil, 0
	return errors.Join(err, c.ready())
}

// url names the members that are there.
func (c *cuts) url() string {
	var addresses []string
	for _, i := range c.cluster.running() {
		addresses = append(addresses, c.cluster.Members[i].Address)
	}
	return "nats://" + strings.Join(addresses, ",") + c.cluster.Path + "?prefix=" + c.prefix
}

// open opens a handle for a case, after the first one has taken a member away.
func (c *cuts) open(t testing.TB) backends.Backend {
	kase := strings.TrimPrefix(t.Name(), c.Name()+"/")
	if c.kase == "" || kase != c.kase && !strings.HasPrefix(kase, c.kase+"/") {
		c.kase = kase
		if slices.Contains(natsMidst, kase) {
			must(t, c.back())
			c.round = c.newRound()
		} else if c.gone == nil {
			must(t, c.take())
		}
	}
	if c.round == nil {
		return opener(c.url())(t)
	}
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	var b backends.Backend
	must(t, until(ctx, 5*time.Second, func(ctx context.Context) (err error) {
		b, err = backends.Open(ctx, c.cluster.URL()+"?prefix="+c.prefix)
		return err
	}))
	h := counted{b.(natsHandle), c.round}
	if strings.HasPrefix(kase, "backend/") {
		return patientHandle{h}
	}
	return h
}

// finished ends what goes on in the midst of a case, and lets another member go if one was
// gone for long.
func (c *cuts) finished(long int) {
	if c.round != nil {
		close(c.round.over)
		if err := <-c.round.done; err != nil {
			c.Errorf("%s: %v", c.kase, err)
		} else {
			c.midst++
		}
		c.round = nil
	} else if c.served++; c.served == long && c.gone != nil {
		must(c, c.back())
		must(c, c.take())
	}
}

// raw reaches the records by a member that is there, with a connection for each call.
func (c *cuts) raw() *conformance.Raw {
	do := func(t testing.TB, call func(ctx context.Context, r NATSRecords) error) {
		at := c.cluster.Members[c.cluster.running()[0]].Address
		must(t, natsAsk(t.Context(), at, func(nc *nats.Conn) error {
			return call(t.Context(), NewNATSRecords(nc, natsBucket, c.prefix))
		}))
	}
	return &conformance.Raw{
		Get: func(t testing.TB, name string) (content []byte) {
			do(t, func(ctx context.Context, r NATSRecords) (err error) {
				content, err = r.Get(ctx, name)
				return err
			})
			return content
		},
		Put: func(t testing.TB, name string, content []byte) {
			do(t, func(ctx context.Context, r NATSRecords) error { return r.Put(ctx, name, content) })
		},
		Delete: func(t testing.TB, name string) {
			do(t, func(ctx context.Context, r NATSRecords) error { return r.Delete(ctx, name) })
		},
	}
}

// A round is what happens in the midst of a case: with one of its calls a member goes, and
// it comes back when the others have answered more calls, or the case is over.
type round struct {
	at       int64 // the call
	calls    atomic.Int64
	begin    chan struct{} // closed with the call
	answered chan struct{} // receives while the member is gone
	over     chan struct{} // closed when the case is over
	done     chan error
}

func (c *cuts) newRound() *round {
	r := &round{
		at: int64(c.rounds%5 + 3), begin: make(chan struct{}), answered: make(chan struct{}),
		over: make(chan struct{}), done: make(chan error, 1),
	}
	go func() {
		select {
		case <-r.begin:
		case <-r.over:
			r.done <- fmt.Errorf("no member was taken away: it made less than %d calls", r.at)
			return
		}
		err := c.take()
		for n := 0; n < 20 && err == nil; n++ {
			select {
			case <-r.answered:
			case <-r.over:
				n = 20
			}
		}
		r.done <- errors.Join(err, c.back())
	}()
	return r
}

// call counts a call, and whether it was answered.
func (r *round) call(do func() error) error {
	if r.calls.Add(1) == r.at {
		close(r.begin)
	}
	err := do()
	if err == nil {
		select {
		case r.answered <- struct{}{}:
		default:
		}
	}
	return err
}

type natsHandle interface {
	backends.Watcher
	backends.Lister
}

// A counted handle tells a round of its calls.
type counted struct {
	natsHandle
	round *round
}

func (h counted) Load(ctx context.Context, name string) (r backends.Record, err error) {
	err = h.round.call(func() error {
		r, err = h.natsHandle.Load(ctx, name)
		return err
	})
	return r, err
}

func (h counted) Swap(ctx context.Context, name string, prev, next backends.Record) (r backends.Record, err error) {
	err = h.round.call(func() error {
		r, err = h.natsHandle.Swap(ctx, name, prev, next)
		return err
	})
	return r, err
}

// A patient handle makes a call again that had no answer, until its context ends, and finds
// out what became of a write as an elector does: by the attempt in the record.
type patientHandle struct{ backends.Backend }

func (h patientHandle) Load(ctx context.Context, name string) (r backends.Record, err error) {
	err = answered(ctx, func(ctx context.Context) error {
		r, err = h.Backend.Load(ctx, name)
		return err
	})
	return r, err
}

func (h patientHandle) Swap(ctx context.Context, name string, prev, next backends.Record) (r backends.Record, err error) {
	err = answered(ctx, func(ctx context.Context) error {
		r, err = h.Backend.Swap(ctx, name, prev, next)
		if errors.Is(err, backends.ErrConflict) { // perhaps with what was sent before, or to a new leader too
			found, unread := h.Backend.Load(ctx, name)
			if unread != nil {
				return unread
			}
			if found.Attempt == next.Attempt {
				r, err = found, nil
			}
		}
		return err
	})
	return r, err
}

// answered makes a call until the store has answered it, with an error or without.
func answered(ctx context.Context, call func(context.Context) error) (err error) {
	if unanswered := until(ctx, 2*time.Second, func(ctx context.Context) error {
		if err = call(ctx); errors.Is(err, backends.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return nil
	}); unanswered != nil {
		return unanswered
	}
	return err
}
