// Package storm shows that the door of a service refuses stale writes: leaders
// follow each other as fast as they can, and their writers are paused between the
// check of the lease and the request, and within the service. No write may come
// after one with a higher token.
package storm

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/memory"
)

const (
	leaders = 150
	writers = 4
	each    = 3 // writes of a writer
)

// Lead makes a candidate of its own lead the election "storm" in the store. The
// candidate is closed at the end of the test.
func Lead(t *testing.T, store *memory.Store) *elector.Lease {
	t.Helper()
	e, err := elector.New(store.Handle(), "storm", &elector.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	l, err := e.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Pause blocks for a random time, half of the times for none.
func Pause() {
	if rand.IntN(2) == 0 {
		time.Sleep(rand.N(5 * time.Millisecond))
	}
}

// A Resource notices writes that come after one with a higher token. It makes no
// check itself.
type Resource struct {
	mutex               sync.Mutex
	highest             elector.Token
	writes, regressions int
}

// Write is a write that takes a while.
func (r *Resource) Write(token elector.Token) {
	Pause()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.writes++
	if token < r.highest {
		r.regressions++
	}
	r.highest = max(r.highest, token)
}

// Run makes the storm. write makes one write under the lease through the door; it
// pauses after the check of the lease. It returns nil if that was answered, ErrStale
// if it was refused, and ErrNotLeader if it was not sent.
func Run(t *testing.T, r *Resource, write func(*elector.Lease) error) {
	store := memory.NewStore()
	var group sync.WaitGroup
	var mutex sync.Mutex
	refused := 0
	for range leaders {
		l := Lead(t, store)
		written := make(chan bool, writers*each)
		for range writers {
			group.Go(func() {
				for range each {
					err := write(l)
					switch {
					case errors.Is(err, elector.ErrStale):
						mutex.Lock()
						refused++
						mutex.Unlock()
					case errors.Is(err, elector.ErrNotLeader):
					case err != nil:
						t.Errorf("a write with token %d: %v", l.Token(), err)
					}
					written <- err == nil
				}
			})
		}
		for succeeded, n := false, 0; !succeeded && n < writers*each; n++ {
			succeeded = <-written
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	group.Wait()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	t.Logf("%d leaders: %d writes, %d refused, %d regressions", leaders, r.writes, refused, r.regressions)
	if r.regressions > 0 {
		t.Errorf("%d of %d writes came after one with a higher token", r.regressions, r.writes)
	}
	if r.writes < leaders || refused == 0 {
		t.Errorf("that was no storm: %d writes of %d leaders, %d refused", r.writes, leaders, refused)
	}
}
