// Command parts runs the tests of this tree: parts that run side by side, since most of
// them wait for stores most of the time.
//
//	go run ./internal/parts                    # make test
//	go run ./internal/parts -all -part 2/4     # make test-all PART=2/4
//	go run ./internal/parts -kinds "nats s3"   # make test KINDS="nats s3"
//	go run ./internal/parts -since REVISION    # what a change touches, and make test has not
//	go run ./internal/parts -list -all
//
// It gets the stores that the parts need, prints a line when a part ends and, each minute,
// how far the others are, and in the end what ran on which store. It exits with status 1 if
// a part fails, ran no test or left a case out, or if a store cannot be had.
//
// No part has a time limit. One that neither begins nor ends a test, nor prints anything,
// is ended when it has rested, or computed, for much longer than any test does; see watch.go.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/elector-go/elector/internal/choice"
	"github.com/elector-go/elector/internal/diagnose"
)

func main() {
	var c chooser
	flag.BoolVar(&c.all, "all", false, "all parts, not only those of make test")
	flag.Var(&c.share, "part", "of the parts the share `K/N`, for example 1/4")
	flag.StringVar(&c.kinds, "kinds", "", "only the parts of these `stores`, with spaces between")
	flag.StringVar(&c.since, "since", "", "only parts that make test has not, and that a change since this `revision` touches")
	flag.StringVar(&c.only, "only", "", "only parts whose name begins with this `text`")
	flag.StringVar(&c.cases, "cases", ".", "of the suite in the parts containers and declared, the cases of this `pattern`")
	within := flag.Duration("within", 0, "begin no part later than that, nor one that takes many minutes, and say which were left out; others are for each commit")
	list := flag.Bool("list", false, "print the parts and run none")
	jobs := flag.Int("j", 0, "how many parts that mostly wait run at a time, by default four for each processor; of those that compute one runs on each")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, c, *list, *jobs, *within)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "parts:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, c chooser, list bool, jobs int, within time.Duration) error {
	begun := time.Now()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("run this inside the module: %w", err)
	}
	root := strings.TrimSpace(string(out))
	chosen, err := c.of(root)
	if err != nil {
		return err
	}
	if list {
		for _, p := range chosen {
			fmt.Println(p.name)
		}
		return nil
	}
	r := &runner{root: root, race: raceDetector(ctx), jobs: jobs, within: within}
	if r.race == nil {
		fmt.Println("The race detector is on.")
	} else {
		fmt.Printf("The race detector is off: %v. Everything else runs.\n", r.race)
	}
	if len(chosen) == 0 {
		fmt.Println("no part to run")
		return nil
	}
	if within > 0 {
		commit, _ := exec.Command("git", "-C", root, "rev-parse", "HEAD").Output()
		chosen = choice.Turn(r.short(chosen), string(commit))
	}
	if err := r.fetch(ctx, chosen); err != nil {
		return err
	}
	if err := r.runAll(ctx, chosen); err != nil {
		return err
	}
	fmt.Printf("%d parts passed in %.0f s\n", len(r.ended), time.Since(begun).Seconds())
	if len(r.left) > 0 {
		fmt.Printf("NOT RUN within %v: %s\n", within, strings.Join(r.left, ", "))
	}
	c.leftOut()
	return nil
}

// fetch gets the stores that the parts need.
func (r *runner) fetch(ctx context.Context, chosen []part) error {
	wanted := map[string]bool{}
	args := []string{"run", "./cmd/fetch"}
	for _, p := range chosen {
		for _, kind := range p.stores {
			if !wanted[kind] {
				wanted[kind] = true
				args = append(args, kind)
			}
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	begun := time.Now()
	var kept strings.Builder
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(r.root, proof)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stdout, cmd.Stderr = os.Stdout, &kept
	err := cmd.Run()
	if err == nil {
		fmt.Printf("stores are there after %.0f s\n", time.Since(begun).Seconds())
		return nil
	}
	if line := diagnose.Line(kept.String()); line != "" && !strings.Contains(kept.String(), "FAILED") {
		return fmt.Errorf("the stores cannot be had: %s\n%s", line, kept.String())
	}
	return fmt.Errorf("the stores cannot be had: %w\n%s", err, kept.String())
}
