// Mutants proves that the cases can fail: it breaks the code in one known way
// after another and expects the named case to go red, and the unbroken code to
// pass the same case with the same seed. Nothing in the tree is touched: the
// broken files are laid over it for a build (go help build, -overlay).
//
//	go run ./internal/mutants
//	go run ./internal/mutants -part 1/3
//	go run ./internal/mutants -only resurrected -v
//	go run ./internal/mutants -since origin/main -most 50
//
// It exits with status 1 if a mutant survives, if it cannot be made, or if the
// unbroken code fails.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/elector-go/elector/internal/choice"
)

func main() {
	seed := flag.Uint64("seed", 1, "seed of the runs")
	only := flag.String("only", "", "run only the mutants whose name, or what it breaks, holds this text")
	var of choice.Share
	flag.Var(&of, "part", "run only part `K/N` of them, for example 1/3")
	since := flag.String("since", "", "run only the mutants of what a change since this `revision` touches")
	most := flag.Int("most", 0, "of these run so many at most, others for each commit")
	jobs := flag.Int("j", 2, "how many to run at a time")
	verbose := flag.Bool("v", false, "print what the cases print")
	flag.Parse()

	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	l, err := newLab(dir, *seed, max(1, *jobs))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		l.close()
		os.Exit(1)
	}()
	chosen, err := choose(l.root, *only, *since, *most, of)
	ok := err == nil
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "mutants:", err)
	case len(chosen) == 0 && *since != "":
		fmt.Println("the change touches no mutant")
	default:
		ok = runAll(l, chosen, max(1, *jobs), *verbose)
	}
	if err := l.close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if !ok {
		os.Exit(1)
	}
}

// choose returns the mutants that the flags name.
func choose(root, only, since string, most int, of choice.Share) ([]mutant, error) {
	var chosen []mutant
	for _, m := range mutants {
		if strings.Contains(m.name, only) || strings.Contains(m.breaks, only) {
			chosen = append(chosen, m)
		}
	}
	if since != "" {
		changed, err := choice.Changed(root, since)
		if err != nil {
			return nil, err
		}
		chosen = touched(chosen, changed)
	}
	commit, _ := exec.Command("git", "-C", root, "rev-parse", "HEAD").Output()
	return atMost(choice.Of(of, chosen), most, string(commit)), nil
}

// runAll runs the mutants, prints the table, and reports whether all were
// caught.
func runAll(l *lab, chosen []mutant, jobs int, verbose bool) bool {
	started := time.Now()
	results := make([]result, len(chosen))
	turns := make(chan struct{}, jobs)
	var group sync.WaitGroup
	for i, m := range chosen {
		turns <- struct{}{}
		group.Go(func() {
			defer func() { <-turns }()
			results[i] = l.run(i, m)
		})
	}
	group.Wait()

	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "MUTANT\tBREAKS\tCAUGHT BY\tSEED\tTIME")
	var failed []string
	for i, m := range chosen {
		r := results[i]
		caught := m.test()
		if r.err != nil {
			caught = "NOT CAUGHT"
			failed = append(failed, fmt.Sprintf("%s: %v", m.name, r.err))
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%d\t%.1fs\n", m.name, m.breaks, caught, l.seed, r.time.Seconds())
		if verbose {
			failed = append(failed, m.name+" printed:\n"+r.output)
		}
	}
	out.Flush()
	bad := 0
	for _, r := range results {
		if r.err != nil {
			bad++
		}
	}
	fmt.Printf("%d of %d mutants caught, in %.0f s; there are %d\n", len(chosen)-bad, len(chosen), time.Since(started).Seconds(), len(mutants))
	for _, f := range failed {
		fmt.Println("\n" + f)
	}
	return bad == 0 && len(chosen) > 0
}
