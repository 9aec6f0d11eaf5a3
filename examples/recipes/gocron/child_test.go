package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/jonboulle/clockwork"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	_ "github.com/elector-go/elector/backends/etcd"
	"github.com/elector-go/elector/integrations/electorgocron"
)

const variable = "ELECTOR_RECIPE_CHILD"

// A task is what a process gets.
type task struct {
	URL   string
	Ahead time.Duration // of its clock
}

const (
	jobs    = 10
	period  = jobs * time.Second // of each job; job k runs k seconds after each of these
	takes   = 300 * time.Millisecond
	minHold = 2 * time.Second
	ttl     = 6 * time.Second
)

// The two kinds of scheduler.
const (
	byElector = "Elector"
	byLocker  = "Locker"
)

// A message is what a process reports.
type message struct {
	What string // "ready", "leads", "run", "ran" or "refused"
	Kind string // of the scheduler
	Tick int64  // in seconds since 1970
	At   time.Time
	Err  string
}

// reporter prints messages, one at a time.
type reporter struct {
	sync.Mutex
	encoder *json.Encoder
}

func (r *reporter) report(m message) {
	r.Lock()
	defer r.Unlock()
	m.At = time.Now()
	if err := r.encoder.Encode(m); err != nil {
		panic(err)
	}
}

// A skewed clock is ahead of the others, or behind.
type skewed struct {
	clockwork.Clock
	ahead time.Duration
}

func (c skewed) Now() time.Time { return c.Clock.Now().Add(c.ahead) }

// tick returns the latest tick of a job.
func tick(job int, now time.Time) int64 {
	after := int64(job)
	return (now.Unix()-after)/jobs*jobs + after
}

// An asked Elector reports why it refuses ticks, unless another process leads.
type asked struct {
	*electorgocron.Elector
	refused func(error)
}

func (a asked) IsLeader(ctx context.Context) error {
	err := a.Elector.IsLeader(ctx)
	if err != nil && !errors.Is(err, elector.ErrNotLeader) {
		a.refused(err)
	}
	return err
}

// runChild runs two schedulers, with an Elector and with a Locker, until the input
// ends.
func runChild(t task) error {
	ctx := context.Background()
	r := &reporter{encoder: json.NewEncoder(os.Stdout)}
	b, err := backends.Open(ctx, t.URL)
	if err != nil {
		return err
	}
	o := &elector.Options{
		TTL: ttl, RequestTimeout: 1800 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	locker, err := electorgocron.NewLocker(b, o, minHold)
	if err != nil {
		return err
	}
	withTrace := *o
	withTrace.Trace = &elector.Trace{Acquired: func(context.Context, elector.LeaseInfo) { r.report(message{What: "leads"}) }}
	e, err := elector.New(b, "scheduler", &withTrace)
	if err != nil {
		return err
	}
	clock := skewed{clockwork.NewRealClock(), t.Ahead}
	x := asked{electorgocron.NewElector(e, minHold), func(err error) {
		r.report(message{What: "refused", Kind: byElector, Err: err.Error()})
	}}
	elects, err := scheduler(r, byElector, clock, gocron.WithDistributedElector(x))
	if err != nil {
		return err
	}
	locks, err := scheduler(r, byLocker, clock, gocron.WithDistributedLocker(locker))
	if err != nil {
		return err
	}
	campaign, resign := context.WithCancel(ctx)
	led := make(chan error, 1)
	go func() { led <- x.Run(campaign) }()
	elects.Start()
	locks.Start()
	r.report(message{What: "ready"})

	_, err = io.Copy(io.Discard, bufio.NewReader(os.Stdin)) // until told to stop
	err = errors.Join(err, elects.Shutdown(), locks.Shutdown())
	resign()
	return errors.Join(err, <-led, locker.Close(), e.Close(), b.Close())
}

// scheduler makes one with all jobs.
func scheduler(r *reporter, kind string, clock clockwork.Clock, o gocron.SchedulerOption) (gocron.Scheduler, error) {
	s, err := gocron.NewScheduler(o, gocron.WithClock(clock), gocron.WithLocation(time.UTC))
	if err != nil {
		return nil, err
	}
	for job := range jobs {
		work := func() {
			at := tick(job, clock.Now())
			r.report(message{What: "run", Kind: kind, Tick: at})
			time.Sleep(takes)
			r.report(message{What: "ran", Kind: kind, Tick: at})
		}
		refused := gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) {
			if !errors.Is(err, elector.ErrHeld) {
				r.report(message{What: "refused", Kind: kind, Tick: tick(job, clock.Now()), Err: err.Error()})
			}
		})
		_, err := s.NewJob(gocron.CronJob(fmt.Sprintf("%d/%d * * * * *", job, jobs), true), gocron.NewTask(work),
			gocron.WithName(fmt.Sprintf("job %d", job)), gocron.WithEventListeners(refused))
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}
