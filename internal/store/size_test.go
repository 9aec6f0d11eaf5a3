package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/clock"
)

// A swap whose time is over while it waits stays behind, and the others go. That is no failure
// of the store.
func TestLate(t *testing.T) {
	inBubble(t, func(s *scene) {
		all := s.fill()
		l := s.client().Swapping()
		defer l.Leave()
		begin := func(name string) *Request {
			return s.client().Swap(s.Context(), name, Ask{Timeout: time.Minute}, 10, func() (backends.Change, bool) { return backends.Change{}, false })
		}
		for _, name := range []string{"a", "b", "c"} {
			begin(name)
		}
		before := state(l)
		s.free(all[:1], nil)
		if got := names(s.gate.arrived()); len(got) != 0 || state(l).now != before.now {
			s.Errorf("%v were sent; so many may go together: %d, not %d", got, state(l).now, before.now)
		}
		full := s.swap("full again", Ask{Alone: true})
		s.gate.arrived()
		late, other := begin("late"), s.swap("other", Ask{})
		full.GiveUp(context.Canceled)
		s.free(nil, nil)
		sent := s.gate.arrived()
		if got := names(sent); len(got) != 1 || !slices.Equal(got[0], []string{"other"}) {
			s.Errorf("%v were sent", got)
		}
		if o, unsent := late.Wait(s.Context()); !unsent || !errors.Is(o.Err, backends.ErrNotTried) {
			s.Errorf("late ends with %v, unsent %v", o.Err, unsent)
		}
		s.free(sent, nil)
		if o, _ := other.Wait(s.Context()); o.Err != nil {
			s.Error(o.Err)
		}
	})
}

// state returns what is known of the requests that go together.
func state(p *Place) size {
	p.handle.mutex.Lock()
	defer p.handle.mutex.Unlock()
	return p.line.size
}

// Where requests for many fail and those for few are answered, fewer go together; and while
// the store answers as many of others, those that have failed go apart.
func TestSize(t *testing.T) {
	const n = 40
	for name, c := range map[string]struct {
		answered int // the size of another request that is answered meanwhile, if any
		err      error
		sizes    []int
	}{
		"nothing is answered":      {0, backends.ErrUnavailable, []int{n, n / 10, 1}},
		"nothing is tried":         {0, backends.ErrNotTried, []int{n, n / 10, 1}},
		"single ones are answered": {1, backends.ErrUnavailable, []int{n, n / 10, 2}},
		"others are answered":      {n, backends.ErrUnavailable, []int{n, n, n}},
	} {
		inBubble(t, func(s *scene) {
			var clients, others []*Client
			for range n {
				clients, others = append(clients, s.client()), append(others, s.client())
			}
			defer clients[0].Swapping().Leave()
			l := clients[0].Swapping()
			defer l.Leave()
			ask := Ask{Gather: true, Timeout: time.Minute}
			var sizes, apart []int
			for range c.sizes {
				for i, other := range others[:c.answered] {
					s.swapBy(other, fmt.Sprint("other", i), ask)
				}
				time.Sleep(swapWait)
				s.free(s.gate.arrived(), nil)
				sizes = append(sizes, state(l).now)
				for i, client := range clients {
					s.swapBy(client, fmt.Sprint(i), ask)
				}
				time.Sleep(swapWait)
				for some := s.gate.arrived(); len(some) > 0; some = s.gate.arrived() {
					s.free(some, c.err)
				}
				state(l)
				apart = append(apart, clients[0].most[swaps])
			}
			for i, size := range sizes {
				if size = min(size, n); size != c.sizes[i] {
					s.Errorf("%s: so many may go together: %v; want %v", name, sizes, c.sizes)
				}
			}
			if want := []int{n / 10, 1, 1}; c.answered == n && !slices.Equal(apart, want) {
				s.Errorf("%s: they go by %v; want %v", name, apart, want)
			}
			if others[0].most[swaps] != 0 {
				s.Errorf("%s: others go by %v", name, others[0].most)
			}
		})
	}
}

// What has failed as it was too large is tried again by one request at a time, and more rarely
// each time.
func TestTrial(t *testing.T) {
	s := size{most: 100, now: 100}
	b := func(n int) *batch {
		b := &batch{timeout: time.Second}
		for range n {
			b.went = append(b.went, &Request{client: &Client{}, queued: queued{line: &line{}}})
		}
		return b
	}
	s.failed(b(100), false, 0)
	s.failed(b(100), false, 0) // which was under way
	var waited []int
	for range 4 {
		answers := 0
		for s.next() == s.now && answers < 100 {
			s.answered(s.now, 0)
			answers++
		}
		waited = append(waited, answers)
		large := b(s.next())
		large.trial, s.trial = true, true
		if s.next() != s.now {
			t.Error("two are tried at once")
		}
		s.trial = false
		s.failed(large, false, time.Minute)
	}
	if want := []int{3, 4, 8, 16}; !slices.Equal(waited, want) {
		t.Errorf("it waits for %v answers; want %v", waited, want)
	}
	s.answered(100, 0)
	if s.now != 100 || s.bad != 0 {
		t.Errorf("after an answer to as many: %+v", s)
	}
}

// A request for many has twice its time while others wait for its place, as many were answered
// lately, and no lease of it ends before.
func TestTime(t *testing.T) {
	for _, over := range []time.Duration{0, 1500 * time.Millisecond, time.Minute} {
		inBubble(t, func(s *scene) {
			full := s.fill()
			s.swap("a", Ask{})
			s.swap("b", Ask{})
			s.free(full[:1], nil)
			s.free(s.gate.arrived(), nil)
			how := Ask{Timeout: time.Second}
			if over > 0 {
				how.Over = clock.System{}.Now().Mono + over
			}
			both := []*Request{s.swap("c", how), s.swap("d", how)}
			time.Sleep(swapWait + how.Timeout/32)
			if sent := names(s.gate.arrived()); len(sent) != 1 || len(sent[0]) != 2 {
				s.Fatalf("they went as %v", sent)
			}
			s.swap("waits", Ask{})
			time.Sleep(how.Timeout + lastWord)
			synctest.Wait()
			for _, r := range both {
				select {
				case <-r.Done():
					if over != 1500*time.Millisecond {
						s.Errorf("one whose lease has %v ends after its time: %v", over, r.outcome.Err)
					}
				default:
					if over == 1500*time.Millisecond {
						s.Errorf("one whose lease has %v has twice its time", over)
					}
				}
			}
			time.Sleep(how.Timeout)
			for _, r := range both {
				within := 2 * how.Timeout
				if over == 1500*time.Millisecond {
					within = how.Timeout
				}
				if o, _ := r.Wait(s.Context()); o.Err == nil || !strings.Contains(o.Err.Error(), fmt.Sprintf("no answer within %v (", within)) {
					s.Errorf("one whose lease has %v ends with %v", over, o.Err)
				}
			}
		})
	}
}
