// Command compare measures this repository's library side by side with others,
// on real stores that it starts, and writes what it found: results.json with
// all figures, about.json with what they were measured on, RESULTS.md, and the
// plots in the folder plots.
//
// It exits 1 if anything failed, or if a table would have no figure of this library.
//
// -page measures nothing and writes page and plots again from the two files: for
// after a change of package report, its reasons above all.
//
// Usage: go run ./cmd/compare [-page] [-short] [-only cost,handover] [-libraries etcd,pglock] [-stores redis,nats] [-ttl 3s] [-out .] [-logs file] [-elections 2000] [-profiles folder]
//
// With -only, -libraries or -stores the figures that are measured replace those that
// results.json has of the same subjects, libraries and stores, and the others stay.
// What was measured before something failed is in results.json too; the page is
// only written when nothing did.
//
// -profiles gets, from each process that holds many elections (subject scale),
// files such as etcd-elector-1000.cpu.pprof: where its processor was while it
// held them, and the same with heap and goroutine for what there was at the end.
//
// -elections replaces the numbers of elections of subject scale, which then measures
// this repository's library alone and holds them for one TTL only, and needs -out as -short does.
//
// In a short run, where subjects disturb each other, another library that
// could not be measured is reported and has no figure; otherwise it is an error.
//
// -short needs -out with a folder that has no figures of a full run, so that
// its figures are not kept by mistake.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/elector-go/elector/bench/handover"
	"github.com/elector-go/elector/bench/overlap"
	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/bench/report"
	"github.com/elector-go/elector/bench/results"
	"github.com/elector-go/elector/bench/scale"
)

func main() {
	if handover.Main() {
		return // it was a leader that had to be killed
	}
	if scale.Main() {
		return // it held many elections
	}
	if overlap.Main() {
		return // it was a candidate
	}
	var c comparison
	flag.BoolVar(&c.short, "short", false, "fewest rounds that still show each row, most subjects at the same time; needs -out")
	only := flag.String("only", "", "subjects, with commas between: "+strings.Join(subjectNames(), ", "))
	libraries := flag.String("libraries", "", "libraries, with commas between, and ours on their stores: "+strings.Join(peers.Names(), ", "))
	kinds := flag.String("stores", "", "kinds of stores, with commas between: "+strings.Join(peers.Stores(peers.All()), ", "))
	flag.DurationVar(&c.ttl, "ttl", 3*time.Second, "of all libraries; whole seconds")
	page := flag.Bool("page", false, "write the page again, from results.json and about.json")
	flag.StringVar(&c.out, "out", ".", "the folder to write to")
	logs := flag.String("logs", "", "a file for what the peers log; it is thrown away without")
	elections := flag.String("elections", "", "numbers of elections for subject scale, with commas between; needs -out")
	flag.StringVar(&c.profiles, "profiles", "", "a folder for profiles of the processes that hold many elections; none without")
	flag.Parse()
	c.only, c.wanted, c.kinds = list(*only), list(*libraries), list(*kinds)
	for _, text := range list(*elections) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || c.out == "." {
			fmt.Fprintln(os.Stderr, "compare: -elections takes positive numbers, and needs -out")
			os.Exit(1)
		}
		c.elections = append(c.elections, n)
	}
	c.log = progress(os.Stdout, time.Now())
	if err := logTo(*logs); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case flag.NArg() > 0:
		err = errors.New("there are no arguments but flags")
	case *page:
		err = c.page()
	default:
		err = c.run(ctx, subjects, askStores)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// logTo redirects what goes through packages log and slog, where the peers
// tell of everything that is done to them.
func logTo(path string) error {
	if path == "" {
		log.SetOutput(io.Discard)
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	log.SetOutput(f)
	return nil
}

func list(s string) (all []string) {
	for name := range strings.SplitSeq(s, ",") {
		if name = strings.TrimSpace(name); name != "" {
			all = append(all, name)
		}
	}
	return all
}

// progress prints lines with the time since the start.
func progress(w *os.File, start time.Time) func(string, ...any) {
	return func(format string, args ...any) {
		since := time.Since(start).Truncate(time.Second)
		fmt.Fprintf(w, "%3d:%02d %s\n", int(since.Minutes()), int(since.Seconds())%60, fmt.Sprintf(format, args...))
	}
}

// A comparison is what the command was told.
type comparison struct {
	short        bool
	only, wanted []string // subjects and libraries; all if empty
	kinds        []string // of stores; all if empty
	ttl          time.Duration
	out          string
	elections    []int  // of subject scale
	profiles     string // a folder, empty for none
	log          func(format string, args ...any)
}

// run measures some of the subjects. ask finds out what the stores are.
func (c *comparison) run(ctx context.Context, all []subject, ask func(context.Context, []string, func(string, ...any)) ([]report.System, error)) error {
	if c.ttl < time.Second || c.ttl%time.Second != 0 {
		return fmt.Errorf("a TTL of %v: it must be whole seconds, which is how some libraries count", c.ttl)
	}
	if c.short {
		if err := c.harmless(); err != nil {
			return err
		}
	}
	chosen, err := chooseSubjects(all, c.only)
	if err != nil {
		return err
	}
	libraries, err := peers.Choose(c.wanted, c.kinds)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(c.out, "plots"), 0o777); err != nil {
		return err
	}
	path := filepath.Join(c.out, "results.json")
	var figures []results.Figure
	if c.apart() {
		if figures, err = results.Load(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	systems, err := ask(ctx, peers.Stores(libraries), c.log)
	if err != nil {
		return err
	}
	var mutex sync.Mutex // guards figures and the file
	errs := make([]error, len(chosen))
	measure := func(s subject) error {
		c.log("%s: begins", s.name)
		start := time.Now()
		measured, err := s.measure(ctx, options{c.ttl, c.short, libraries, c.elections, c.profiles, c.log})
		if c.short && err != nil && peers.Besides(err) == nil {
			c.log("%s: NOT MEASURED: %v", s.name, err)
			err = nil
		}
		if err == nil {
			err = report.Complete(measured, s.subjects, peers.Stores(libraries))
		}
		mutex.Lock()
		defer mutex.Unlock()
		if len(measured) > 0 {
			figures = merge(figures, measured, s.subjects, libraries)
			err = errors.Join(err, results.Save(path, figures))
		}
		c.log("%s: %d figures in %v", s.name, len(measured), time.Since(start).Round(time.Second))
		if err != nil {
			c.log("%s: FAILED: %v", s.name, err)
			return fmt.Errorf("%s: %w", s.name, err)
		}
		return nil
	}
	var measuring sync.WaitGroup
	for i, s := range chosen {
		if ctx.Err() != nil {
			break
		}
		if !c.short || s.name == undisturbed { // a short run's times say little anyway
			measuring.Wait()
		}
		measuring.Go(func() { errs[i] = measure(s) })
	}
	measuring.Wait()
	if ctx.Err() != nil {
		return errors.Join(append(errs, context.Cause(ctx))...)
	}
	if err := errors.Join(append(errs, c.describe(figures, systems))...); err != nil {
		return err
	}
	return c.page()
}

// harmless returns an error if a short run would take the place of a full one.
func (c *comparison) harmless() error {
	page, err := os.ReadFile(filepath.Join(c.out, "RESULTS.md"))
	kept := err == nil && !strings.Contains(string(page), report.ShortRun)
	if kept || sameFolder(c.out, ".") {
		return fmt.Errorf("a short run into %q would take the place of the figures that are kept: name another folder with -out", c.out)
	}
	return nil
}

// apart says whether figures of earlier runs stay.
func (c *comparison) apart() bool { return len(c.only) > 0 || len(c.wanted) > 0 || len(c.kinds) > 0 }

// describe writes what figures were measured on.
func (c *comparison) describe(figures []results.Figure, systems []report.System) error {
	about := report.Here()
	about.TTL, about.Short, about.Apart = c.ttl, c.short, c.apart()
	about.Systems = systems
	about.Libraries = described(figures)
	path := filepath.Join(c.out, "about.json")
	if c.apart() { // stores that were not needed now
		if before, err := report.LoadAbout(path); err == nil {
			for i, s := range before.Systems {
				if s.On == "" && before.CPU != about.CPU {
					before.Systems[i].On = before.CPU + ", " + before.Day()
				}
			}
			about.Systems = known(before.Systems, systems)
		}
	}
	return about.Save(path)
}

// known returns what is known now of stores, and of others what was before.
func known(before, now []report.System) []report.System {
	all := slices.Clone(before)
	for _, s := range now {
		i := slices.IndexFunc(all, func(b report.System) bool { return b.Kind == s.Kind })
		if i < 0 {
			all = append(all, s)
			continue
		}
		all[i] = s
	}
	return all
}

// page writes the page and the plots.
func (c *comparison) page() error {
	figures, err := results.Load(filepath.Join(c.out, "results.json"))
	if err != nil {
		return err
	}
	about, err := report.LoadAbout(filepath.Join(c.out, "about.json"))
	if err != nil {
		return err
	}
	plots, err := report.Plots(figures)
	if err != nil {
		return err
	}
	for _, p := range plots {
		if err := os.WriteFile(filepath.Join(c.out, "plots", p.Name+".svg"), []byte(p.SVG), 0o666); err != nil {
			return err
		}
	}
	var page strings.Builder
	if err := report.Page(&page, figures, about); err != nil {
		return err
	}
	path := filepath.Join(c.out, "RESULTS.md")
	if err := os.WriteFile(path, []byte(page.String()), 0o666); err != nil {
		return err
	}
	c.log("wrote %s", path)
	return nil
}

// described are the libraries that figures are of, each once.
func described(figures []results.Figure) (all []report.Library) {
	there := map[string]bool{}
	for _, f := range figures {
		there[f.Library] = true
	}
	for _, l := range peers.All() {
		if !there[l.Name] {
			continue
		}
		there[l.Name] = false
		all = append(all, report.Library{Name: l.Name, Module: l.Module, Version: l.Version(), Belief: l.Belief, Settings: l.Settings})
	}
	return all
}

func sameFolder(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
