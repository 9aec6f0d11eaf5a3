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
	changed time.Duration // when the latest message came
	err     error         // of a member that failed
}

func newBoard(partitions int, now func() time.Duration) *board {
	return &board{now: now, partitions: partitions, all: map[view][]stretch{}, frozen: map[string][]span{}}
}

// take takes note of a member's message.
func (b *board) take(member string, m message) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.changed = b.now()
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
	b.changed = b.now()
	for v := range b.all {
		b.end(v, at, func(s stretch) bool { return s.member == member })
	}
}

// froze notes that a member could do nothing in a span.
func (b *board) froze(member string, s span) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.changed = b.now()
	b.frozen[member] = append(b.frozen[member], s)
}

// settled returns nil if each of the members works on a partition, each partition has
// one of them, and that has been so for a while. Otherwise it returns what is not so.
func (b *board) settled(members []string, calm time.Duration) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.err != nil {
		return b.err
	}
	for _, v := range slices.Sorted(maps.Keys(b.all)) {
		workers, of := make([][]string, b.partitions), map[string]int{}
		for _, s := range b.all[v] {
			if s.to == forever {
				workers[s.partition] = append(workers[s.partition], s.member)
				of[s.member]++
			}
		}
		for n, w := range workers {
			if len(w) != 1 {
				return fmt.Errorf("%s: partition %d has %d members: %v", v, n, len(w), w)
			}
		}
		for _, m := range members {
			if of[m] == 0 {
				return fmt.Errorf("%s: member %s has no partition", v, m)
			}
			delete(of, m)
		}
		if len(of) > 0 {
			return fmt.Errorf("%s: members work that should not: %v", v, slices.Sorted(maps.Keys(of)))
		}
	}
	if len(b.all) == 0 {
		return errors.New("no member works")
	}
	if since := b.now() - b.changed; since < calm {
		return fmt.Errorf("a partition changed %v ago", since)
	}
	return nil
}

// judge returns what a scene has shown, in a view.
func (b *board) judge(v view, scene span) outcome {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return judge(b.partitions, b.all[v], b.frozen, scene)
}
