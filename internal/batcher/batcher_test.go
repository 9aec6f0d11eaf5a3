package batcher

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/internal/clock"
)

// Two swaps of one election do not go in one request: stores refuse two changes of one
// record.
func TestBatchOfOneElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var active sync.WaitGroup
		m := New(memory.New(), clock.System{}, time.Minute, &active)
		h := m.enter()
		defer h.leave()
		var met []*batch[backends.Change]
		for _, name := range []string{"twice", "once", "twice"} {
			b, _ := h.swaps.join(m, backends.Change{Name: name})
			met = append(met, b)
		}
		if met[0] != met[1] || met[0] == met[2] {
			t.Error("only the two of one election go apart")
		}
		active.Wait()
	})
}
