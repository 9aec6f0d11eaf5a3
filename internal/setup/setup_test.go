package setup

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A store signs in slowly, or refuses.
type store struct {
	takes   time.Duration
	refuses error
	begun   []time.Time
	atOnce  int
	most    int
	closed  int
}

func (s *store) maker(t *testing.T) *Maker[int] {
	var mutex sync.Mutex
	m := New(func(ctx context.Context) (int, error) {
		mutex.Lock()
		s.begun = append(s.begun, time.Now())
		n := len(s.begun)
		s.atOnce++
		s.most = max(s.most, s.atOnce)
		mutex.Unlock()
		defer func() { mutex.Lock(); s.atOnce--; mutex.Unlock() }()
		select {
		case <-time.After(s.takes):
			return n, s.refuses
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}, func(int) { s.closed++ })
	t.Cleanup(m.Stop)
	return m
}

func get(m *Maker[int], within time.Duration) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return m.Get(ctx)
}

// A sign-in that takes longer than a request is not thrown away.
func TestOutlives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{takes: 9 * time.Second}
		m := s.maker(t)
		for i := range 2 {
			if _, err := get(m, 4*time.Second); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "is being set up") {
				t.Errorf("request %d: %v", i, err)
			}
		}
		start := time.Now()
		if c, err := get(m, 4*time.Second); c != 1 || err != nil || time.Since(start) != time.Second {
			t.Errorf("the third request gets connection %d after %v: %v", c, time.Since(start), err)
		}
		if len(s.begun) != 1 {
			t.Errorf("%d were begun", len(s.begun))
		}
	})
}

// A try that runs out of time leaves more to the next one, and one that does not takes that
// back.
func TestGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takes, limits := Longest+time.Minute, []time.Duration{}
		tries := NewTries(Longest, func(ctx context.Context) error {
			end, _ := ctx.Deadline()
			limits = append(limits, time.Until(end))
			select {
			case <-time.After(takes):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		defer tries.Stop()
		for range 6 {
			if err := tries.Do(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
		takes = time.Second
		for range 2 {
			if err := tries.Do(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		const s = time.Second
		if want := []time.Duration{10 * s, 20 * s, 40 * s, 80 * s, Longest, Longest, Longest, 10 * s}; !slices.Equal(limits, want) {
			t.Errorf("the limits are %v, want %v", limits, want)
		}
	})
}

// One is made at a time, and each caller gets its own.
func TestOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{takes: time.Second}
		m := s.maker(t)
		got := make(chan int, 5)
		for range cap(got) {
			go func() {
				c, err := m.Get(t.Context())
				if err != nil {
					t.Error(err)
				}
				got <- c
			}()
		}
		seen := map[int]bool{}
		for range cap(got) {
			seen[<-got] = true
		}
		if len(seen) != cap(got) || s.most != 1 {
			t.Errorf("%v, and %d at a time", seen, s.most)
		}
	})
}

// A refusal is told at once, and tried again after a pause that is at most a second; all who
// wait for a try get its error.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("no such user")
		s := &store{refuses: refused}
		m := s.maker(t)
		if _, err := get(m, time.Minute); err != refused {
			t.Error(err)
		}
		for range 100 {
			if _, err := get(m, time.Minute); err != refused {
				t.Error(err)
			}
		}
		together := 0
		for i := 1; i < len(s.begun); i++ {
			pause := s.begun[i].Sub(s.begun[i-1])
			if pause > longestPause {
				t.Errorf("a pause of %v", pause)
			}
			if pause < time.Millisecond {
				together++
			}
		}
		if took := s.begun[100].Sub(s.begun[0]); took < 20*time.Second || together > 10 {
			t.Errorf("100 tries in %v, %d of them at once", took, together)
		}
		s.refuses = nil
		if _, err := get(m, time.Minute); err != nil {
			t.Error(err)
		}
	})
}

// A try that never ends is given up; nothing is left after Stop, also what is made too late.
func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{takes: time.Hour}
		m := s.maker(t)
		start := time.Now()
		if _, err := get(m, time.Hour/2); err == nil || time.Since(start) != time.Hour/2 {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		time.Sleep(time.Hour)
		if _, err := get(m, time.Second); err == nil {
			t.Error("it is not given up")
		}
		time.Sleep(Patience + time.Second)
		synctest.Wait()
		if s.atOnce != 0 {
			t.Error("a try is not given up")
		}
		s.takes = time.Second
		get(m, time.Millisecond)
		time.Sleep(time.Minute)
		synctest.Wait()
		m.Drop()
		if s.closed != 1 {
			t.Errorf("%d were closed", s.closed)
		}
		s.takes = time.Hour
		get(m, time.Millisecond)
		m.Stop()
		synctest.Wait()
		if _, err := m.Get(t.Context()); err == nil || s.atOnce != 0 {
			t.Errorf("after Stop: %v, %d at a time", err, s.atOnce)
		}
	})
}
