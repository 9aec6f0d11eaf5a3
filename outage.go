package elector

import (
	"context"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
)

// A backoff paces tries that fail, and logs why: see outage. Several goroutines may use
// it.
type backoff struct {
	e        *Elector
	what     string
	failures atomic.Int64 // since a try has worked; written under the mutex of outages

	// Guarded by the mutex of outages. A backoff that is part of an outage has failures.
	part   *outage // nil unless the latest try has failed
	closed bool    // there are no more tries
}

func (e *Elector) newBackoff(what string) *backoff { return &backoff{e: e, what: what} }

// The longest pauses after a failure where leases are long. A refusal passes only when
// somebody has changed something, and many of them may lock an account.
const (
	longestPause   = 10 * time.Second
	longestRefused = 30 * time.Second
)

// pause logs the failure and waits: longer each time, up to RenewEvery or 10 s, of a
// permanent failure 30 s, and by a random part, so that many candidates do not come back
// together. It returns false when ctx ends first.
func (b *backoff) pause(ctx context.Context, f *failure) bool {
	e := b.e
	if ctx.Err() != nil {
		return false
	}
	longest := longestPause
	if f.permanent() {
		longest = longestRefused
	}
	longest = min(e.o.RenewEvery, longest) >> max(0, 5-b.failed(f))
	return e.sleep(ctx, max(e.halfRandom(longest), e.o.writeInterval))
}

// over records that a try has succeeded.
func (b *backoff) over(args ...any) { b.end(true, args) }

// rest records that there are no more tries for now.
func (b *backoff) rest() { b.end(false, nil) }

// close records that there are no more tries.
func (b *backoff) close() {
	outages.Lock()
	b.closed = true
	outages.Unlock()
	b.rest()
}

// An outage is one thing that fails at present in elections of this process. What a slow
// store causes is logged once for the store: a line for the first election that fails,
// one with their number after a renewal interval, in which all have tried, and one when
// all work again.
type outage struct {
	key      outageKey
	failing  map[*Elector]int // how many backoffs of each are part of it
	most     int              // elections that failed at the same time
	failures int
	logged   map[string]bool // reasons, see reasonOf
	several  bool            // the line with the number is logged, or due
	worked   bool            // in an election that had failed
}

// An outageKey names an outage: what fails; and the backend on which it does, or the
// Elector if it concerns that alone.
type outageKey struct {
	of   any
	what string
}

// outages are those of this process.
var outages = struct {
	sync.Mutex
	by map[outageKey]*outage
}{by: map[outageKey]*outage{}}

// failed counts a failure, and logs it if its reason is new: as an error if it passes only
// when somebody changes something. args are for the log.
func (b *backoff) failed(f *failure, args ...any) (failures int64) {
	e, level := b.e, slog.LevelWarn
	if f.permanent() {
		level = slog.LevelError
	}
	o, over, fresh, several := b.add(f.err)
	b.ends(over, nil)
	if fresh {
		e.log.Log(context.Background(), level, "elector: "+b.what+" fails and is tried again", append(args, "error", f.err)...)
	}
	if several {
		e.clock.AfterFunc(e.o.RenewEvery, func() {
			outages.Lock()
			n := len(o.failing)
			outages.Unlock()
			if n > 1 {
				e.storeLog.Log(context.Background(), level, "elector: "+b.what+" fails and is tried again", "elections", n, "error", f.err)
			}
		})
	}
	return b.failures.Load()
}

// add makes the tries part of the outage that an error belongs to. It returns the one that
// they leave, if that is over, and reports whether the reason is new, and whether several
// elections fail for the first time.
func (b *backoff) add(err error) (o, over *outage, fresh, several bool) {
	key, reason := outageKey{b.e.backend, b.what}, reasonOf(err, b.e.name)
	if unhealthyError(err) || !reflect.ValueOf(b.e.backend).Comparable() {
		key.of = b.e
	}
	outages.Lock()
	defer outages.Unlock()
	b.failures.Add(1)
	if b.closed {
		return nil, nil, false, false
	}
	if o = b.part; o == nil || o.key != key {
		over = b.leave(false)
		if o = outages.by[key]; o == nil {
			o = &outage{key: key, failing: map[*Elector]int{}, logged: map[string]bool{}}
			outages.by[key] = o
		}
		o.failing[b.e]++
		b.part = o
	}
	o.failures++
	o.most = max(o.most, len(o.failing))
	fresh, several = !o.logged[reason], len(o.failing) > 1 && !o.several
	o.logged[reason] = true
	o.several = o.several || several
	return o, over, fresh, several
}

// leave takes the tries out of their outage, because one has worked, or because there are no
// more. It returns the outage if that is over. The caller holds the mutex of outages.
func (b *backoff) leave(worked bool) (over *outage) {
	o := b.part
	if o == nil {
		return nil
	}
	b.part = nil
	o.worked = o.worked || worked
	if o.failing[b.e]--; o.failing[b.e] == 0 {
		delete(o.failing, b.e)
	}
	if len(o.failing) > 0 {
		return nil
	}
	delete(outages.by, o.key)
	return o
}

// end records that a try has worked, or that there are no more.
func (b *backoff) end(worked bool, args []any) {
	if b.failures.Load() == 0 {
		return
	}
	outages.Lock()
	failures, was := b.failures.Load(), b.part != nil
	over := b.leave(worked)
	if worked {
		b.failures.Store(0)
	}
	outages.Unlock()
	if worked && !was && failures > 0 { // the tries had ended
		over = &outage{failures: int(failures), worked: true}
	}
	b.ends(over, args)
}

// ends logs the end of an outage, unless it is nil, or no try has worked.
func (b *backoff) ends(o *outage, args []any) {
	switch {
	case o == nil || !o.worked:
	case o.most > 1:
		b.e.storeLog.Info("elector: "+b.what+" works again", "elections", o.most, "failures", o.failures)
	default:
		b.e.log.Info("elector: "+b.what+" works again", append(args, "failures", o.failures)...)
	}
}
