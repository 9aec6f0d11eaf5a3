package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/leak"
	"github.com/elector-go/elector/internal/proof/child"
	"github.com/elector-go/elector/internal/proof/stores"
)

func TestMain(m *testing.M) { child.Prepare(); leak.Main(m) }

// A worker gets the entries.
type worker struct {
	river.WorkerDefaults[Entry]
	worked chan int64
}

func (w *worker) Work(_ context.Context, job *river.Job[Entry]) error {
	w.worked <- job.Args.Position
	return nil
}

// A paused leader goes on with what it knew before the pause.
type paused struct{ knew backends.Acquisition }

func (p paused) Acquisition() (backends.Acquisition, error) { return p.knew, nil }

// Two leaders one after the other; the first is paused and goes on too late. Each entry
// becomes one job, which a real client of River works.
func TestRiver(t *testing.T) {
	ctx := t.Context()
	store, err := stores.Start(ctx, "postgres")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Stop(); err != nil {
			t.Error(err)
		}
	})
	pool, err := pgxpool.New(ctx, store.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, "create table feed (position bigint not null); insert into feed values (0)"); err != nil {
		t.Fatal(err)
	}
	jobs := client(t, pool, &river.Config{})

	lead := func() (*elector.Elector, *elector.Lease) {
		e, err := elector.Open(ctx, store.URL, "feed", &elector.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
		lease, err := e.Campaign(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return e, lease
	}
	insert := func(lease backends.Lease) {
		t.Helper()
		for range 3 {
			if err := next(ctx, pool, jobs, lease); err != nil {
				t.Fatal(err)
			}
		}
	}
	first, lease := lead()
	insert(lease)
	before, err := lease.Acquisition()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Resign(ctx); err != nil {
		t.Fatal(err)
	}
	_, lease = lead()
	insert(lease)
	if err := next(ctx, pool, jobs, paused{before}); !errors.Is(err, elector.ErrStale) {
		t.Errorf("the paused leader gets %v", err)
	}
	insert(lease)

	w := &worker{worked: make(chan int64)}
	workers := river.NewWorkers()
	river.AddWorker(workers, w)
	works := client(t, pool, &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2}}, Workers: workers,
	})
	if err := works.Start(ctx); err != nil {
		t.Fatal(err)
	}
	worked := map[int64]int{}
	for range 9 {
		worked[<-w.worked]++
	}
	if err := works.Stop(ctx); err != nil {
		t.Error(err)
	}
	for position := range int64(9) {
		if worked[position+1] != 1 {
			t.Errorf("entry %d was worked %d times", position+1, worked[position+1])
		}
	}
	var count int
	if err := pool.QueryRow(ctx, "select count(*) from river_job").Scan(&count); err != nil || count != 9 {
		t.Errorf("%d jobs, %v", count, err)
	}
}

func client(t *testing.T, pool *pgxpool.Pool, config *river.Config) *river.Client[pgx.Tx] {
	t.Helper()
	config.Logger = slog.New(slog.DiscardHandler)
	c, err := river.NewClient(riverpgxv5.New(pool), config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
