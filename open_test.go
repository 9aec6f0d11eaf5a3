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
