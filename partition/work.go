package partition

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

// Work is what a group calls for each partition that this process owns. ctx is the
// lease's: see Lease.Context.
type Work func(ctx context.Context, lease *Lease) error

// The pauses of a worker that returns although it should work.
const (
	shortestPause = 100 * time.Millisecond
	longestPause  = time.Minute
)

// start calls the worker of a slot, after a pause.
func (s *sitting) start(x *slot, pause time.Duration) {
	l := x.lease
	s.running.Add(1)
	go func() {
		defer func() {
			x.returned.Store(true)
			s.running.Add(-1)
			wake(s.woken)
		}()
		s.group.wait(l.ctx, s.group.now()+pause, nil)
		s.work(l)
	}()
}

// work calls the worker until its lease's context ends. A worker that returns, fails or
// panics before is called again, after a pause that grows with each time.
func (s *sitting) work(l *Lease) {
	g := s.group
	pause := shortestPause
	for l.ctx.Err() == nil {
		start := g.clock.Now().Mono
		err := s.call(l)
		if l.Check() != nil {
			<-l.ctx.Done() // the end of the lease ends it, a moment later
		}
		if l.ctx.Err() != nil {
			if err != nil {
				g.log.Info("elector: the worker returned after its context ended", "partition", l.partition, "token", l.Token(), "error", err)
			}
			return
		}
		if g.clock.Now().Mono-start > 2*pause {
			pause = shortestPause // it had worked
		}
		g.log.Warn("elector: the worker returned although the partition is still this process's; it is called again", "partition", l.partition, "token", l.Token(), "pause", pause, "error", err)
		g.traceFailed(l, err)
		g.wait(l.ctx, g.now()+pause, nil)
		pause = min(2*pause, longestPause)
	}
}

// call calls the worker once. A panic is an error, of this partition alone.
func (s *sitting) call(l *Lease) (err error) {
	l.sign.Store(int64(max(1, l.group.now())))
	defer func() {
		l.sign.Store(0)
		if p := recover(); p != nil {
			err = fmt.Errorf("the worker panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return s.worker(l.ctx, l)
}
