package elector_test

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/operate"
)

// A slow store takes its time to answer the first read, as one does that has to
// be connected to.
type slow struct {
	backends.Backend
	first time.Duration
	read  atomic.Bool
}

func (s *slow) Load(ctx context.Context, name string) (backends.Record, error) {
	if s.read.Swap(true) {
		return s.Backend.Load(ctx, name)
	}
	select {
	case <-time.After(s.first):
		return s.Backend.Load(ctx, name)
	case <-ctx.Done():
		return backends.Record{}, ctx.Err()
	}
}

func init() {
	backends.Register("slow", func(_ context.Context, u *url.URL) (backends.Backend, error) {
		first, err := time.ParseDuration(u.Host)
		return &slow{Backend: memory.New(), first: first}, err
	})
}

// The first read has longer than those that a lease waits for, but not for ever.
func TestOpenIsPatient(t *testing.T) {
	for _, c := range []struct {
		name, url string
		want      error
	}{
		{"slow", "slow://5s", nil},
		{"hanging", "slow://24h", elector.ErrUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, err := elector.Open(t.Context(), c.url, "patient", &elector.Options{TTL: time.Second, Logger: slog.New(slog.DiscardHandler)})
				if !errors.Is(err, c.want) {
					t.Errorf("error %v; want %v", err, c.want)
				}
				if err == nil {
					e.Close()
				}
			})
		})
	}
}

// A handle that was opened for reading alone reads, and every call that would write returns
// ErrReadOnly at once.
func TestReadOnly(t *testing.T) { synctest.Test(t, readOnly) }

func readOnly(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	leader, err := elector.Open(ctx, "memory://read-only", "e", &elector.Options{ID: "leader", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer leader.Close()
	if _, err := leader.TryCampaign(ctx); err != nil {
		t.Fatal(err)
	}
	for _, open := range []func() (backends.Backend, error){
		func() (backends.Backend, error) { return backends.OpenReadOnly(ctx, "memory://read-only") },
		func() (backends.Backend, error) {
			return backends.OpenReadOnly(ctx, "memory://read-only?readonly=false")
		},
		func() (backends.Backend, error) { return backends.Open(ctx, "memory://read-only?readonly=true") },
	} {
		b, err := open()
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		e, err := elector.New(b, "e", &elector.Options{ID: "reader", Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		if l, err := e.Leader(ctx); err != nil || l.ID != "leader" {
			t.Errorf("the leader is %+v, %v", l, err)
		}
		_, campaigned := e.Campaign(ctx)
		_, tried := e.TryCampaign(ctx)
		ran := e.Run(ctx, func(context.Context, *elector.Lease) error { return nil })
		_, swapped := b.Swap(ctx, "other", backends.Record{}, backends.Record{})
		many := b.(backends.BatchSwapper).SwapMany(ctx, []backends.Change{{Name: "other"}})[0].Err
		for call, err := range map[string]error{
			"Campaign": campaigned, "TryCampaign": tried, "Run": ran, "Swap": swapped, "SwapMany": many,
			"RequestResign": e.Operator().RequestResign(ctx, operate.ResignRequest{}),
		} {
			if !errors.Is(err, elector.ErrReadOnly) {
				t.Errorf("the error of %s is %v", call, err)
			}
		}
	}
}

// The first attempt uses what Open has read, if no process leads and that is not old.
func TestFirstAttempt(t *testing.T) {
	for _, c := range []struct {
		name  string
		story func(t *testing.T, campaign func())
		reads int // with that of Open
	}{
		{"at once", func(t *testing.T, campaign func()) { campaign() }, 1},
		{"a second later", func(t *testing.T, campaign func()) { pass(time.Second); campaign() }, 2},
		{"twice", func(t *testing.T, campaign func()) { campaign(); campaign() }, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var reads atomic.Int32
				e, err := elector.Open(t.Context(), "slow://0s", "first", &elector.Options{Logger: slog.New(slog.DiscardHandler), Trace: &elector.Trace{
					Request: func(_ context.Context, r elector.RequestInfo) {
						if r.Op == "load" {
							reads.Add(1)
						}
					},
				}})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				c.story(t, func() {
					l, err := e.TryCampaign(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if err := l.Release(t.Context()); err != nil {
						t.Error(err)
					}
				})
				synctest.Wait()
				if n := reads.Load(); n != int32(c.reads) {
					t.Errorf("the store was read %d times, not %d", n, c.reads)
				}
			})
		})
	}
}
