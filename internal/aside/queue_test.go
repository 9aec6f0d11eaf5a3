package aside

import (
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Quick calls are over when Do returns; while one is stuck, nothing waits but for the
// patience, once; and what has no room is counted.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost []int
		var behind time.Duration
		stuck := 0
		q := New(time.Second, func() { stuck++ }, func(n int, d time.Duration) { lost, behind = append(lost, n), d })
		var called []int
		do := func(i int) { q.Do(func() { called = append(called, i) }) }
		for i := range 3 {
			if do(i); len(called) != i+1 {
				t.Fatalf("after call %d: %v", i, called)
			}
		}
		free, start := make(chan struct{}), time.Now()
		q.Do(func() { <-free })
		if took := time.Since(start); took != time.Second {
			t.Errorf("Do waited for %v", took)
		}
		if stuck != 1 {
			t.Errorf("it was told %d times that a call is stuck", stuck)
		}
		start = time.Now()
		for i := range most + 7 {
			do(3 + i)
		}
		if took := time.Since(start); took != 0 || len(called) != 3 {
			t.Errorf("behind a call that is stuck, Do waited for %v, and %d were called", took, len(called))
		}
		time.Sleep(time.Minute)
		close(free)
		synctest.Wait()
		if len(called) != 3+most || !slices.IsSorted(called) || !slices.Equal(lost, []int{7}) || behind != time.Minute {
			t.Errorf("%d were called, in order: %v; lost: %v, behind for %v", len(called), slices.IsSorted(called), lost, behind)
		}
		if do(-1); called[len(called)-1] != -1 {
			t.Error("Do does not wait although the queue is empty again")
		}
	})
}

// A call that ends its goroutine does not stop those after it.
func TestGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(time.Second, nil, nil)
		q.Do(runtime.Goexit)
		called := false
		q.Do(func() { called = true })
		synctest.Wait()
		if !called {
			t.Error("the call after it is not made")
		}
	})
}

// However many calls there are at once, none is lost while they are quick; and Flush waits for
// one that is not.
func TestCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(time.Second, nil, func(n int, _ time.Duration) { t.Errorf("%d calls were lost", n) })
		called := 0
		go q.Do(func() { time.Sleep(time.Second / 2) })
		synctest.Wait()
		for range 10 * most {
			go q.Do(func() { called++ })
		}
		synctest.Wait()
		q.Flush(time.Second)
		if called != 10*most {
			t.Errorf("%d were called", called)
		}
		q.Do(func() { time.Sleep(3 * time.Second); called = 0 })
		start := time.Now()
		q.Flush(time.Second)
		if took := time.Since(start); took != time.Second {
			t.Errorf("Flush took %v", took)
		}
		if q.Flush(time.Minute); called != 0 || time.Since(start) != 2*time.Second {
			t.Errorf("Flush took %v", time.Since(start))
		}
	})
}
