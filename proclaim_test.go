package elector_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/internal/fault"
)

// refuseBad lets a store refuse the value "bad" for good.
func refuseBad(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
	if c.Op == "swap" && c.Next.Value == "bad" {
		return fault.Fails(backends.ErrMisconfigured)(ctx, c, send)
	}
	return send(ctx)
}

// A value that the store refuses is given up, and costs neither the lease nor
// the value before it.
func TestProclaimRefused(t *testing.T) {
	// The first try may get lost, and the caller may have given up when the
	// store says no.
	gone := func(t *testing.T) context.Context {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		return ctx
	}
	for _, c := range []struct {
		name   string
		caller func(t *testing.T) context.Context
		first  fault.Fault
		want   error
	}{
		{"told", (*testing.T).Context, nil, elector.ErrMisconfigured},
		{"told late", (*testing.T).Context, fault.Hang, elector.ErrMisconfigured},
		{"gone", gone, fault.Hang, context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, b := fault.Wrap(memory.New())
				f.Always(refuseBad)
				e := join(t, b, elector.Options{})
				l := win(t, e)
				if err := l.Proclaim(t.Context(), "good"); err != nil {
					t.Fatal(err)
				}
				if c.first != nil {
					f.Next("swap", c.first)
				}
				if err := l.Proclaim(c.caller(t), "bad"); !errors.Is(err, c.want) {
					t.Errorf("Proclaim of a value that the store refuses: %v, want %v", err, c.want)
				}
				before := f.Count("swap")
				pass(time.Minute)
				if err := l.Check(); err != nil || f.Count("swap") == before {
					t.Fatalf("after %d more writes: %v", f.Count("swap")-before, err)
				}
				if leads, err := e.Leader(t.Context()); err != nil || leads.Value != "good" || leads.Token != l.Token() {
					t.Errorf("the record shows %+v, %v", leads, err)
				}
				if err := l.Proclaim(t.Context(), "better"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
