package elector

import (
	"testing"
	"testing/synctest"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

// Two leases on one election, of which one is over and does not know it yet, do
// not meet in one request: stores refuse two changes of one record.
func TestBatchOfOneElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := New(memory.New(), "twice", nil)
		if err != nil {
			t.Fatal(err)
		}
		s := newBatches(memory.New())
		s.most, s.members = 10, 2
		var met []*batch[backends.Change]
		for _, name := range []string{"twice", "once", "twice"} {
			b, _ := s.join(e, backends.Change{Name: name}, gathering)
			met = append(met, b)
		}
		if met[0] != met[1] || met[0] == met[2] {
			t.Error("only the two of one election go apart")
		}
		e.active.Wait()
	})
}
