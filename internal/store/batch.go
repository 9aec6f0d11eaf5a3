package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
)

// A batch is requests that are sent as one.
type batch struct {
	requests []*Request
	most     int
	bytes    int
	trial    bool          // it is larger than others
	timeout  time.Duration // the longest of them
	within   time.Duration // the same, or twice that: see limit
	began    time.Duration // monotonic
	sent     chan struct{} // closed when what it sends is built

	// Guarded by the handle's mutex.
	went    []*Request // those that did not stay behind
	waiting int        // requests that somebody waits for
	cancel  context.CancelFunc
	late    bool // its time is over
	freed   bool // it has lost its place
	landed  bool
}

// takes adds a request, if it may go with the others: with those of other names.
func (b *batch) takes(r *Request) bool {
	switch {
	case len(b.requests) == 0:
	case b.bytes+r.bytes > maxBytes || r.most != 0 && r.most <= len(b.requests):
		return false
	case r.build != nil && slices.ContainsFunc(b.requests, func(other *Request) bool { return other.name == r.name }):
		return false
	}
	if r.most != 0 {
		b.most = min(b.most, r.most)
	}
	b.requests = append(b.requests, r)
	b.bytes += r.bytes
	b.timeout = max(b.timeout, r.Timeout)
	b.within = b.timeout
	b.waiting++
	r.batch = b
	r.client.active.Add(1)
	return true
}

// abandon ends one request of a batch, with the error why. With the last one the batch is
// given up, loses its place, and that client waits for it. The caller holds the mutex.
func (h *handle) abandon(b *batch, r *Request, why error) {
	last := b.waiting == 1
	b.settle(r, backends.Outcome{Err: why})
	if !last {
		r.left = true
		r.client.active.Done()
		return
	}
	if b.cancel != nil {
		b.cancel()
	}
	h.free(r.line, b)
	h.overdue(r.line, b, why)
}

// age returns for how long the batch is under way, 0 if it is not sent yet.
func (b *batch) age(now time.Duration) time.Duration {
	if b.cancel == nil {
		return 0
	}
	return now - b.began
}

// carry sends a batch, and brings the outcomes.
func (h *handle) carry(l *line, b *batch) {
	ctx, cancel := h.limit(b)
	defer cancel()
	all := h.prepare(b, cancel)
	stop := context.AfterFunc(ctx, func() {
		h.after(min(lastWord, b.timeout/16), func() {
			if !b.landed && !b.late {
				l.failed(b, false, h.clock.Now().Mono)
			}
			h.overdue(l, b, context.Cause(ctx))
		})
	})
	outcomes := backends.Outcomes(len(all), errGoexit)
	defer func() { // also when the backend ends its goroutine
		stop()
		h.land(l, b, all, outcomes, ctx.Err())
	}()
	if len(all) > 0 {
		outcomes = h.send(ctx, l, all)
	}
	if len(outcomes) != len(all) {
		outcomes = backends.Outcomes(len(all), fmt.Errorf("%w: the backend answered %d of %d requests", backends.ErrUnavailable, len(outcomes), len(all)))
	}
}

// limit returns the context of a batch, which has the values of a request that goes by itself.
// Of one for many, each request is given up when its own time is over, if others have more. It
// has twice the time while others wait for its place, as many were answered lately, and no lease
// of it ends before: where the store, or this process, has too much to do, a request that is made
// again only adds to that.
func (h *handle) limit(b *batch) (context.Context, context.CancelFunc) {
	if r := b.requests[0]; len(b.requests) == 1 {
		return r.client.clock.WithTimeout(context.WithoutCancel(r.ctx), b.timeout)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	end := func() { cancel(context.DeadlineExceeded) }
	stops := []func() bool{h.after(b.timeout, func() {
		now := h.clock.Now().Mono
		ends := func(r *Request) bool { return r.Over != 0 && r.Over-now < b.timeout }
		if l := b.requests[0].line; b.waiting > 0 && l.waiting > 0 && l.works(b, now) && !slices.ContainsFunc(b.went, ends) {
			b.within = 2 * b.timeout
			h.clock.AfterFunc(b.timeout, end)
			return
		}
		end()
	})}
	set := []time.Duration{b.timeout}
	for _, r := range b.requests {
		if slices.Contains(set, r.Timeout) {
			continue
		}
		set = append(set, r.Timeout)
		stops = append(stops, h.after(r.Timeout, func() {
			for _, other := range b.requests {
				if other.Timeout <= r.Timeout && other.batch == b && !other.over {
					h.abandon(b, other, unanswered(other.Timeout, context.DeadlineExceeded))
				}
			}
		}))
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel(nil)
	}
}

// prepare builds what is sent. What comes too late stays behind.
func (h *handle) prepare(b *batch, cancel context.CancelFunc) (all []*Request) {
	var late []*Request
	for _, r := range b.requests {
		if r.sent != nil {
			r.sent()
		} else if change, may := r.build(); may {
			r.change, r.built = change, true
		} else {
			late = append(late, r)
			continue
		}
		all = append(all, r)
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	close(b.sent)
	b.went, b.began, b.cancel = all, h.clock.Now().Mono, cancel
	for _, r := range late {
		b.settle(r, backends.Outcome{Err: cmp.Or(r.why, errLate)})
	}
	if b.waiting == 0 {
		cancel()
	}
	return all
}

// settle ends a request of the batch, unless it is given up or over. The caller holds the
// mutex.
func (b *batch) settle(r *Request, o backends.Outcome) {
	if r.over || r.batch != b {
		return
	}
	b.waiting--
	r.end(o)
}

// unanswered returns the error of a request that had so much time.
func unanswered(time time.Duration, cause error) error {
	return fmt.Errorf("%w: no answer within %v (%w)", backends.ErrUnavailable, time, cause)
}

// overdue ends the requests of a batch whose time is over, and counts it with those that
// hang until it returns. After a moment it loses its place. The caller holds the mutex.
func (h *handle) overdue(l *line, b *batch, cause error) {
	if b.landed || b.late {
		return
	}
	b.late = true
	b.count(1)
	l.busy--
	if b.trial {
		l.hung++
	}
	for _, r := range b.requests {
		b.settle(r, backends.Outcome{Err: unanswered(b.within, cause)})
	}
	half := min(longestGrace, b.timeout/4) / 2
	h.clock.AfterFunc(half, func() { // this process may have stood still, and the backend is about to return
		h.after(half, func() {
			if !b.landed {
				h.free(l, b)
				h.dispatch()
			}
		})
	})
	h.dispatch()
}

// free gives the batch's place up. The caller holds the mutex.
func (h *handle) free(l *line, b *batch) {
	if !b.freed {
		b.freed = true
		if b.trial {
			l.trial = false
		}
		l.under--
		h.under--
	}
}

// land takes the outcomes of a batch, and how its context has ended.
func (h *handle) land(l *line, b *batch, all []*Request, outcomes []backends.Outcome, ended error) {
	h.mutex.Lock()
	now := h.clock.Now().Mono
	for i, o := range outcomes { // backends may return it as it is
		if ended != nil && errors.Is(o.Err, ended) && !errors.Is(o.Err, backends.ErrUnavailable) {
			outcomes[i].Err = unanswered(b.within, o.Err)
		}
	}
	b.landed = true
	switch {
	case !b.late:
		l.busy--
	case b.trial:
		l.hung--
	}
	h.free(l, b)
	refused := h.judge(l, b, all, outcomes, now)
	for i, r := range all {
		h.outcome(l, b, r, outcomes[i], refused, now)
	}
	if b.late {
		b.count(-1)
	}
	var active []*sync.WaitGroup
	for _, r := range b.requests {
		if !r.left { // it was not given up while others waited
			active = append(active, r.client.active)
		}
	}
	h.dispatch()
	h.mutex.Unlock()
	h.leave()
	for _, a := range active { // last, as Close waits for them
		a.Done()
	}
}

// count counts a batch that hangs, once for each client. The caller holds the mutex of the
// handle.
func (b *batch) count(n int) {
	for i, r := range b.requests {
		if !slices.ContainsFunc(b.requests[:i], func(other *Request) bool { return other.client == r.client && other.Rank == r.Rank }) {
			r.client.hung[r.Rank] += n
		}
	}
}

// judge learns from the outcomes how many requests may go together, and reports whether all
// were refused. What the backend has answered with another's write has no answer. The caller holds the mutex.
func (h *handle) judge(l *line, b *batch, all []*Request, outcomes []backends.Outcome, now time.Duration) (refused bool) {
	good, wrong := false, false
	refused = len(all) > 0
	for i, r := range all {
		o := &outcomes[i]
		if r.build != nil && o.Err == nil && o.Record.Attempt != r.change.Next.Attempt {
			o.Err, wrong = errAnother, true
		}
		good = good || answered(o.Err)
		refused = refused && backends.Permanent(o.Err)
	}
	switch {
	case good && !wrong:
		l.answered(len(outcomes), now)
		if l == &h.lines[swaps] {
			h.trip = max(now-b.began, h.trip-h.trip/8)
		}
	case !b.late:
		l.failed(b, refused, now)
	}
	return refused
}

// outcome ends a request with its outcome, or lets it wait again. The caller holds the mutex.
func (h *handle) outcome(l *line, b *batch, r *Request, o backends.Outcome, refused bool, now time.Duration) {
	switch most := &r.client.most[l.kind]; {
	case answered(o.Err):
		*most = 0
	case len(b.went) == 1 && backends.Permanent(o.Err):
		*most = 1 // others need not be refused with it again
	}
	if r.over {
		return
	}
	n := len(b.went)
	again := 0 // how many may go together next
	switch {
	case n == 1:
	case notTried(o.Err), backends.Permanent(o.Err) && (r.build == nil || r.change.Prev.Exists()):
		// The store may have refused another one. That is safe even if this one was applied:
		// it is the same write, and only one of the two can find the version that both
		// replace.
		if again = 1; refused {
			again = (n + 1) / 2
		}
	case backends.Permanent(o.Err):
		// A creation replaces no version. So if this one is still to be applied, only
		// the caller can tell whether it may write again.
		o.Err = fmt.Errorf("%w: together with others: %v", backends.ErrUnavailable, o.Err)
	}
	if again == 0 {
		b.settle(r, o)
		return
	}
	b.waiting--
	r.batch, r.most, r.why = nil, again, o.Err
	l.add(r, now)
	l.leave = now
}
