package shortage

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"sync"
	"syscall"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

// ttl is that of the elections.
const ttl = 15 * time.Second

// A crowd is the elections of a child.
type crowd struct {
	meter    *meter
	journal  *journal
	electors []*elector.Elector
	tally    tally
}

// A tally counts the workers that run: a process that is short of processor may not look
// for a long time at what it leads.
type tally struct {
	mutex      sync.Mutex
	led, least int // now, and at a time since the last reset
	ended      int // since the last reset
}

func (t *tally) begin() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.led++
}

func (t *tally) end() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.led--
	t.least = min(t.least, t.led)
	t.ended++
}

func (t *tally) reset() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.least, t.ended = t.led, 0
}

func (t *tally) read() (least, ended int) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.least, t.ended
}

// open opens the store and makes the electors. None campaigns yet.
func (t task) open(ctx context.Context) (*crowd, error) {
	b, err := backends.Open(ctx, t.URL)
	if err != nil {
		return nil, err
	}
	full, ok := b.(batching)
	if !ok {
		return nil, fmt.Errorf("%T takes no batches", b)
	}
	c := &crowd{meter: &meter{batching: full}, journal: newJournal(t.Prefix)}
	for i := range t.Elections {
		e, err := elector.New(c.meter, fmt.Sprintf("%s_%d", t.Prefix, i), &elector.Options{TTL: ttl, Logger: c.journal.logger()})
		if err != nil {
			return nil, err
		}
		c.electors = append(c.electors, e)
	}
	return c, nil
}

// campaign begins all elections, so many at a time.
func (c *crowd) campaign(ctx context.Context, atATime int) {
	turns := make(chan bool, atATime)
	for _, e := range c.electors {
		turns <- true
		go c.lead(ctx, e, func() { <-turns })
	}
}

// lead leads one election until ctx ends. It calls won once, when it leads.
func (c *crowd) lead(ctx context.Context, e *elector.Elector, won func()) {
	first := true
	err := e.Run(ctx, func(ctx context.Context, _ *elector.Lease) error {
		if first {
			first = false
			won()
		}
		c.tally.begin()
		defer c.tally.end()
		<-ctx.Done()
		return nil
	})
	if ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, e.Name(), "ends:", err)
	}
}

// reset begins to count anew.
func (c *crowd) reset() {
	c.meter.reset()
	c.journal.reset()
	c.tally.reset()
}

// look returns what there is now, and what was counted since the last reset.
func (c *crowd) look() (s sight) {
	for _, e := range c.electors {
		if _, err := e.Token(); err == nil {
			s.Led++
		}
	}
	s.Goroutines, s.Processor = runtime.NumGoroutine(), processor()
	allocated := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}}
	metrics.Read(allocated)
	s.Allocated = allocated[0].Value.Uint64()
	s.Least, s.Ended = c.tally.read()
	s.Requests, s.Logged = c.meter.read(), c.journal.read()
	return s
}

// processor returns the time of processors that this process has used.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
