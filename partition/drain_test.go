package partition

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/operate"
)

// A member whose seat is requested, or that is not healthy, hands its partitions over: a
// worker goes on until the plan moves its partition.
func TestSeatDrains(t *testing.T) {
	for name, drain := range map[string]func(f *fleet, sick *bool){
		"requested": func(f *fleet, _ *bool) {
			e, err := elector.New(f.store.Handle(), "orders.seat.0", &elector.Options{TTL: f.ttl, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				f.Fatal(err)
			}
			defer e.Close()
			if err := e.Operator().RequestResign(f.Context(), operate.ResignRequest{}); err != nil {
				f.Error(err)
			}
		},
		"not healthy": func(f *fleet, sick *bool) { f.mutex.Lock(); *sick = true; f.mutex.Unlock() },
	} {
		t.Run(name, func(t *testing.T) {
			withFleet(t, 20, func(f *fleet) {
				sick := false
				a := f.join("a", func(o *Options) {
					o.Elector.Healthy = func(context.Context) error {
						f.mutex.Lock()
						defer f.mutex.Unlock()
						if sick {
							return errors.New("it is sick")
						}
						return nil
					}
				})
				f.settles(time.Minute, "a")
				b := f.join("b", nil)
				f.settles(time.Minute, "a", "b")
				asked := make(chan struct{})
				go func() { drain(f, &sick); close(asked) }()
				var idle time.Duration
				for shares := map[string]int{}; shares["b"] < f.partitions; time.Sleep(50 * time.Millisecond) {
					if f.working() < f.partitions {
						idle += 50 * time.Millisecond
					}
					_, shares = f.owners()
				}
				<-asked
				if idle > f.ttl/15 {
					t.Errorf("for %v a partition had no worker that may work", idle)
				}
				f.ends(a, b)
			})
		})
	}
}

// working returns how many leases have a worker that was not told to stop.
func (f *fleet) working() (n int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for l := range f.leases {
		if l.Check() == nil && l.Context().Err() == nil {
			n++
		}
	}
	return n
}

// A nil context is an error, not a panic.
func TestNilContext(t *testing.T) {
	store := memory.NewStore()
	g, err := New(store.Handle(), "orders", &Options{Partitions: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	var none context.Context
	work := func(context.Context, *Lease) error { return nil }
	for name, call := range map[string]func() error{
		"Join":    func() error { _, err := Join(none, "memory://", "orders", nil); return err },
		"Run":     func() error { return g.Run(none, work) },
		"Leave":   func() error { return g.Leave(none) },
		"Owner":   func() error { _, err := g.Owner(none, 0); return err },
		"Members": func() error { _, err := g.Members(none); return err },
		"Resize":  func() error { return Resize(none, store.Handle(), "orders", 5, nil) },
		"Observe": func() (err error) {
			for _, err = range g.Observe(none) {
			}
			return err
		},
	} {
		if err := call(); !errors.Is(err, elector.ErrInvalid) {
			t.Errorf("%s of a nil context returns %v", name, err)
		}
	}
}
