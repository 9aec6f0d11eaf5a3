package main

import (
	"context"
	"io"
	"log/slog"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/internal/leak"
	"github.com/elector-go/elector/internal/proof/child"
	"github.com/elector-go/elector/internal/proof/stores"
)

func TestMain(m *testing.M) { child.Prepare(); leak.Main(m) }

// Two candidates and a worker on a real Redis. The second schedules when the first has
// stopped.
func TestAsynq(t *testing.T) {
	server, err := stores.StartRedis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	redis := asynq.RedisClientOpt{Addr: server.Address}

	worked := make(chan string)
	worker := asynq.NewServer(redis, asynq.Config{LogLevel: asynq.ErrorLevel})
	done := make(chan struct{})
	if err := worker.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		select {
		case worked <- string(task.Payload()):
		case <-done:
		}
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	defer worker.Shutdown()
	defer close(done)

	store := memory.NewStore()
	candidate := func(id string) (leads <-chan elector.Token, stop func()) {
		e, err := elector.New(store.Handle(), "asynq", &elector.Options{ID: id, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		began, returned := make(chan elector.Token, 1), make(chan error, 1)
		go func() {
			returned <- e.Run(ctx, func(ctx context.Context, lease *elector.Lease) error {
				began <- lease.Token()
				return lead(ctx, redis, "@every 1s", asynq.NewTask("report", []byte(id)))
			})
		}()
		return began, func() {
			cancel()
			if err := <-returned; err != nil {
				t.Error(err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	leads1, stop1 := candidate("first")
	token := <-leads1
	leads2, stop2 := candidate("second")
	for range 3 {
		if by := <-worked; by != "first" {
			t.Errorf("the %s candidate has enqueued a task, while the first leads", by)
		}
	}
	stop1()
	if next := <-leads2; next <= token {
		t.Errorf("token %d after %d", next, token)
	}
	for by := <-worked; by != "second"; by = <-worked { // the first one's last may be still to come
		if by != "first" {
			t.Fatal(by)
		}
	}
	for range 3 {
		if by := <-worked; by != "second" {
			t.Errorf("the %s candidate has enqueued a task, while the second leads", by)
		}
	}
	stop2()
}
