// Command groups measures what happens to the partitions of a group when members come,
// leave, crash, are stopped and lose the network: see package groups of bench. It takes
// about seven minutes, and then writes the section about it: report/groups.md, and
// RESULTS.md with it. It runs in the folder bench.
//
// It exits 1 if two members worked on one partition with this repository's library, other
// than in the unit of work in which one was stopped, or if a scene did not take place; it
// writes nothing then.
//
// With -short, which plays three scenes once, or with names of subjects, it prints the section
// and writes nothing.
//
// Usage: go run ./cmd/groups [-short] [-rounds 3] [-ttl 6s] [subject ...]
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/elector-go/elector/bench/groups"
	"github.com/elector-go/elector/bench/report"
	"github.com/elector-go/elector/bench/results"
)

func main() {
	if groups.Main() {
		return // it was a member
	}
	o := groups.Options{Log: log.New(os.Stdout, "", log.Ltime).Printf}
	flag.BoolVar(&o.Short, "short", false, "only the join, the leave and the crash, once; writes nothing")
	flag.IntVar(&o.Rounds, "rounds", 3, "of all scenes")
	flag.DurationVar(&o.TTL, "ttl", 6*time.Second, "and session timeout; kfake takes no shorter one")
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "Usage: groups [-short] [-rounds 3] [-ttl 6s] [subject ...]\nSubjects: %q\n", groups.Names())
		flag.PrintDefaults()
	}
	flag.Parse()
	slog.SetDefault(slog.New(slog.DiscardHandler)) // adapters report the tables that they make
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "groups:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o groups.Options, names []string) error {
	if o.Names = names; o.Short {
		o.Rounds = 1
	}
	if o.Rounds < 1 || o.TTL < 6*time.Second {
		return fmt.Errorf("%d rounds with a TTL of %v: there must be a round, and 6 s", o.Rounds, o.TTL)
	}
	measured, err := groups.Measure(ctx, o)
	if measured == nil {
		return err
	}
	var section strings.Builder
	measured.Write(&section) // to memory
	fmt.Printf("\n%s", section.String())
	if err != nil || o.Short || len(names) > 0 {
		return err
	}
	return keep(".", section.String())
}

// keep writes the section and the page of a folder.
func keep(folder, section string) error {
	figures, err := results.Load(filepath.Join(folder, "results.json"))
	if err != nil {
		return err
	}
	about, err := report.LoadAbout(filepath.Join(folder, "about.json"))
	if err != nil {
		return err
	}
	var page strings.Builder
	if err := report.PageWith(&page, figures, about, section); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "report", "groups.md"), []byte(section), 0o666); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "RESULTS.md"), []byte(page.String()), 0o666)
}
