package electorgocron_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-co-op/gocron/v2"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/integrations/electorgocron"
)

// One process of many runs all jobs.
func ExampleElector() {
	run := func(e *elector.Elector) error {
		x := electorgocron.NewElector(e, 0)
		s, err := gocron.NewScheduler(gocron.WithDistributedElector(x))
		if err != nil {
			return err
		}
		_, err = s.NewJob(gocron.CronJob("0 3 * * *", false), gocron.NewTask(func() error {
			lease, err := x.Lease()
			if err != nil {
				return err
			}
			fmt.Println("send the token along:", lease.Token())
			return nil
		}), gocron.WithName("report"))
		if err != nil {
			return err
		}
		campaign, resign := context.WithCancel(context.Background())
		led := make(chan error, 1)
		go func() { led <- x.Run(campaign) }()
		s.Start()

		stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer cancel()
		<-stop.Done()
		err = s.Shutdown() // first the jobs end,
		resign()           // and then another process may lead
		return errors.Join(err, <-led)
	}
	_ = run
}

// The process that locks a job first runs it.
func ExampleLocker() {
	run := func(b backends.Backend) error {
		locker, err := electorgocron.NewLocker(b, nil, 0)
		if err != nil {
			return err
		}
		s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
		if err != nil {
			return err
		}
		_, err = s.NewJob(gocron.CronJob("0 3 * * *", false), gocron.NewTask(func() error {
			lease, err := locker.Lease("report")
			if err != nil {
				return err
			}
			fmt.Println("send the token along:", lease.Token())
			return nil
		}), gocron.WithName("report"))
		if err != nil {
			return err
		}
		s.Start()

		stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer cancel()
		<-stop.Done()
		return errors.Join(s.Shutdown(), locker.Close())
	}
	_ = run
}
