package simulation

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// overSeeds runs the seeds 1 to count, one on each processor at a time, until the test has
// failed, and logs each minute how far it is.
func overSeeds(t *testing.T, count int, run func(seed uint64)) {
	begun := time.Now()
	var next, ended atomic.Uint64
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for {
				seed := next.Add(1)
				if seed > uint64(count) || t.Failed() {
					return
				}
				run(seed)
				ended.Add(1)
			}
		})
	}
	over := make(chan struct{})
	go func() {
		group.Wait()
		close(over)
	}()
	minute := time.NewTicker(time.Minute)
	defer minute.Stop()
	for {
		select {
		case <-over:
			return
		case <-minute.C:
			t.Logf("%d of %d seeds after %v", ended.Load(), count, time.Since(begun).Round(time.Second))
		}
	}
}
