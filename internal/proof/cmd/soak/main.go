// Command soak runs campaigns one after the other, each in a process of its own and with
// a seed of its own, and adds up in a ledger what they have shown.
//
// Usage: go run ./cmd/soak -hours 8 -out DIR
//
// It goes on with the seed after the highest in the ledger. SIGINT ends it in order: the
// campaign under way is ended and not counted. The folder of a campaign is deleted unless
// it did not pass; of those, the latest are kept. It exits 1 if a campaign did not pass.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/ledger"
)

func main() {
	s := soak{out: os.Stdout}
	hours := flag.Float64("hours", 8, "how long to go on")
	flag.DurationVar(&s.round, "round", 10*time.Minute, "the length of a campaign; in less than ten minutes not all kinds of faults strike")
	flag.StringVar(&s.dir, "out", "", "the folder for the report, and for the folders of campaigns that did not pass")
	flag.StringVar(&s.ledger, "ledger", "", "the file with a line for each campaign; if empty ledger.tsv in -out")
	flag.StringVar(&s.places, "places", "", "as of cmd/chaos")
	flag.IntVar(&s.keep, "keep", 20, "how many folders of campaigns that did not pass to keep")
	flag.Uint64Var(&s.seed, "seed", 1, "of the first campaign, if the ledger is empty")
	flag.IntVar(&s.goal, "goal", 100_000, "how many faults the ledger is to reach")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s.length = time.Duration(*hours * float64(time.Hour))
	if err := s.main(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

type soak struct {
	length, round    time.Duration
	dir, ledger      string
	places           string
	keep, goal       int
	seed             uint64
	out              io.Writer
	program          string // cmd/chaos, built
	passed, unpassed int    // campaigns of this run
}

// main builds the campaign's program and runs it.
func (s *soak) main(ctx context.Context) (err error) {
	if s.dir == "" {
		return errors.New("-out is empty; name a folder")
	}
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return err
	}
	if s.ledger == "" {
		s.ledger = filepath.Join(s.dir, "ledger.tsv")
	}
	if s.ledger, err = filepath.Abs(s.ledger); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "elector-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s.program = filepath.Join(dir, "chaos")
	if said, err := exec.CommandContext(ctx, "go", "build", "-o", s.program, "./cmd/chaos").CombinedOutput(); err != nil {
		return fmt.Errorf("building the campaign: %w\n%s", err, said)
	}
	return s.run(ctx)
}

// mostIdle is how many campaigns in a row may end without a single fault.
const mostIdle = 3

// run runs campaigns until the time is over or ctx ends.
func (s *soak) run(ctx context.Context) error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	all, bad, err := ledger.Read(s.ledger)
	if err != nil {
		return err
	}
	for _, b := range bad {
		fmt.Fprintln(s.out, "not counted:", b)
	}
	seed := ledger.Next(all, s.seed)
	fmt.Fprintf(s.out, "campaigns of %v until %s, from seed %d; %d campaigns are in %s\n", s.round, time.Now().Add(s.length).Format(time.DateTime), seed, len(all), s.ledger)

	end := time.Now().Add(s.length)
	idle := 0
	for ctx.Err() == nil && idle < mostIdle {
		length := min(s.round, time.Until(end))
		if length < s.round/2 {
			break
		}
		e, err := s.campaign(ctx, seed, length)
		if err != nil {
			return err
		}
		if e == nil {
			break // cut off
		}
		seed++
		idle++
		if e.Faults > 0 {
			idle = 0
		}
		if all, err = s.report(); err != nil {
			return err
		}
		fmt.Fprintf(s.out, "seed %d: %d faults, %d elections, %d violations; %d of %d faults\n", e.Seed, e.Faults, e.Elections, e.Violations, ledger.Total(all).Faults, s.goal)
	}
	if all, err = s.report(); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s\nthe page: %s\n", summary(all, s.goal), s.page())
	switch {
	case idle == mostIdle:
		return fmt.Errorf("%d campaigns in a row ended without a fault: see %s", idle, s.dir)
	case s.unpassed > 0:
		return fmt.Errorf("%d of %d campaigns did not pass", s.unpassed, s.unpassed+s.passed)
	}
	return nil
}

func (s *soak) page() string { return filepath.Join(s.dir, "soak.html") }

// report writes the page, and returns what is in the ledger.
func (s *soak) report() ([]ledger.Entry, error) {
	all, bad, err := ledger.Read(s.ledger)
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(s.dir, "page-")
	if err != nil {
		return nil, err
	}
	err = errors.Join(writePage(f, all, len(bad), s.goal), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), s.page())
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(f.Name()))
	}
	return all, nil
}

// summary is what the ledger comes to, in a line.
func summary(all []ledger.Entry, goal int) string {
	t := ledger.Total(all)
	return fmt.Sprintf("%d campaigns in %.1f h: %d of %d faults, %d elections, %d overlaps of valid leases, %d stale writes accepted, %d violations; %d campaigns did not pass.",
		t.Campaigns, t.Time.Hours(), t.Faults, goal, t.Elections, t.Overlaps, t.Stale, t.Violations, t.Failed)
}
