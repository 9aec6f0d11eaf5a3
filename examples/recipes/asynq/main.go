// Asynq runs the periodic scheduler of github.com/hibiken/asynq on one process of many:
// a new Scheduler in each term, because one that was shut down cannot start again
// (v0.26.0, scheduler.go, start). The tasks are worked by any process. In two
// terminals, with a Redis:
//
//	ELECTOR_URL=file:///tmp/elections REDIS=127.0.0.1:6379 go run ./asynq
//
// Each tick is enqueued by the leader alone, and not at all without a leader: after a
// crash that is 1.1 TTL. Redis does not check fencing tokens, so a leader that was
// paused can enqueue late, and with clocks that differ two leaders can enqueue the same
// tick at a handover. asynq.Unique drops the second task while the first waits or runs,
// and no longer (client.go, Unique). The handler must be idempotent in any case: asynq
// runs a task at least once.
//
// The election is not in Redis: a failover there loses acknowledged writes.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hibiken/asynq"

	"github.com/elector-go/elector"
	_ "github.com/elector-go/elector/backends/file"
)

// lead enqueues the task on the schedule during one term.
func lead(ctx context.Context, redis asynq.RedisConnOpt, schedule string, task *asynq.Task) error {
	s := asynq.NewScheduler(redis, nil)
	if _, err := s.Register(schedule, task, asynq.Unique(time.Minute)); err != nil {
		return err
	}
	if err := s.Start(); err != nil {
		return err
	}
	<-ctx.Done()
	s.Shutdown() // waits for what is being enqueued
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	e, err := elector.Open(ctx, os.Getenv("ELECTOR_URL"), "asynq", nil)
	if err != nil {
		log.Fatal(err)
	}
	redis := asynq.RedisClientOpt{Addr: os.Getenv("REDIS")}
	err = e.Run(ctx, func(ctx context.Context, _ *elector.Lease) error {
		return lead(ctx, redis, "@every 5s", asynq.NewTask("report", nil))
	})
	if err := errors.Join(err, e.Close()); err != nil {
		log.Fatal(err)
	}
}
