package elector_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

// A carriage counts what renews.
type carriage struct {
	backends.BatchSwapper
	most int // MaxSwaps, 0 for the backend's own

	mutex    sync.Mutex
	sizes    []int // of requests that renewed
	refuses  error // the outcome of all in a batch
	deaf     chan struct{}
	listens  bool          // to contexts
	swallows bool          // outcomes are left out
	turns    bool          // outcomes are in the wrong order
	denied   string        // a name that the store refuses, and each request that has it
	denials  int           // requests of several renewals that it has refused so
	large    chan struct{} // requests of several renewals hang until it is closed
}

func (c *carriage) Describe() backends.Description {
	d := c.BatchSwapper.Describe()
	if c.most > 0 {
		d.MaxSwaps = c.most
	}
	return d
}

func (c *carriage) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	c.carries(1)
	if c.denies(name) {
		return backends.Record{}, backends.ErrDenied
	}
	c.hear(ctx)
	return c.BatchSwapper.Swap(ctx, name, prev, next)
}

func (c *carriage) SwapMany(ctx context.Context, renewals []backends.Change) []backends.Outcome {
	c.carries(len(renewals))
	if slices.ContainsFunc(renewals, func(r backends.Change) bool { return c.denies(r.Name) }) {
		c.set(func() { c.denials++ })
		return backends.Outcomes(len(renewals), backends.ErrDenied)
	}
	c.mutex.Lock()
	refuses, swallows, turns := c.refuses, c.swallows, c.turns
	c.mutex.Unlock()
	c.hear(ctx)
	if c.large != nil {
		<-c.large
	}
	if refuses != nil {
		return slices.Repeat([]backends.Outcome{{Err: refuses}}, len(renewals))
	}
	outcomes := c.BatchSwapper.SwapMany(ctx, renewals)
	if turns {
		slices.Reverse(outcomes)
	}
	if swallows {
		return outcomes[1:]
	}
	return outcomes
}

// hear does not return while the backend is deaf; but when its context ends, if
// it hears that.
func (c *carriage) hear(ctx context.Context) {
	c.mutex.Lock()
	deaf, ended := c.deaf, ctx.Done()
	if !c.listens {
		ended = nil
	}
	c.mutex.Unlock()
	if deaf == nil {
		return
	}
	select {
	case <-deaf:
	case <-ended:
	}
}

func (c *carriage) carries(n int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.sizes = append(c.sizes, n)
}

func (c *carriage) denies(name string) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return name == c.denied
}

// taken returns the sizes of the requests since the last call.
func (c *carriage) taken() (sizes []int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	sizes, c.sizes = c.sizes, nil
	return sizes
}

func (c *carriage) set(change func()) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	change()
}

const (
	batchTTL   = 10 * time.Second
	batchEvery = 3 * time.Second
)

// trouble is a Trace for requests that may fail.
var trouble = &elector.Trace{}

// govern makes n candidates on one backend lead elections of their own, one after
// the other within about an interval. Without a Trace no request may fail.
func govern(t *testing.T, b backends.Backend, n int, o elector.Options) (leases []*elector.Lease) {
	t.Helper()
	for i := range n {
		e := governor(t, b, fmt.Sprintf("election-%d", i), o)
		t.Cleanup(func() { e.Close() })
		leases = append(leases, win(t, e))
		time.Sleep(batchEvery / time.Duration(n))
	}
	return leases
}

func governor(t *testing.T, b backends.Backend, name string, o elector.Options) *elector.Elector {
	t.Helper()
	o.TTL, o.RenewEvery, o.Logger = batchTTL, batchEvery, slog.New(slog.DiscardHandler)
	if o.Trace == nil {
		o.Trace = &elector.Trace{Request: func(_ context.Context, r elector.RequestInfo) {
			if r.Err != nil && r.Op == "swap" {
				t.Errorf("%s: a request failed: %v", name, r.Err)
			}
		}}
	}
	e, err := elector.New(b, name, &o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func sum(sizes []int) (sum int) {
	for _, n := range sizes {
		sum += n
	}
	return sum
}

func allValid(t *testing.T, leases []*elector.Lease) {
	t.Helper()
	for i, l := range leases {
		if err := l.Check(); err != nil {
			t.Errorf("lease %d of %d: %v", i, len(leases), err)
		}
	}
}

// Where large requests hang and single ones work, no lease is lost, however long
// that lasts.
func TestHang(t *testing.T) {
	t.Run("large requests", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := &carriage{BatchSwapper: memory.New(), large: make(chan struct{})}
			leases := govern(t, c, 100, elector.Options{Trace: trouble})
			pass(20 * batchTTL)
			allValid(t, leases)
			close(c.large)
		})
	})
}

// Leases on one backend renew four times in an interval, all of them, and each
// renews once in it.
func TestSharedRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &carriage{BatchSwapper: memory.New()}
		leases := govern(t, c, 50, elector.Options{})
		pass(2 * batchEvery)
		c.taken()
		const intervals = 20
		pass(intervals * batchEvery)
		sizes := c.taken()
		if len(sizes) != 4*intervals || sum(sizes) != 50*intervals {
			t.Errorf("in %d intervals %d requests renewed %d times, not %d and %d: %v", intervals, len(sizes), sum(sizes), 4*intervals, 50*intervals, sizes)
		}
		allValid(t, leases)
	})
}

// A lease alone renews as if there were no batches.
func TestRenewsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &carriage{BatchSwapper: memory.New()}
		leases := govern(t, c, 2, elector.Options{})
		leases[1].Release(t.Context())
		pass(10*batchEvery + time.Second)
		c.taken()
		start := leases[0].Remaining()
		pass(10 * batchEvery)
		if sizes := c.taken(); len(sizes) != 10 || sum(sizes) != 10 || leases[0].Remaining() != start {
			t.Errorf("in 10 intervals it renewed in requests of %v, and %v remain after %v", sizes, leases[0].Remaining(), start)
		}
	})
}

// No request has more renewals or larger values than the store takes.
func TestBatchSize(t *testing.T) {
	for name, o := range map[string]elector.Options{
		"renewals": {},
		"bytes":    {Value: strings.Repeat("v", 4096)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &carriage{BatchSwapper: memory.New(), most: 7}
				most := 7
				if o.Value != "" {
					c.most, most = 1000, 15 // of 128 KiB, with what each replaces
				}
				leases := govern(t, c, 100, o)
				pass(2 * batchEvery)
				c.taken()
				pass(4 * batchEvery)
				sizes := c.taken()
				if slices.Max(sizes) != most || sum(sizes) != 400 {
					t.Errorf("100 leases renewed 4 times in requests of %v, at most %d at once", sizes, most)
				}
				allValid(t, leases)
			})
		})
	}
}

// Many leases renew at more points of time, so that each request is about full.
func TestBatchPoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &carriage{BatchSwapper: memory.New(), most: 10}
		leases := govern(t, c, 1000, elector.Options{})
		pass(2 * batchEvery)
		c.taken()
		const intervals = 5
		pass(intervals * batchEvery)
		sizes := c.taken()
		if most := slices.Max(sizes); most > 10 || sum(sizes) != 1000*intervals || len(sizes) > 150*intervals {
			t.Errorf("in %d intervals %d requests of at most %d renewed %d times", intervals, len(sizes), most, sum(sizes))
		}
		for start := time.Now(); time.Since(start) < batchEvery; {
			pass(batchEvery / 256)
			if n := sum(c.taken()); n > 100 { // those who came first keep to the points that they had
				t.Errorf("%d of 1000 renew at one moment", n)
			}
		}
		allValid(t, leases)
	})
}

// A renewal that has no time to wait for others does not wait.
func TestBatchShortWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &carriage{BatchSwapper: memory.New()}
		patient := govern(t, c, 3, elector.Options{})
		var hasty []*elector.Lease
		for i := range 3 {
			e := governor(t, c, fmt.Sprintf("hasty-%d", i), elector.Options{RequestTimeout: time.Millisecond})
			t.Cleanup(func() { e.Close() })
			hasty = append(hasty, win(t, e))
		}
		pass(10 * batchTTL)
		allValid(t, append(patient, hasty...))
	})
}

// Close does not wait for those who have more patience.
func TestBatchIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &carriage{BatchSwapper: memory.New()}
		govern(t, c, 1, elector.Options{RequestTimeout: batchEvery, Trace: trouble})
		e := governor(t, c, "impatient", elector.Options{RequestTimeout: batchEvery / 30, Trace: trouble})
		win(t, e)
		pass(2 * batchEvery)
		c.taken()
		deaf := make(chan struct{})
		c.set(func() { c.deaf, c.listens = deaf, true })
		for start := time.Now(); slices.Max(append(c.taken(), 0)) < 2; pass(time.Millisecond) {
			if time.Since(start) > 2*batchEvery {
				t.Fatal("the two have not met")
			}
		}
		pass(batchEvery / 20)
		start := time.Now()
		released := begin(e.Close)
		pass(batchEvery / 10)
		c.set(func() { c.deaf = nil })
		if err := wait(t, released, "Close returns"); time.Since(start) >= batchEvery/2 {
			t.Errorf("Close took %v: %v", time.Since(start), err)
		}
		close(deaf)
	})
}

// fine are the spoilt batches of which no renewal fails.
var fine = map[string]bool{"not tried": true, "refused for good": true}

// Where all that goes together is refused or fails, each soon goes by itself. A backend that
// leaves outcomes out is not believed.
func TestBatchRefused(t *testing.T) {
	for name, spoil := range map[string]func(c *carriage){
		"not tried":          func(c *carriage) { c.refuses = backends.ErrNotTried },
		"refused for good":   func(c *carriage) { c.refuses = backends.ErrDenied },
		"outcomes left out":  func(c *carriage) { c.swallows = true },
		"another's outcomes": func(c *carriage) { c.turns = true },
		"nobody knows why":   func(c *carriage) { c.refuses = errors.New("nobody knows") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &carriage{BatchSwapper: memory.New()}
				o := elector.Options{Trace: trouble}
				if fine[name] {
					o.Trace = nil // each goes by itself at once
				}
				leases := govern(t, c, 200, o)
				pass(2 * batchEvery)
				c.set(func() { spoil(c) })
				for _, most := range []int{80, 4} { // of more than 200
					c.taken()
					pass(batchEvery)
					together := slices.DeleteFunc(c.taken(), func(n int) bool { return n == 1 })
					if len(together) > most {
						t.Errorf("those who failed together tried again together: %v", together)
					}
					pass(batchTTL)
				}
				pass(10 * batchTTL)
				allValid(t, leases)
			})
		})
	}
}

// Where the right to one name is away, the store refuses each batch that has it. All others
// keep their leases, without a failure. The one that is refused soon goes by itself, logs each
// of its causes once, and comes back by itself.
func TestOneDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &carriage{BatchSwapper: memory.New()}
		others := govern(t, c, 50, elector.Options{})
		log := levels{slog.DiscardHandler, new(atomic.Int64), new(atomic.Int64), new(atomic.Int64)}
		e, err := elector.New(c, "denied", &elector.Options{TTL: batchTTL, RenewEvery: batchEvery, Logger: slog.New(log)})
		if err != nil {
			t.Fatal(err)
		}
		leads := make(chan *elector.Lease, 9)
		go e.Run(t.Context(), func(ctx context.Context, l *elector.Lease) error {
			leads <- l
			<-ctx.Done()
			return nil
		})
		l := wait(t, leads, "one leads")
		pass(2 * batchEvery)
		c.set(func() { c.denied = "denied" })
		pass(20 * batchTTL)
		if l.Check() == nil || e.State() != elector.Refused {
			t.Errorf("the one that is denied is %q, and its lease: %v", e.State(), l.Check())
		}
		c.set(func() {
			if c.denials == 0 || c.denials > 8 {
				t.Errorf("it was refused together with others %d times", c.denials)
			}
			c.denied = ""
		})
		if n := log.refused.Load(); n == 0 || n > 2 || log.mild.Load() > 0 { // its renewals, and its campaign
			t.Errorf("%d errors and %d warnings are logged", n, log.mild.Load())
		}
		pass(batchTTL)
		wait(t, leads, "it leads again")
		allValid(t, others)
		e.Close()
	})
}

// A backend that ignores its contexts keeps a bounded number of batches, the
// leases end in time, and when it answers again nothing is left.
func TestHungBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &carriage{BatchSwapper: memory.New()}
		leases := govern(t, c, 200, elector.Options{RequestTimeout: batchEvery / 100, Trace: trouble})
		pass(2 * batchEvery)
		c.taken()
		deaf := make(chan struct{})
		c.set(func() { c.deaf = deaf })
		pass(batchTTL)
		for i, l := range leases {
			if l.Context().Err() == nil || l.Check() == nil {
				t.Errorf("lease %d is valid", i)
			}
		}
		// Those of several renewals are as bounded as each lease's own.
		hang := c.taken()
		together := slices.DeleteFunc(slices.Clone(hang), func(n int) bool { return n == 1 })
		if len(together) == 0 || len(together) > 2*mostUnanswered || len(hang) > 2*mostUnanswered+mostUnanswered*len(leases) {
			t.Errorf("%d requests hang, %d of them of several renewals", len(hang), len(together))
		}
		c.set(func() { c.deaf = nil })
		close(deaf)
		leases[0].Release(t.Context())
	})
}
