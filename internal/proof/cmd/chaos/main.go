// Command chaos holds elections on real stores while it breaks the network, the
// processes and the stores, checks what came of it, and draws it.
//
// Usage: go run ./cmd/chaos -duration 10m -seed 7 -out DIR
//
// It exits 1 if a violation was found, if it could not go on, or if some kind of
// fault never struck, or no guard was tried with a stale write, although there was
// time for all. With -mutant it builds a
// broken candidate and exits 1 unless one of the rules that it breaks finds it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos"
	"github.com/elector-go/elector/internal/proof/chaos/checker"
	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/chaos/ledger"
	"github.com/elector-go/elector/internal/proof/chaos/report"
)

func main() {
	var s settings
	flag.DurationVar(&s.duration, "duration", 10*time.Minute, "how long to go on breaking things")
	flag.Uint64Var(&s.seed, "seed", uint64(time.Now().UnixNano()%1e6), "decides which faults come in which order at each place; their timing is the machine's")
	flag.StringVar(&s.out, "out", "", "the folder for the page, and for the logs and histories of violations")
	flag.StringVar(&s.mutant, "mutant", "", "a broken candidate: "+strings.Join(mutantNames(), ", "))
	flag.StringVar(&s.older, "older", "", "a commit: one of each three candidates is that version; no groups")
	flag.StringVar(&s.ledger, "ledger", "", "a file that gets a line for this campaign, unless it is interrupted")
	flag.IntVar(&s.groups, "groups", 4, "one of so many rounds is one of a group; 0 for none")
	places := flag.String("places", "", "a list, with commas, of some of: "+strings.Join(chaos.Known(), ", ")+"; if empty "+strings.Join(chaos.Names(), ", "))
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *places != "" {
		s.places = strings.Split(*places, ",")
	}
	if err := s.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

type settings struct {
	duration time.Duration
	seed     uint64
	out      string
	mutant   string
	older    string
	ledger   string
	places   []string
	groups   int
}

func (s settings) run(ctx context.Context) error {
	known := chaos.Known()
	for _, place := range s.places {
		if !slices.Contains(known, place) {
			return fmt.Errorf("there is no place %q; known are %s", place, strings.Join(known, ", "))
		}
	}
	mutant, isMutant := chaos.Mutants[s.mutant]
	if s.mutant != "" && !isMutant {
		return fmt.Errorf("there is no mutant %q; known are %s", s.mutant, strings.Join(mutantNames(), ", "))
	}
	if s.ledger != "" && (isMutant || s.older != "") {
		return errors.New("-ledger counts campaigns of this version alone: leave out -mutant and -older")
	}
	if len(s.places) == 0 {
		if s.places = chaos.Names(); isMutant {
			s.places = mutant.Places
		}
	}
	if s.out == "" {
		return errors.New("-out is empty; name a folder")
	}
	out, err := filepath.Abs(s.out)
	if err == nil {
		err = os.MkdirAll(out, 0o755)
	}
	if err != nil {
		return err
	}
	if err := clear(out); err != nil {
		return err
	}
	commit := chaos.Commit(ctx)
	dir, err := os.MkdirTemp("", "elector-chaos-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program, err := chaos.Build(ctx, dir, s.mutant)
	if err != nil {
		return err
	}
	if isMutant {
		fmt.Printf("mutant %s: %s\n", s.mutant, mutant.Breaks)
	}
	fmt.Printf("seed %d, %v, on: %s\n", s.seed, s.duration, strings.Join(s.places, ", "))
	c := &chaos.Campaign{Places: s.places, Duration: s.duration, Seed: s.seed, Dir: out, Program: program, Until: mutant.Rules, Groups: s.groups}
	if s.older != "" {
		c.Groups = 0
		if c.Older, err = chaos.BuildOlder(ctx, dir, s.older); err != nil {
			return err
		}
		fmt.Printf("one of each three candidates is commit %s\n", s.older)
	}
	if isMutant {
		c.Groups = 0
		if mutant.Groups {
			c.Groups = 1
		}
	}
	result, took, err := follow(ctx, c)
	if reportErr := s.report(out, result, took); reportErr != nil {
		err = errors.Join(err, reportErr)
	}
	switch {
	case isMutant: // which may well be why it could not go on
		if unfound := s.judgeMutant(mutant, result); unfound == nil || err == nil {
			err = unfound
		}
	case err != nil:
	default:
		err = s.judge(result)
	}
	if s.ledger != "" && ctx.Err() == nil {
		err = errors.Join(err, ledger.Append(s.ledger, s.entry(commit, result, took, err)))
	}
	return err
}

// entry is the campaign's line in the ledger.
func (s settings) entry(commit string, r *chaos.Result, took time.Duration, problem error) ledger.Entry {
	sum := report.Total(&r.History)
	e := ledger.Entry{
		Time: time.Now(), Commit: commit, Seed: s.seed, Duration: took.Round(time.Second), Places: s.places,
		Elections: sum.Elections, Overlaps: sum.Overlaps, Stale: sum.Stale, Violations: len(r.Violations),
	}
	for _, n := range r.Fired {
		e.Faults += n
	}
	if problem != nil {
		e.Problem = problem.Error()
	}
	return e
}

// clear removes what an earlier campaign has left in the folder.
func clear(out string) error {
	for _, pattern := range []string{"*.history", "*.history.gz", "*.failed", "*.log", "*.stop", "chaos.html"} {
		old, err := filepath.Glob(filepath.Join(out, pattern))
		if err != nil {
			return err
		}
		for _, path := range old {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow runs the campaign and prints, each ten seconds, how far it is.
func follow(ctx context.Context, c *chaos.Campaign) (r *chaos.Result, took time.Duration, err error) {
	begun := time.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		r, err = c.Run(ctx)
	}()
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return r, time.Since(begun), err
		case <-tick.C:
			fmt.Printf("%7s  %s\n", time.Since(begun).Round(time.Second), c.Progress())
		}
	}
}

// report prints the figures and writes the page.
func (s settings) report(out string, r *chaos.Result, took time.Duration) error {
	var problems []report.Problem
	for i, v := range r.Violations {
		problems = append(problems, report.Problem{Election: v.Election, Rule: v.Rule, Text: v.Text, At: v.At, Class: string(v.Class())})
		fmt.Printf("\nVIOLATION %d, kept in %s\n%v", i+1, r.Kept[i], v)
	}
	fmt.Println()
	if err := report.Figures(os.Stdout, &r.History, problems); err != nil {
		return err
	}
	if err := r.History.Save(filepath.Join(out, "chaos.history.gz")); err != nil {
		return err
	}
	path := filepath.Join(out, "chaos.html")
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	err = report.Page(f, &r.History, problems, report.About{Seed: s.seed, Took: took, Notes: notes(r, s)})
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	fmt.Printf("\nthe time line: %s\n", path)
	return nil
}

// notes say what ran.
func notes(r *chaos.Result, s settings) (all []string) {
	if s.mutant != "" {
		all = append(all, "The candidates were broken on purpose: "+chaos.Mutants[s.mutant].Breaks+".")
	}
	for _, place := range s.places {
		all = append(all, fmt.Sprintf("%s: %s.", place, r.How[place]))
	}
	for _, g := range report.GuardedWrites(&r.History) {
		all = append(all, g.String())
	}
	for _, g := range report.Groups(&r.History) {
		all = append(all, g.String())
	}
	for _, b := range report.Backs(&r.History) {
		all = append(all, b.String())
	}
	return all
}

// judge says whether the campaign has shown what it is for.
func (s settings) judge(r *chaos.Result) error {
	total, never := 0, []string{}
	for fault := range r.At {
		total += r.Fired[fault]
		if r.Fired[fault] == 0 {
			never = append(never, fault)
		}
	}
	slices.Sort(never)
	idle := untried(&r.History, s.places)
	if total == 0 {
		return fmt.Errorf("%v was too short for a single fault", s.duration)
	}
	stuck := map[string]bool{}
	for _, v := range r.Violations {
		if v.Rule == checker.NotBack {
			stuck[v.Election] = true
		}
	}
	fmt.Printf("%d faults of %d kinds in %d elections; %d violations, %d elections or partitions without progress\n", total, len(r.At)-len(never), r.Elections, len(r.Violations), len(stuck))
	if len(r.Violations) > 0 {
		of := map[checker.Class]int{}
		for _, v := range r.Violations {
			of[v.Class()]++
		}
		return fmt.Errorf("%d violations, with seed %d: %d of safety, %d of progress, %d of the account",
			len(r.Violations), s.seed, of[checker.Safety], of[checker.Progress], of[checker.Account])
	}
	if len(idle) > 0 && s.duration >= enough {
		return fmt.Errorf("no stale write was tried with the guard of: %s", strings.Join(idle, ", "))
	}
	if len(idle) > 0 {
		fmt.Printf("No stale write was tried with the guard of: %s. That shows nothing of it.\n", strings.Join(idle, ", "))
	}
	if len(never) > 0 && s.duration >= enough {
		return fmt.Errorf("%v was enough for all kinds of faults, and these never struck: %s", s.duration, strings.Join(never, ", "))
	}
	if len(never) > 0 {
		fmt.Printf("There was no time for: %s. %v is enough for all.\n", strings.Join(never, ", "), enough)
	}
	return nil
}

// untried returns the places whose guards have met no stale write.
func untried(h *history.History, places []string) (idle []string) {
	all := report.GuardedWrites(h)
	for _, place := range places {
		if chaos.Guarded(place) && !slices.ContainsFunc(all, func(g report.Guarded) bool { return g.Store == place && g.StaleTried > 0 }) {
			idle = append(idle, place)
		}
	}
	return idle
}

// enough is the time in which every kind of fault strikes.
const enough = 10 * time.Minute

func (s settings) judgeMutant(m chaos.Mutant, r *chaos.Result) error {
	for _, v := range r.Violations {
		if slices.Contains(m.Rules, v.Rule) {
			fmt.Printf("mutant %s was found, by %s\n", s.mutant, v.Rule)
			return nil
		}
	}
	return fmt.Errorf("mutant %s was not found within %v by any of: %s", s.mutant, s.duration, strings.Join(m.Rules, ", "))
}

func mutantNames() (names []string) {
	for name := range chaos.Mutants {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
