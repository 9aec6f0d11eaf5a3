// Gocron runs the jobs of github.com/go-co-op/gocron/v2 on one process of many, with
// package electorgocron. In two terminals:
//
//	ELECTOR_URL=file:///tmp/elections go run ./gocron
//
// The documentation of electorgocron has what is promised, and a Locker, which elects
// for each job. The test runs both in three processes, and kills one.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-co-op/gocron/v2"

	"github.com/elector-go/elector"
	_ "github.com/elector-go/elector/backends/file"
	"github.com/elector-go/elector/integrations/electorgocron"
)

// run runs the job on the schedule, while this process leads, until ctx ends.
func run(ctx context.Context, e *elector.Elector, schedule string, job func(*elector.Lease)) error {
	x := electorgocron.NewElector(e, 0)
	s, err := gocron.NewScheduler(gocron.WithDistributedElector(x))
	if err != nil {
		return err
	}
	_, err = s.NewJob(gocron.CronJob(schedule, true), gocron.NewTask(func() error {
		lease, err := x.Lease()
		if err == nil {
			job(lease)
		}
		return err
	}), gocron.WithName("job"))
	if err != nil {
		return errors.Join(err, s.Shutdown())
	}
	campaign, resign := context.WithCancel(context.WithoutCancel(ctx))
	led := make(chan error, 1)
	go func() { led <- x.Run(campaign) }()
	s.Start()
	<-ctx.Done()
	err = s.Shutdown() // first the jobs end,
	resign()           // and then another process may lead
	return errors.Join(err, <-led)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	e, err := elector.Open(ctx, os.Getenv("ELECTOR_URL"), "scheduler", nil)
	if err != nil {
		log.Fatal(err)
	}
	err = run(ctx, e, "*/5 * * * * *", func(lease *elector.Lease) { log.Print("runs, with token ", lease.Token()) })
	if err := errors.Join(err, e.Close()); err != nil {
		log.Fatal(err)
	}
}
