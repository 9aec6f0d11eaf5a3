package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/elector-go/elector/internal/proof/child"
)

const (
	ticks   = 100
	tabs    = 5 // elections side by side
	every   = 5500 * time.Millisecond
	apart   = 1500 * time.Millisecond // how much two hosts' clocks may differ
	atLeast = 3 * time.Second
	job     = 100 * time.Millisecond
)

// cron lets two hosts, whose clocks are apart, run the same job at each tick of
// their own clocks.
func (d *demo) cron(ctx context.Context, seed uint64) error {
	var group sync.WaitGroup
	counts := [2]map[int]int{{}, {}} // how many ticks ran the job so often
	var mutex sync.Mutex
	var errs []error
	dir := filepath.Join(d.dir, "cron")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for tab := range tabs {
		for with, flags := range [][]string{{"--try"}, {"--try", "--at-least", atLeast.String()}} {
			random := rand.New(rand.NewPCG(seed, uint64(10*with+tab)))
			group.Go(func() {
				p := place{name: "file", url: "file://" + dir}
				l, err := newLane(p, d.program, d.self, dir, 10*with+tab)
				if err != nil {
					panic(err)
				}
				defer l.log.Close()
				var hosts sync.WaitGroup
				defer hosts.Wait()
				started := time.Now().Add(time.Duration(tab) * every / tabs)
				before := 0
				for tick := range ticks / tabs {
					at := started.Add(time.Duration(tick) * every)
					offset := apart/3 + time.Duration(random.Float64()*float64(apart*2/3))
					err := errors.Join(l.tick(ctx, &hosts, at, flags), l.tick(ctx, &hosts, at.Add(offset), flags))
					time.Sleep(time.Until(at.Add(every - 400*time.Millisecond)))
					terms, err2 := l.journal.read()
					mutex.Lock()
					counts[with][len(terms)-before]++
					errs = append(errs, err, err2)
					mutex.Unlock()
					before = len(terms)
					if ctx.Err() != nil {
						return
					}
				}
			})
		}
	}
	group.Wait()
	if err := errors.Join(append(errs, ctx.Err())...); err != nil {
		return err
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	fmt.Printf("\nTwo hosts' cron, %d ticks, clocks up to %v apart, a job of %v:\n", ticks, apart, job)
	for with, text := range []string{"without --at-least", "with --at-least " + atLeast.String()} {
		fmt.Printf("  %-24s once in %d ticks, twice in %d, never in %d\n", text, counts[with][1], counts[with][2], counts[with][0])
	}
	if counts[1][1] != ticks {
		d.broken = append(d.broken, fmt.Sprintf("with --at-least the job ran once in %d of %d ticks", counts[1][1], ticks))
	}
	return nil
}

// tick starts the job on a host at a time, as cron does.
func (l *lane) tick(ctx context.Context, hosts *sync.WaitGroup, at time.Time, flags []string) error {
	select {
	case <-time.After(time.Until(at)):
	case <-ctx.Done():
		return ctx.Err()
	}
	c := l.command(ctx, "once", flags...)
	if err := child.Start(c); err != nil {
		return err
	}
	hosts.Go(func() { c.Wait() })
	return nil
}
