// Cron runs the jobs of github.com/robfig/cron on one process of many: a new Cron in
// each term. In two terminals:
//
//	ELECTOR_URL=file:///tmp/elections go run ./cron
//
// Jobs run on the leader alone. After a planned stop the next leader starts when the
// last job has returned. A job that runs when the lease is lost goes on, because jobs
// of cron v3.0.1 have no context (cron.go, Job): it must check the lease before each
// side effect, and send the token along.
//
// Ticks without a leader are missed: after a crash, those of 1.1 TTL. If the clocks of
// two processes differ, a tick at a planned handover can run on both; package
// electorgocron prevents that.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/robfig/cron/v3"

	"github.com/elector-go/elector"
	_ "github.com/elector-go/elector/backends/file"
)

// lead runs the job on the schedule during one term.
func lead(ctx context.Context, lease *elector.Lease, schedule string, job func(*elector.Lease)) error {
	c := cron.New()
	_, err := c.AddFunc(schedule, func() {
		if lease.Check() == nil { // after a pause the timer may come before the end of ctx
			job(lease)
		}
	})
	if err != nil {
		return err
	}
	c.Start()
	<-ctx.Done()
	<-c.Stop().Done() // when the jobs have returned
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	e, err := elector.Open(ctx, os.Getenv("ELECTOR_URL"), "cron", nil)
	if err != nil {
		log.Fatal(err)
	}
	err = e.Run(ctx, func(ctx context.Context, lease *elector.Lease) error {
		return lead(ctx, lease, "@every 5s", func(l *elector.Lease) { fmt.Println("runs, with token", l.Token()) })
	})
	if err := errors.Join(err, e.Close()); err != nil {
		log.Fatal(err)
	}
}
