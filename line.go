package elector

import (
	"context"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/annex"
)

// While an election has a leader, one of those who wait takes the place in line, if
// the store has one (see backends.Liner). After a release it is the successor: a handover
// takes two writes and no read, however many wait. A successor that the record names comes
// before it. So candidates with a priority take no place, but announce themselves in
// the record, where those that only poll see it too: see priority.go.
//
// The place is a hint: like any successor it decides only when a candidate tries. It may
// be lost, late or a lie, and may name a candidate that is gone. It has the token of
// the leader whose tenure it is for, and counts for the end of that tenure alone.

// inPlace returns the ID of the candidate that has the place in line while r, or the
// vacancy after it, stands; it is empty if there is none.
func inPlace(place string, r backends.Record) string {
	f := annex.Split(place, 2)
	token, err := ParseToken(f[0])
	if err != nil || len(place) > backends.MaxPlace || !r.Exists() || uint64(token) != r.Token || annex.CheckID(f[1]) != nil {
		return ""
	}
	return f[1]
}

// placed enters the place in line that the store has shown, and reports whether it
// is another one.
func (v *view) placed(place string) bool {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	moved := place != v.place
	v.place = place
	return moved
}

// queues returns the record and the place in line, as they were seen last, and
// whether this candidate waits for the leader's tenure to end, and could lead then.
func (v *view) queues() (r backends.Record, place string, waits bool) {
	r, waits = v.follows()
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return r, v.place, waits && v.held <= v.clock.Now().Mono
}

// A line is what a waiting candidate does to have the place in line. The goroutine of
// the campaign owns it.
type line struct {
	e     *Elector
	b     backends.Liner // nil if the store has none
	due   time.Duration  // monotonic, when to act next; forever if there is no reason
	last  string         // nonce of the acquisition in whose tenure it acted last
	acted time.Duration  // monotonic, when that was
	tries int            // how often it tried to take the place in that tenure, since it last saw one
	taken string         // the place that this candidate took, or tried to take, last
	done  chan struct{}  // closed when the latest request has ended; nil if there was none
}

func newLine(e *Elector) line {
	q := line{e: e, due: forever}
	if b, ok := backends.AsLiner(e.backend); ok && annex.CheckID(e.o.ID) == nil {
		q.b = b
	}
	return q
}

// next returns when to act: when to take the place, if there is none, or to ask for
// the health of the candidate that has it; forever if there is nothing to do. The
// time is random, so that few of those who wait write. In one tenure it is at least
// one of the leader's renewal intervals after the last time, and twice as long after
// each try that led to no place.
func (q *line) next() time.Duration {
	if q.b == nil {
		return forever
	}
	e := q.e
	r, place, waits := e.view.queues()
	var idle bool
	switch inPlace(place, r) {
	case "":
		idle = !annex.BidOf(r).None() || e.priority.Load() > 0
	case e.o.ID:
		idle, q.tries = e.o.Healthy == nil, 0
	default:
		idle, q.tries = true, 0
	}
	if !waits || idle {
		q.due = forever
		return forever
	}
	if q.due == forever {
		// First those who wait see the new leader, and one with a priority announces
		// itself.
		q.due = e.clock.Now().Mono + 2*e.span() + 10*time.Millisecond
		within := min(max(4*e.span(), 250*time.Millisecond), time.Second)
		if q.last == r.Attempt.Nonce {
			q.due = max(q.due, q.acted+r.RenewEvery<<max(min(q.tries, 10)-1, 0))
			if place == "" {
				within = max(within, r.RenewEvery) // many places may have gone away at once
			}
		}
		q.due += e.scattered(within)
	}
	return q.due
}

// act does what next has found to be due. A candidate that is not healthy gives its
// place up. The write goes on in the background: a release may come before its answer.
func (q *line) act(ctx context.Context) {
	e := q.e
	r, place, _ := e.view.queues()
	if q.last != r.Attempt.Nonce {
		q.tries = 0
	}
	q.due, q.last, q.acted = forever, r.Attempt.Nonce, e.clock.Now().Mono
	if q.busy() {
		return
	}
	mine, well := inPlace(place, r) == e.o.ID, e.healthy(ctx) == nil
	switch {
	case mine && !well:
		q.swap(ctx, place, "")
	case !mine && well:
		q.tries, q.taken = q.tries+1, annex.Join(Token(r.Token).String(), e.o.ID)
		q.swap(ctx, place, q.taken)
	}
}

// withdraw gives the place up when the campaign ends without a lease, also one that an
// earlier campaign of this candidate took. It tries once, in the background: otherwise
// the others give a head start to a candidate that does not come.
func (q *line) withdraw(ctx context.Context) {
	mine := q.taken
	if r, place, _ := q.e.view.queues(); inPlace(place, r) == q.e.o.ID {
		mine = place
	}
	if mine != "" && q.b != nil {
		q.swap(context.WithoutCancel(ctx), mine, "")
	}
}

// swap replaces the place in the background, after the latest request. What the store
// then shows counts, not what it answers.
func (q *line) swap(ctx context.Context, prev, next string) {
	e, before, done := q.e, q.done, make(chan struct{})
	q.done = done
	e.active.Add(1)
	go func() {
		defer e.active.Done()
		defer close(done)
		if before != nil {
			<-before
		}
		request(ctx, e, e.o.RequestTimeout, placing, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, q.b.SwapPlace(ctx, e.name, prev, next)
		})
	}()
}

// busy reports whether a request is under way.
func (q *line) busy() bool {
	if q.done == nil {
		return false
	}
	select {
	case <-q.done:
		return false
	default:
		return true
	}
}
