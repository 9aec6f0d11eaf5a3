// Command candidate is one process of a campaign: it runs for an election, or is a
// member of a group, as a service does, writes to the protected resource and to data
// in the store while it leads, and tells on its standard output, as package history
// says, what it believes.
//
// SIGTERM ends it in order. SIGUSR1 makes it stop itself, with SIGSTOP, after
// the next Check that succeeds and before the writes that it allows.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/elector-go/elector/backends"
	_ "github.com/elector-go/elector/backends/azureblob"
	_ "github.com/elector-go/elector/backends/consul"
	_ "github.com/elector-go/elector/backends/dynamodb"
	_ "github.com/elector-go/elector/backends/etcd"
	_ "github.com/elector-go/elector/backends/file"
	_ "github.com/elector-go/elector/backends/gcs"
	_ "github.com/elector-go/elector/backends/kubernetes"
	_ "github.com/elector-go/elector/backends/mysql"
	_ "github.com/elector-go/elector/backends/nats"
	_ "github.com/elector-go/elector/backends/postgres"
	_ "github.com/elector-go/elector/backends/redis"
	_ "github.com/elector-go/elector/backends/s3"
	_ "github.com/elector-go/elector/backends/zookeeper"
	"github.com/elector-go/elector/internal/proof/chaos/data"
	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/chaos/task"
)

func main() {
	t, err := task.FromEnvironment()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c := &candidate{task: t, recorder: &history.Recorder{
		Election:  t.Election,
		Candidate: t.Candidate,
		Tell:      history.NewJournal(os.Stdout).Tell,
	}}
	if c.data, err = data.Open(t.Data); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	c.stopAtSignal()
	go c.recorder.WatchStalls(ctx)
	if err := c.run(ctx); err != nil {
		c.recorder.Event(history.Event{Kind: history.Fatal, Detail: err.Error()})
		os.Exit(1)
	}
}

type candidate struct {
	task     task.Task
	recorder *history.Recorder
	number   atomic.Uint64 // of the last write
	stop     stopper
	data     data.Data      // in the store, nil if it has none
	late     sync.WaitGroup // guarded writes under way
}

// run is what a service does: nobody begins a campaign again that has ended by itself.
func (c *candidate) run(ctx context.Context) error {
	o, err := c.open(ctx)
	if err != nil || ctx.Err() != nil {
		return err
	}
	c.recorder.Event(history.Event{Kind: history.Opened})
	reading, stopReading := context.WithCancel(ctx)
	read := make(chan struct{})
	go func() { defer close(read); c.read(reading, o) }()
	switch err = o.run(ctx, reading); {
	case ctx.Err() != nil:
		err = nil
	case err == nil:
		err = errors.New("the campaign ended by itself")
	}
	stopReading()
	<-read
	c.late.Wait()
	if c.data != nil {
		err = errors.Join(err, c.data.Close())
	}
	return errors.Join(err, o.Close())
}

// open tries until the store answers: a campaign may break it just then.
func (c *candidate) open(ctx context.Context) (office, error) {
	for {
		begun := history.BootTime()
		var o office
		var err error
		if c.task.Partitions > 0 {
			o, err = c.join(ctx)
		} else {
			o, err = c.stand(ctx)
		}
		if err == nil || c.forgive(ctx, err, begun) != nil {
			return o, err
		}
		if !pause(ctx, c.task.ReadEvery) {
			return nil, nil
		}
	}
}

// forgive records an error of opening, begun at some time, that a campaign may cause, and
// returns others.
func (c *candidate) forgive(ctx context.Context, err error, begun time.Duration) error {
	if err == nil || ctx.Err() != nil {
		return nil
	}
	for _, kind := range []error{backends.ErrUnavailable, backends.ErrForeignRecord, backends.ErrDenied, backends.ErrReadOnly} {
		if errors.Is(err, kind) {
			c.recorder.Failed("open: ", err, begun)
			return nil
		}
	}
	return err
}

// work is the worker of an election or of a partition: it writes as often as it may.
// Late writes of it come after ctx has ended, but no later than late.
func (c *candidate) work(ctx, late context.Context, r *history.Recorder, lease lease) {
	r.Look(history.Acquired, lease, 0)
	told := make(chan struct{})
	go func() {
		defer close(told)
		<-ctx.Done()
		r.Event(history.Event{Kind: history.Canceled, Token: lease.Token()})
	}()
	for c.writes(late, r, lease) {
		if !pause(ctx, c.task.WriteEvery) {
			r.Look(history.Checked, lease, 0)
			break
		}
	}
	<-told // Check fails no later than the context ends, and it may be earlier
}

// writes makes a write, and a guarded one, if the lease allows it, and reports whether
// it does.
func (c *candidate) writes(late context.Context, r *history.Recorder, lease lease) bool {
	number := c.number.Add(1)
	if !r.Look(history.Writing, lease, number) {
		return false
	}
	send := c.guard(late, r, lease, number)
	r.Event(c.write(r.Election, lease, number))
	send()
	return true
}

// read asks the store every now and then who leads.
func (c *candidate) read(ctx context.Context, o office) {
	for pause(ctx, c.task.ReadEvery) {
		limited, cancel := context.WithTimeout(ctx, c.task.TTL)
		o.read(limited)
		cancel()
	}
}

// pause reports whether the time has passed before the context ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
