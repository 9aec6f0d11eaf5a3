package elector_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/internal/fault"
)

// Elector.Resign during Run does what the end of Run's context does: no other
// candidate leads before the worker has returned.
func TestResignDuringRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var returned atomic.Bool
		var releases atomic.Int32
		s := memory.NewStore()
		f, backend := fault.Wrap(s.Handle())
		f.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
			if c.Op == "swap" && c.Next.Vacant() {
				releases.Add(1)
				if !returned.Load() {
					t.Error("the store is told before the worker has returned")
				}
			}
			return send(ctx)
		})
		a := join(t, backend, elector.Options{ReleaseTimeout: time.Hour})
		b := join(t, s.Handle(), elector.Options{})
		result := errors.New("enough invoices")
		leases, told, finish := make(chan *elector.Lease, 1), make(chan struct{}), make(chan struct{})
		goOn := sync.OnceFunc(func() { close(finish) })
		defer goOn()
		ran := begin(func() error {
			return a.Run(t.Context(), func(ctx context.Context, l *elector.Lease) error {
				leases <- l
				<-ctx.Done()
				close(told)
				<-finish
				returned.Store(true)
				return result
			})
		})
		l := wait(t, leases, "Run calls the worker")
		next := campaign(t, b)
		synctest.Wait()
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := a.Resign(impatient); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Resign whose context ends while the worker goes on: %v", err)
		}
		resigned := begin(func() error { return a.Resign(t.Context()) })
		wait(t, told, "the worker's context ends")
		if err := context.Cause(l.Context()); !errors.Is(err, elector.ErrResigned) {
			t.Errorf("the cause of the worker's context is %v", err)
		}
		pass(10 * time.Minute)
		if err := l.Check(); err != nil {
			t.Errorf("while the worker finishes: %v", err)
		}
		select {
		case err := <-resigned:
			t.Fatalf("Resign returns before the worker: %v", err)
		case err := <-ran:
			t.Fatalf("Run returns before the worker: %v", err)
		case l := <-next:
			t.Fatalf("another candidate leads before the worker has returned: token %d", l.Token())
		default:
		}
		goOn()
		if err := wait(t, ran, "Run returns after its worker"); err != result {
			t.Errorf("Run's result is %v", err)
		}
		if err := wait(t, resigned, "Resign returns after the worker"); err != nil {
			t.Errorf("Resign: %v", err)
		}
		if n := releases.Load(); n != 1 {
			t.Errorf("the store was told %d times, not once", n)
		}
		if err := l.Check(); !errors.Is(err, elector.ErrResigned) {
			t.Errorf("Check after Resign: %v", err)
		}
		wait(t, next, "the successor leads")
	})
}
