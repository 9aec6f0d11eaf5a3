package store

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"
)

const never = time.Duration(math.MaxInt64)

// A line has the requests of one kind that wait. The mutex of its handle guards it.
type line struct {
	kind  kind
	wires int           // the most on their way
	wait  time.Duration // for others, at most

	size                      // of the requests that go together
	members int               // places
	under   int               // requests on their way that keep their place
	busy    int               // those of them whose time is not over
	piles   [ranks][]*Request // that wait, in the order in which they go: see before
	waiting int               // in all piles
	leave   time.Duration     // when they leave, unless they are held back
	hold    time.Duration     // for how long they may be held back
}

// newLine returns a line whose requests go one by one; or together, at most so many, if the
// backend can.
func newLine(k kind, can bool, most int, wait time.Duration) line {
	if !can || most <= 1 {
		return line{kind: k, size: size{most: 1, now: 1}, wires: plainWires}
	}
	return line{kind: k, size: size{most: most, now: most}, wires: wires, wait: wait}
}

// add lets a request wait. Where others are on their way, or may come, it leaves a moment
// later.
func (l *line) add(r *Request, now time.Duration) {
	leave, hold := now, min(longestHold, r.Timeout/32)
	if r.most == 1 {
		hold = 0
	} else if l.most > 1 && (r.Gather && l.members > 1 || l.busy > 0) {
		leave += min(l.wait, hold)
	}
	if l.waiting == 0 || leave < l.leave {
		l.leave = leave
	}
	if l.waiting == 0 || hold < l.hold {
		l.hold = hold
	}
	if r.came == 0 {
		r.came = now
	}
	l.insert(r)
}

func (l *line) insert(r *Request) {
	p := l.piles[r.Rank]
	l.piles[r.Rank] = slices.Insert(p, sort.Search(len(p), func(i int) bool { return r.before(p[i]) }), r)
	l.waiting++
}

func (l *line) remove(r *Request) {
	p := l.piles[r.Rank]
	i := slices.Index(p, r)
	l.piles[r.Rank] = slices.Delete(p, i, i+1)
	l.waiting--
}

// leaves reports whether what waits may leave now.
func (l *line) leaves(now time.Duration) bool { return l.waiting > 0 && l.due(now) <= now }

// due returns when what waits leaves, if there is a place on the wire. Where some are on
// their way already it is held back, so that more can join it.
func (l *line) due(now time.Duration) time.Duration {
	switch most := l.next(); {
	case l.waiting == 0:
		return never
	case most == 1 || l.waiting >= most:
		return now
	case l.busy >= lanes:
		return l.leave + l.hold
	}
	return l.leave
}

// gather takes those out that go next: first those of a rank, and then others in the order
// of their ranks. Of Keep, those that can hardly be in time go last.
func (l *line) gather(first Rank, now, trip time.Duration) *batch {
	b := &batch{sent: make(chan struct{}), most: l.next()}
	var apart []*Request
	take := func(rank Rank) {
		p, n := l.piles[rank], 0
		stay := p[:0]
		for ; n < min(len(p), 2*l.most) && len(b.requests) < b.most; n++ {
			r := p[n]
			switch {
			case r.Over != 0 && r.Over < now+trip && !r.last && n < len(p)-1:
				r.last = true
				apart = append(apart, r)
			case !b.takes(r):
				stay = append(stay, r)
			}
		}
		l.piles[rank] = slices.Delete(p, len(stay), n)
		l.waiting -= n - len(stay)
	}
	take(first)
	for rank := range ranks {
		if rank != first {
			take(rank)
		}
	}
	if len(b.requests) == 0 { // all can hardly be in time
		r := apart[0]
		apart = apart[1:]
		b.takes(r)
	}
	if len(b.requests) > l.now {
		b.trial, l.trial = true, true
	}
	for _, r := range apart {
		l.insert(r)
	}
	l.leave, l.hold = now, 0 // for those that are left, which have waited
	return b
}

// before reports whether a request goes before another one of its rank: by the end of its
// lease, by when it came, and by name, so that what comes at one moment goes in the same order
// each time.
func (r *Request) before(other *Request) bool {
	switch {
	case r.last != other.last:
		return other.last
	case r.Over != other.Over:
		return r.Over < other.Over
	}
	return cmp.Or(cmp.Compare(r.came, other.came), cmp.Compare(r.name, other.name)) < 0
}
