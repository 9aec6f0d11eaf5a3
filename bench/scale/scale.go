// Package scale measures what many elections in one process cost: connections,
// goroutines, memory, requests; whether all of them are kept; and, with this
// repository's library, how long it takes until another process has taken all
// of them over.
package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/bench/results"
	"github.com/elector-go/elector/bench/wire"
	"github.com/elector-go/elector/internal/proof/stores"
)

// Options say what to measure.
type Options struct {
	TTL       time.Duration // 0 for 15 s, what a process with so much to renew would choose, or 3 s in short
	Short     bool
	Libraries []peers.Library // only their names and stores are looked at; none for all
	Elections []int           // of our library alone; none for the numbers of each library, with a longer hold
	Profiles  string          // a folder for profiles of the processes that hold elections, made if need be; empty for none
	Log       func(format string, args ...any)
}

// A run is one library on one store, with one number of elections.
type run struct {
	o         Options
	store     *stores.Store
	kind      string
	library   string
	elections int
	ttls      int // for how long they are held and counted
	takeover  bool
}

// Measure starts the stores and measures one library after the other on each,
// all stores at the same time. It blocks for minutes. Each count of elections
// is held by a process of its own.
func Measure(ctx context.Context, o Options) ([]results.Figure, error) {
	if o.TTL == 0 {
		o.TTL = 15 * time.Second
		if o.Short {
			o.TTL = 3 * time.Second
		}
	}
	stores.AnyCredentials()
	if o.Profiles != "" {
		if err := os.MkdirAll(o.Profiles, 0o777); err != nil {
			return nil, err
		}
	}
	var mutex sync.Mutex
	var all []results.Figure
	var errs []error
	var group sync.WaitGroup
	for _, kind := range []string{stores.Etcd, stores.ZooKeeper, stores.Postgres, stores.DynamoDB, stores.Kubernetes, stores.Redis, stores.NATS} {
		group.Go(func() {
			figures, err := onStore(ctx, o, kind)
			mutex.Lock()
			defer mutex.Unlock()
			all = append(all, figures...)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", kind, err))
			}
		})
		if !o.Short {
			group.Wait() // so that they do not take each other's processor
		}
	}
	group.Wait()
	return all, errors.Join(append(errs, ctx.Err())...)
}

func onStore(ctx context.Context, o Options, kind string) (figures []results.Figure, err error) {
	var runs []run
	for _, library := range libraries[kind] {
		if !wanted(o.Libraries, library, kind) || len(o.Elections) > 0 && library != "elector" {
			continue
		}
		all := o.Elections
		if len(all) == 0 {
			all = counts(o.Short, library, kind)
		}
		for _, n := range all {
			r := run{o: o, kind: kind, library: library, elections: n, ttls: 1}
			r.takeover = library == "elector" && (n >= 10_000 || len(o.Elections) > 0)
			if r.takeover && len(o.Elections) == 0 {
				r.ttls = 10
			}
			runs = append(runs, r)
		}
	}
	if len(runs) == 0 {
		return nil, nil
	}
	s, stop, err := peers.Start(ctx, kind)
	if err != nil {
		return nil, err
	}
	defer func() {
		if stopErr := stop(); err == nil {
			err = stopErr
		}
	}()
	var failed []error
	for _, r := range runs {
		r.store = s
		o.Log("scale: %s, %s, %d elections", kind, r.library, r.elections)
		some, err := r.measure(ctx)
		if err != nil {
			failed = append(failed, &peers.Failure{Library: r.library, Store: kind, Err: fmt.Errorf("with %d elections: %w", r.elections, err)})
		}
		if ctx.Err() != nil {
			break
		}
		figures = append(figures, some...)
	}
	return figures, errors.Join(failed...)
}

func wanted(some []peers.Library, name, kind string) bool {
	for _, l := range some {
		if l.Name == name && l.Store == kind {
			return true
		}
	}
	return len(some) == 0
}

// counts are the numbers of elections. A store that is an emulator gets few, and so
// does an API server, which needs a core for some hundred writes in a second. On NATS each
// renewal is a write, and the server syncs one after the other: 10,000 elections would need
// 2,222 in a second.
func counts(short bool, library, kind string) []int {
	switch {
	case short:
		return []int{1, 100}
	case kind == stores.DynamoDB, kind == stores.Kubernetes:
		return []int{1, 100}
	case kind == stores.NATS:
		return []int{1, 100, 1000}
	case library == "elector":
		return []int{1, 100, 1000, 10_000}
	}
	return []int{1, 100, 1000}
}

// measure lets a child hold the elections.
func (r run) measure(ctx context.Context) (figures []results.Figure, err error) {
	p, err := wire.Start(r.kind, r.store.Address)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closeErr := p.Close(); err == nil {
			err = closeErr
		}
	}()
	t := task{Library: r.library, Store: r.kind, URL: r.store.Through(p.Address()), Address: p.Address(), TTL: r.o.TTL,
		Elections: r.elections, Prefix: "scale_" + strconv.FormatInt(time.Now().UnixNano(), 36), Profiles: r.profiles()}
	holder, err := start(t)
	if err != nil {
		return nil, err
	}
	defer holder.Kill()
	before, err := holder.await(ctx, connected)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if _, err := holder.await(ctx, held); err != nil {
		return nil, err
	}
	figure := func(what, unit string, values ...float64) {
		figures = append(figures, results.Figure{Subject: results.Scale, Store: r.kind, Library: r.library,
			What: what, Count: r.elections, Unit: unit, Values: values})
	}
	if r.elections > 1 {
		figure("winning all of them, 64 at a time", "s", time.Since(began).Seconds())
	}
	if err := sleep(ctx, r.o.TTL); err != nil { // the last ones have then renewed too
		return nil, err
	}
	first, start := p.Counts(), time.Now()
	if err := sleep(ctx, time.Duration(r.ttls)*r.o.TTL); err != nil {
		return nil, err
	}
	last, seconds := p.Counts(), time.Since(start).Seconds()
	after, err := holder.report(ctx)
	if err != nil {
		return nil, err
	}
	if r.elections == 1 {
		uses("with one election", 1, before.Before, after.Usage, figure)
	} else {
		uses("per further election", r.elections-1, before.Usage, after.Usage, figure)
	}
	figure("connections", "connections", float64(last.Open))
	figure("requests to hold all of them", "requests per second", float64(last.Requests-first.Requests)/seconds)
	figure("bytes to hold all of them", "bytes per second", float64(last.Sent+last.Received-first.Sent-first.Received)/seconds)
	within := "one TTL"
	if r.ttls > 1 {
		within = fmt.Sprintf("%d TTLs", r.ttls)
	}
	figure("lost within "+within, "elections", float64(after.Lost))
	if r.takeover {
		return figures, r.takeOver(ctx, t, holder, figure)
	}
	return figures, nil
}

// A reporter takes a figure of a run.
type reporter func(what, unit string, values ...float64)

// uses reports what a process uses more than before, of goroutines and of memory:
// heap and stacks. It is divided by the elections that are the reason.
func uses(why string, elections int, before, after usage, figure reporter) {
	n := float64(elections)
	figure("goroutines "+why, "goroutines", float64(after.Goroutines-before.Goroutines)/n)
	figure("memory "+why, "bytes", (float64(after.Heap)+float64(after.Stacks)-float64(before.Heap)-float64(before.Stacks))/n)
}

// takeOver lets a second child wait for all elections, and kills the first.
func (r run) takeOver(ctx context.Context, t task, holder *process, figure reporter) (err error) {
	p, err := wire.Start(r.kind, r.store.Address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	t.URL, t.Address, t.Wait, t.Profiles = r.store.Through(p.Address()), p.Address(), true, ""
	successor, err := start(t)
	if err != nil {
		return err
	}
	defer successor.Kill()
	before, err := successor.await(ctx, connected)
	if err != nil {
		return err
	}
	if _, err := successor.await(ctx, waiting); err != nil {
		return err
	}
	if err := sleep(ctx, r.o.TTL); err != nil { // the last ones then watch, or know when to read
		return err
	}
	first, start := p.Counts(), time.Now()
	if err := sleep(ctx, 2*r.o.TTL); err != nil {
		return err
	}
	figure("requests to wait for all of them", "requests per second", float64(p.Counts().Requests-first.Requests)/time.Since(start).Seconds())
	beside, err := successor.report(ctx)
	if err != nil {
		return err
	}
	uses("per election that is waited for", r.elections, before.Usage, beside.Usage, figure)
	idle, err := holder.report(ctx)
	if err != nil {
		return err
	}
	if idle.Lost > 0 {
		return fmt.Errorf("%d leases were lost while another process began to wait", idle.Lost)
	}
	holder.Kill()
	killed := time.Now()
	last, err := successor.await(ctx, held)
	if err != nil {
		return err
	}
	took := time.Since(killed)
	figure("warnings of the process that waited", "lines", float64(last.Warnings))
	figure("until another process has taken all of them over, after kill -9", "s", took.Seconds())
	figure("until another process has taken all of them over, after kill -9", "TTL", took.Seconds()/r.o.TTL.Seconds())
	return nil
}

// sleep lets time pass that is part of what is measured.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
