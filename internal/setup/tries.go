// Package setup makes connections to a store that outlive the requests which need them: a slow
// sign-in is not thrown away at the deadline of a request, and begun anew for the next.
package setup

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Patience is how long a try may take, and longer if the request that needs it may. Longest is
// for a store whose servers are slow when many sign in at once: a try that ran out of time
// doubles the time of the next one, or all of them would run out of it for ever.
const (
	Patience = 10 * time.Second
	Longest  = 2 * time.Minute
)

// longestPause bounds the pause before the next try.
const longestPause = time.Second

var errStopped = errors.New("the backend is closed")

// Tries call a function, one call at a time. After a call that has failed they pause for a
// random time, so that the processes of a fleet do not come in step.
type Tries struct {
	call    func(context.Context) error
	longest time.Duration
	life    context.Context // ends with Stop
	kill    context.CancelFunc

	mutex   sync.Mutex
	now     *try // nil unless there is a call
	failed  int  // calls in a row
	expired int  // of them, for lack of time
	last    error
}

type try struct {
	began time.Time
	done  chan struct{} // closed at the end
	err   error
}

// NewTries returns Tries of call, which returns when its context ends. A call may take
// Patience at first, and up to longest after calls that ran out of time.
func NewTries(longest time.Duration, call func(context.Context) error) *Tries {
	life, kill := context.WithCancel(context.Background())
	return &Tries{call: call, longest: longest, life: life, kill: kill}
}

// Do waits for the end of a call, the one that is under way or a new one, and returns its
// error. It returns when ctx ends, and the call goes on.
func (t *Tries) Do(ctx context.Context) error {
	now := t.begin(ctx)
	select {
	case <-now.done:
		return now.err
	case <-ctx.Done():
		return t.late(ctx, now)
	}
}

func (t *Tries) begin(ctx context.Context) *try {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.now == nil {
		limit := min(Patience<<min(t.expired, 10), t.longest)
		if end, ok := ctx.Deadline(); ok {
			limit = max(limit, time.Until(end))
		}
		t.now = &try{began: time.Now(), done: make(chan struct{})}
		go t.run(t.now, t.pause(), limit)
	}
	return t.now
}

// pause returns how long to wait before the next call.
func (t *Tries) pause() time.Duration {
	if t.failed == 0 {
		return 0
	}
	return rand.N(min(longestPause, 50*time.Millisecond<<min(t.failed, 10)))
}

func (t *Tries) run(now *try, pause, limit time.Duration) {
	defer close(now.done)
	wait := time.NewTimer(pause)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-t.life.Done():
	}
	ctx, cancel := context.WithTimeout(t.life, limit)
	defer cancel()
	err, late := t.life.Err(), false
	if err == nil {
		err = t.call(ctx)
	}
	switch {
	case t.life.Err() != nil:
		err = errStopped
	case err != nil && ctx.Err() != nil:
		late = true
		err = fmt.Errorf("a connection was not set up within %v: %w", limit, err)
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.now, t.last, now.err = nil, err, err
	if t.failed++; err == nil {
		t.failed = 0
	}
	if t.expired++; !late {
		t.expired = 0
	}
}

// late is the error of a request that does not wait for a call.
func (t *Tries) late(ctx context.Context, now *try) error {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	since := time.Since(now.began).Round(time.Millisecond)
	if t.last != nil {
		return fmt.Errorf("a connection is being set up, since %v; the last try: %w: %w", since, t.last, ctx.Err())
	}
	return fmt.Errorf("a connection is being set up, since %v: %w", since, ctx.Err())
}

// Stop ends a call, and lets no other begin. It does not wait for that.
func (t *Tries) Stop() { t.kill() }
