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

	"golang.org/x/sync/errgroup"

	"github.com/elector-go/elector/internal/clock"
)

const (
	ticks   = 20 // of each election
	every   = 5500 * time.Millisecond
	apart   = 1500 * time.Millisecond // how much two hosts' clocks may differ
	atLeast = 3 * time.Second
	job     = 100 * time.Millisecond
	slack   = 400 * time.Millisecond
)

// A crontab is the same job on two hosts whose clocks are apart.
type crontab struct {
	*lane
	flags  []string
	random *rand.Rand
	before int // terms in the journal
}

// cron runs a job at each tick of two hosts' own clocks. A tick during which the machine
// stood still says nothing: it is played again, in another election.
func (d *demo) cron(ctx context.Context, seed uint64) error {
	dir := filepath.Join(d.dir, "cron")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	var group errgroup.Group
	var mutex sync.Mutex
	counts := [2]map[int]int{{}, {}} // how many ticks ran the job so often
	again := 0
	tabs := min(max(1, d.rounds/10), 5) // elections side by side: each keeps a good part of a processor busy
	for tab := range tabs {
		for with, flags := range [][]string{{"--try"}, {"--try", "--at-least", atLeast.String()}} {
			c := crontab{flags: flags, random: rand.New(rand.NewPCG(seed, uint64(10*with+tab)))}
			at := time.Now().Add(time.Duration(tab) * every / time.Duration(tabs))
			group.Go(func() error {
				defer func() { c.close() }()
				for played, elections := 0, 0; played < ticks; at = latest(at.Add(every), time.Now()) {
					if c.lane == nil {
						if elections++; elections > 5*ticks {
							return errors.New("cron: the machine stands still too often")
						}
						var err error
						name := 100*(10*with+tab) + elections
						if c.lane, err = newLane(place{name: "file", url: "file://" + dir}, d.program, d.self, dir, name); err != nil {
							return err
						}
						c.before = 0
					}
					ran, still, err := c.tick(ctx, at)
					if err != nil {
						return err
					}
					mutex.Lock()
					if still {
						again++
						c.close()
					} else {
						counts[with][ran]++
						played++
					}
					mutex.Unlock()
				}
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	fmt.Printf("\nTwo hosts' cron, %d ticks, clocks up to %v apart, a job of %v:\n", tabs*ticks, apart, job)
	for with, text := range []string{"without --at-least", "with --at-least " + atLeast.String()} {
		fmt.Printf("  %-24s once in %d ticks, twice in %d, never in %d\n", text, counts[with][1], counts[with][2], counts[with][0])
	}
	if again > 0 {
		fmt.Printf("  %d ticks were played again, because the machine stood still\n", again)
	}
	if counts[1][1] != tabs*ticks {
		d.broken = append(d.broken, fmt.Sprintf("with --at-least the job ran once in %d of %d ticks", counts[1][1], tabs*ticks))
	}
	return nil
}

// tick starts the job on both hosts, and returns how often it ran, and whether the machine
// stood still for so long that the tick says nothing.
func (c *crontab) tick(ctx context.Context, at time.Time) (ran int, still bool, err error) {
	offset := apart/3 + time.Duration(c.random.Float64()*float64(apart*2/3))
	var hosts [2]*wrapper
	var began time.Duration
	for i := range hosts {
		select {
		case <-time.After(time.Until(at.Add(time.Duration(i) * offset))):
		case <-ctx.Done():
			return 0, false, context.Cause(ctx)
		}
		if i == 0 {
			began = clock.Shared()
		}
		if hosts[i], err = watched(c.command(ctx, "once", c.flags...)); err != nil {
			return 0, false, err
		}
	}
	for _, host := range hosts {
		<-host.exited
		still = still || host.end-began >= every-slack
	}
	terms, err := c.journal.read()
	if err != nil {
		return 0, false, err
	}
	terms = terms[c.before:]
	c.before += len(terms)
	if len(terms) == 2 { // both hosts took their time, and the first lease began after its process
		still = terms[1].first-began >= atLeast
	}
	return len(terms), still, nil
}

func (c *crontab) close() {
	if c.lane != nil {
		c.log.Close()
		c.lane = nil
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
