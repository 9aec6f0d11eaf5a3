package elector

import (
	"context"
	"fmt"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/store"
)

// What a request is for: the Op of RequestInfo.
const (
	loading   = "load"
	swapping  = "swap"
	examining = "healthy" // a call of Options.Healthy
	watching  = "watch"
	attending = "watch-presence"
)

// An ask is what a request to the store is for, and how it is made.
type ask struct {
	why   string
	limit time.Duration // for an answer, from now; 0 for as long as the context lasts
	began time.Duration // monotonic
	store.Ask
}

// asks returns an ask for a request that has RequestTimeout from when it is sent.
func (e *Elector) asks(why string, rank store.Rank) ask {
	return ask{why: why, began: e.now(), Ask: store.Ask{Rank: rank, Timeout: e.o.RequestTimeout}}
}

// within bounds the wait for an answer, besides the context.
func (a ask) within(limit time.Duration) ask {
	a.limit = limit
	return a
}

// alone makes the request one that goes by itself. A read-back does: a write without an answer
// may need a read of its own kind (see backends/postgres), and a lease waits for it.
func (a ask) alone() ask {
	a.Alone = true
	return a
}

// gathers lets the request wait a moment for those of others, if may is set.
func (a ask) gathers(may bool) ask {
	a.Gather = may
	return a
}

// outcome waits for a request that has begun. unsent reports whether it was certainly not
// sent. The caller has registered with begin.
func (e *Elector) outcome(ctx context.Context, a ask, r *store.Request) (_ backends.Record, _ *failure, unsent bool) {
	parent := ctx
	select {
	case <-r.Done():
	default:
		if a.limit > 0 {
			var cancel context.CancelFunc
			ctx, cancel = e.clock.WithTimeout(ctx, a.limit)
			defer cancel()
		}
	}
	o, unsent := r.Wait(ctx)
	f := e.failed(parent, ctx, a.limit, o.Err, unsent)
	e.traceRequest(parent, a.why, e.now()-a.began, f)
	return o.Record, f, unsent
}

// failed returns what an error of a request means, nil for none. ctx is the context parent
// with the limit.
func (e *Elector) failed(parent, ctx context.Context, limit time.Duration, err error, unsent bool) *failure {
	if err == nil {
		return nil
	}
	f := &failure{kindOf(err), err}
	switch {
	case f.kind != transient || ctx.Err() == nil:
	case parent.Err() != nil:
		f = &failure{cancelled, fmt.Errorf("%w (%w)", e.ended(parent, nil), err)}
	case unsent:
		f.err = fmt.Errorf("%w: not sent within %v, because other requests of this process are under way or go before it", ErrUnavailable, limit)
	}
	return f
}

// load reads the record and enters it into the view. What it overlaps with counts from when
// the request is sent.
func (e *Elector) load(ctx context.Context, a ask) (backends.Record, *failure) {
	// A read that overlaps with other reads, or with what the store pushes,
	// may show an older state than they did. Then only another read can show
	// whether the record really went back.
	for range 3 {
		var mark uint64
		var start time.Duration // the wait for others is no part of the round trip
		sent := func() { mark, start = e.view.Mark(), e.clock.Now().Mono }
		a.began = e.now()
		r, f, _ := e.outcome(ctx, a, e.requests.Load(ctx, e.name, a.Ask, sent))
		if f == nil && r.Exists() {
			if err := r.Validate(); err != nil {
				f = &failure{kindOf(err), err}
			}
		}
		if f != nil {
			return backends.Record{}, f
		}
		now := e.now()
		e.timing.read(now, now-start)
		if e.view.Read(r, mark, now) {
			e.traceNews(ctx)
			return r, nil
		}
	}
	return backends.Record{}, &failure{transient, fmt.Errorf("%w: three reads in a row were overtaken by changes", ErrUnavailable)}
}

// loadOnce is load for a user, and by itself: it fails where there is no room for it.
func (e *Elector) loadOnce(ctx context.Context) (backends.Record, *failure) {
	return e.load(ctx, e.asks(loading, store.Look).alone().within(e.o.RequestTimeout))
}

// A swap is a swap that may have to wait. Another goroutine calls its functions when it is
// about to be sent.
type swap struct {
	prev backends.Record
	size int                    // about how many bytes of text the two records have
	may  func() bool            // each time: whether it is still to be sent
	next func() backends.Record // once: what replaces prev

	e      *Elector
	change backends.Change // once it is built
}

// build returns what is sent, unless it is not to be sent any more.
func (s *swap) build() (backends.Change, bool) {
	switch {
	case !s.may():
		return backends.Change{}, false
	case s.change.Name == "":
		s.change = backends.Change{Name: s.e.name, Prev: s.prev, Next: s.next()}
	}
	s.e.timing.wrote.Store(int64(s.e.now()))
	return s.change, true
}

// beginSwap begins a swap, which was not begun before.
func (e *Elector) beginSwap(ctx context.Context, a ask, s *swap) *store.Request {
	s.e = e
	return e.requests.Swap(ctx, e.name, a.Ask, s.size, s.build)
}

// endSwap waits for a swap that replaces prev, and enters the result into the view.
func (e *Elector) endSwap(ctx context.Context, a ask, prev backends.Record, r *store.Request) (_ backends.Record, _ *failure, unsent bool) {
	next, f, unsent := e.outcome(ctx, a, r)
	if f == nil {
		e.view.Wrote(prev, next, e.now())
		e.traceNews(ctx)
	}
	return next, f, unsent
}

// swap makes a swap.
func (e *Elector) swap(ctx context.Context, a ask, s *swap) (_ backends.Record, _ *failure, unsent bool) {
	return e.endSwap(ctx, a, s.prev, e.beginSwap(ctx, a, s))
}
