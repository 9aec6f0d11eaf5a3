package groups

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// A board has what all members of a group have said.
type board struct {
	now        func() time.Duration
	partitions int

	mutex   sync.Mutex
	all     map[view][]stretch // those that have not ended end forever
	frozen  map[string][]span
	changed map[view]time.Duration // when the latest message came
	err     error                  // of a member that failed
}

func newBoard(partitions int, now func() time.Duration) *board {
	return &board{now: now, partitions: partitions, all: map[view][]stretch{}, frozen: map[string][]span{}, changed: map[view]time.Duration{}}
}

// take takes note of a member's message.
func (b *board) take(member string, m message) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.changed[m.View] = b.now()
	switch m.Kind {
	case began:
		b.all[m.View] = append(b.all[m.View], stretch{member, m.Partition, span{m.At, forever}})
	case ended:
		b.end(m.View, m.At, func(s stretch) bool { return s.member == member && s.partition == m.Partition })
	case failed:
		b.err = errors.Join(b.err, fmt.Errorf("member %s: %s", member, m.Error))
	}
}

func (b *board) end(v view, at time.Duration, which func(stretch) bool) {
	for i, s := range b.all[v] {
		if s.to == forever && which(s) {
			b.all[v][i].to = at
		}
	}
}

// killed notes that a member was killed. What it said until then has been taken.
func (b *board) killed(member string, at time.Duration) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for v := range b.all {
		b.changed[v] = b.now()
		b.end(v, at, func(s stretch) bool { return s.member == member })
	}
}

// froze notes that a member could do nothing in a span.
func (b *board) froze(member string, s span) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.frozen[member] = append(b.frozen[member], s)
}

// settled returns nil if each of the members works on a partition, and each partition has
// one of them, in each of the views, and nothing has changed in the last one for a while.
// Otherwise it returns what is not so. A partition that gets no record for a moment does
// not matter where the last view is by callbacks.
func (b *board) settled(views []view, members []string, calm time.Duration) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.err != nil {
		return b.err
	}
	for _, v := range views {
		workers, of := make([][]string, b.partitions), map[string]bool{}
		for _, s := range b.all[v] {
			if s.to == forever {
				workers[s.partition] = append(workers[s.partition], s.member)
				of[s.member] = true
			}
		}
		for n, w := range workers {
			if len(w) != 1 {
				return fmt.Errorf("%s: partition %d has %d members: %v", v, n, len(w), w)
			}
		}
		for _, m := range members {
			if !of[m] {
				return fmt.Errorf("%s: member %s has no partition", v, m)
			}
			delete(of, m)
		}
		if len(of) > 0 {
			return fmt.Errorf("%s: members work that should not: %v", v, slices.Sorted(maps.Keys(of)))
		}
	}
	last := views[len(views)-1]
	if since := b.now() - b.changed[last]; since < calm {
		return fmt.Errorf("%s: a partition changed %v ago", last, since)
	}
	return nil
}

// judge returns what a scene has shown, in a view.
func (b *board) judge(v view, scene span) outcome {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return judge(b.partitions, b.all[v], b.frozen, scene)
}
