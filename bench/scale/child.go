package scale

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector/internal/proof/child"
)

// childVariable makes this program a child: an environment variable with a
// task.
const childVariable = "ELECTOR_SCALE_TASK"

// atOnce is how many elections a child campaigns in at a time, unless another
// process leads them.
const atOnce = 64

// A message is a line that a child prints.
type message struct {
	Kind   string
	Before usage  `json:",omitzero"` // when connected: before the store was opened
	Usage  usage  `json:",omitzero"`
	Lost   int    `json:",omitempty"`
	Error  string `json:",omitempty"`

	Warnings int64 `json:",omitempty"` // logged so far
}

// Kinds of messages, in their order.
const (
	connected = "connected" // to the store, and leads a first election
	waiting   = "waiting"   // has read all elections, which another process leads
	held      = "held"      // all elections
	report    = "report"    // the answer to a line of input
	failed    = "failed"
)

// A usage is what a process uses, after a collection of garbage.
type usage struct {
	Goroutines   int
	Heap, Stacks uint64 // bytes
}

func measureUsage() usage {
	runtime.GC()
	runtime.GC() // what has finalizers is gone only now
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{runtime.NumGoroutine(), m.HeapAlloc, m.StackInuse}
}

// typicalUsage is the middle one of five, so that it is not chance whether all
// elections happen to renew at that moment.
func typicalUsage() usage {
	var all []usage
	for range 5 {
		all = append(all, measureUsage())
		time.Sleep(100 * time.Millisecond) // for what is under way to end
	}
	slices.SortFunc(all, func(a, b usage) int { return cmp.Compare(a.Goroutines, b.Goroutines) })
	return all[len(all)/2]
}

// Main is the main function of a child. It returns false if this process is
// none.
func Main() bool {
	var t task
	is, err := child.Task(childVariable, &t)
	if !is {
		return false
	}
	var mutex sync.Mutex
	out := json.NewEncoder(os.Stdout)
	tell := func(m message) {
		mutex.Lock()
		defer mutex.Unlock()
		out.Encode(m)
	}
	if err == nil {
		err = holder(t, os.Stdin, tell)
	}
	if err != nil {
		tell(message{Kind: failed, Error: err.Error()})
		os.Exit(1)
	}
	return true
}

// holder holds elections until its input ends, and reports at each line of it.
// One who waits reports meanwhile, and ends when it has won all of them.
func holder(t task, input io.Reader, tell func(message)) error {
	ctx := context.Background()
	before := measureUsage()
	c, err := open(ctx, t)
	if err != nil {
		return err
	}
	ours, ok := c.(*electors)
	if t.Wait && !ok {
		return fmt.Errorf("%s is not measured while it waits", t.Library)
	}
	// The first election makes what all share: pools, tables, streams. One who
	// waits for the others leads one more.
	first := t.election(1)
	if t.Wait {
		first = t.election(0)
	}
	if err := c.hold(ctx, first); err != nil {
		return err
	}
	tell(message{Kind: connected, Before: before, Usage: measureUsage()})
	if t.Wait {
		ours.seen = func(elections int) {
			if elections == t.Elections {
				go tell(message{Kind: waiting})
			}
		}
		go reports(c, input, &profiler{}, tell) // which cannot fail without profiles
		err := waitForAll(ours, t)
		if err == nil {
			tell(message{Kind: held, Warnings: ours.warnings.Load()})
		}
		return err
	}
	if err := holdAll(ctx, c, t); err != nil {
		return err
	}
	p := &profiler{prefix: t.Profiles}
	if err := p.start(); err != nil {
		return err
	}
	tell(message{Kind: held})
	return reports(c, input, p, tell)
}

// reports tells what the process uses, at each line of its input.
func reports(c crowd, input io.Reader, p *profiler, tell func(message)) error {
	for lines := bufio.NewScanner(input); lines.Scan(); {
		p.stop()
		m := message{Kind: report, Usage: typicalUsage(), Lost: c.lost()}
		if err := p.write(); err != nil {
			return err
		}
		tell(m)
	}
	return nil
}

// waitForAll campaigns in all elections at once, and returns when all are won.
func waitForAll(c *electors, t task) error {
	outcomes := make(chan error, t.Elections)
	for i := range t.Elections {
		c.run(t.election(int64(i+1)), outcomes)
	}
	for range t.Elections {
		if err := <-outcomes; err != nil {
			return err
		}
	}
	return nil
}

// holdAll wins all elections but the first, which is led already.
func holdAll(ctx context.Context, c crowd, t task) error {
	var next atomic.Int64
	next.Store(1)
	var workers sync.WaitGroup
	errs := make(chan error, 1)
	for range min(atOnce, t.Elections) {
		workers.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(t.Elections) {
					return
				}
				if err := c.hold(ctx, t.election(i)); err != nil {
					select {
					case errs <- fmt.Errorf("election %d: %w", i, err):
					default:
					}
					return
				}
			}
		})
	}
	workers.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}
