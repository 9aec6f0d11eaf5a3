// Package aside runs a user's code, log handlers and callbacks, so that it holds nothing up.
package aside

import (
	"slices"
	"sync"
	"time"
)

// most is how many calls wait in a Queue that is behind, at most.
const most = 1000

// Patience is for how long a step waits for a user's code, unless its lease has less to spare.
const Patience = 100 * time.Millisecond

// A Queue makes calls one after another, on a goroutine that it has while there are any.
type Queue struct {
	patience time.Duration
	stuck    func()
	lost     func(calls int, behind time.Duration)

	mutex   sync.Mutex
	calls   []*call
	running bool // there is a goroutine
	stalled bool // a call has taken too long, and since then there always was one
	since   time.Time
	dropped int
	spare   *call
}

// A call is used again once Do has seen its end.
type call struct {
	f    func()
	over bool
	done chan struct{} // has room for one
	late *time.Timer
}

// New returns a Queue. Do waits for a call for as long as patience; then it calls stuck, if
// that is not nil. lost is called, as the calls are, once others have had no room: it gets how
// many, and for how long the Queue was behind.
func New(patience time.Duration, stuck func(), lost func(calls int, behind time.Duration)) *Queue {
	return &Queue{patience: patience, stuck: stuck, lost: lost}
}

// Do calls f after all calls before it. While they are quick, Do returns when f has; once one
// took longer than the patience of the Queue, Do does not wait until the Queue is empty again.
// f must not panic. If it ends its goroutine, the next call gets another one.
func (q *Queue) Do(f func()) { q.wait(q.add(f)) }

// Add is the first half of Do, and the function that it returns, which must be called once,
// is the other.
func (q *Queue) Add(f func()) (wait func()) {
	c := q.add(f)
	return func() { q.wait(c) }
}

// wait waits for a call, unless it is nil.
func (q *Queue) wait(c *call) {
	if c == nil {
		return
	}
	if c.late == nil {
		c.late = time.NewTimer(q.patience)
	} else {
		c.late.Reset(q.patience)
	}
	select {
	case <-c.done:
		c.late.Stop()
		q.reuse(c)
	case <-c.late.C:
		q.stall(c)
	}
}

// add returns a call to wait for, or nil.
func (q *Queue) add(f func()) *call {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.stalled && len(q.calls) >= most {
		q.dropped++
		return nil
	}
	c := q.spare
	if q.spare = nil; c == nil {
		c = &call{done: make(chan struct{}, 1)}
	}
	c.f, c.over = f, false
	q.calls = append(q.calls, c)
	if !q.running {
		q.running = true
		go q.run()
	}
	if q.stalled {
		return nil
	}
	return c
}

func (q *Queue) reuse(c *call) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	c.f, q.spare = nil, c
}

func (q *Queue) stall(c *call) {
	q.mutex.Lock()
	first := !c.over && !q.stalled
	if first {
		q.stalled, q.since = true, time.Now()
	}
	q.mutex.Unlock()
	if first && q.stuck != nil {
		q.stuck()
	}
}

// Flush waits until all calls have been made, for as long as limit at most.
func (q *Queue) Flush(limit time.Duration) {
	q.mutex.Lock()
	if !q.running {
		q.mutex.Unlock()
		return
	}
	c := &call{f: func() {}, done: make(chan struct{}, 1)}
	q.calls = append(q.calls, c)
	q.mutex.Unlock()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-c.done:
	case <-late.C:
	}
}

func (q *Queue) run() {
	empty := false
	defer func() {
		if !empty { // a call has ended the goroutine
			go q.run()
		}
	}()
	for {
		c := q.next()
		if c == nil {
			empty = true
			return
		}
		q.make(c)
	}
}

// next returns the next call, nil if there is none.
func (q *Queue) next() *call {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if len(q.calls) == 0 && q.dropped > 0 {
		n, since := q.dropped, q.since
		q.dropped = 0
		q.calls = append(q.calls, &call{f: func() { q.lost(n, time.Since(since)) }, done: make(chan struct{}, 1)})
	}
	if len(q.calls) == 0 {
		q.running, q.stalled = false, false
		return nil
	}
	c := q.calls[0]
	q.calls = slices.Delete(q.calls, 0, 1)
	return c
}

func (q *Queue) make(c *call) {
	defer func() {
		q.mutex.Lock()
		c.over = true
		q.mutex.Unlock()
		c.done <- struct{}{}
	}()
	c.f()
}
