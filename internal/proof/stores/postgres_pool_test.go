package stores

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/elector-go/elector/backends/postgres"
)

// A request that finds no connection free ends in half of its time, unsent. Otherwise
// it would be sent at the last moment and cancelled, which costs its connection.
func TestPostgresBusyPool(t *testing.T) {
	s := obtain(t, Postgres)
	config, err := pgxpool.ParseConfig(s.URL)
	must(t, err)
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	must(t, err)
	defer pool.Close()
	b, err := postgres.New(t.Context(), pool, nil)
	must(t, err)
	defer b.Close()

	busy, err := pool.Acquire(t.Context())
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	if _, err := b.Load(ctx, "busy"); err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "nothing was sent") {
		t.Errorf("a request to a busy pool: %v, and its context: %v", err, ctx.Err())
	}
	busy.Release()
	if _, err := b.Load(t.Context(), "busy"); err != nil {
		t.Error(err)
	}
	if made := pool.Stat().NewConnsCount(); made != 1 {
		t.Errorf("%d connections were made; want the first to live", made)
	}
}
