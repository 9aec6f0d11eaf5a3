// Command shortage measures what becomes of many elections of one process on etcd and on
// PostgreSQL, both with fsync, while it has too little processor, while the store stands
// still, and when all campaigns begin at once. It bounds the processor by a control group,
// for which it must be root. It exits 1 if a figure is not as it must be.
//
// Usage: go run ./cmd/shortage [-elections N] [-begun N] [-parts 65,45,stop,begin] [KIND] …
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	_ "github.com/elector-go/elector/backends/etcd"
	_ "github.com/elector-go/elector/backends/postgres"
	"github.com/elector-go/elector/bench/shortage"
	"github.com/elector-go/elector/internal/proof/stores"
)

func main() {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // adapters report the tables that they make
	if shortage.Main() {
		return
	}
	elections := flag.Int("elections", 10_000, "elections that are led while there is a shortage")
	begun := flag.Int("begun", 20_000, "campaigns that begin at once")
	parts := flag.String("parts", "65,45,stop,begin", "what to measure: percents of the processor time at rest, the store stopped, campaigns begun at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, flag.Args(), *parts, shortage.Options{Elections: *elections, Begun: *begun}); err != nil {
		fmt.Fprintln(os.Stderr, "shortage:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kinds []string, parts string, o shortage.Options) error {
	if len(kinds) == 0 {
		kinds = []string{stores.Etcd, stores.Postgres}
	}
	for _, p := range strings.Split(parts, ",") {
		if !slices.Contains(shortage.Parts, shortage.Part(p)) {
			return fmt.Errorf("there is no part %q", p)
		}
		o.Parts = append(o.Parts, shortage.Part(p))
	}
	o.Log = func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
	var errs []error
	for _, o.Kind = range kinds {
		wrong := 0
		err := shortage.Measure(ctx, o, func(r shortage.Row) {
			show(r)
			wrong += len(r.Wrong())
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o.Kind, err))
		}
		if wrong > 0 {
			errs = append(errs, fmt.Errorf("%s: %d figures are not as they must be", o.Kind, wrong))
		}
	}
	return errors.Join(errs...)
}

// show prints a row.
func show(r shortage.Row) {
	after := "not all are led"
	if r.After >= 0 {
		after = fmt.Sprintf("all are led after %.1f s", r.After.Seconds())
	}
	n, l := r.Requests, r.Logged
	fmt.Printf("\n%s, %d elections: %v\n", r.Kind, r.Elections, r.Part)
	fmt.Printf("  led       at least %d; %s; at the end %d; %d leases ended\n", r.Least, after, r.Kept, r.Ended)
	fmt.Printf("  each 5 s  %s\n", strings.ReplaceAll(strings.Trim(fmt.Sprint(r.Led), "[]"), "-1", "-"))
	fmt.Printf("  requests  at most %d at a time; swaps: %d batches, %d single; reads: %d batches, %d single; %d watches; %.1f %% of %d records single\n",
		n.Most, n.Batches, n.Swaps, n.Reads, n.Loads, n.Watches, 100*float64(n.Single())/float64(max(n.Records, 1)), n.Records)
	fmt.Printf("  log       %d lines, %d causes, %d lines repeated; goroutines: %d; the process tells nothing for %.1f s at most\n", l.Lines, l.Causes, l.Repeated, r.Goroutines, r.Silent.Seconds())
	if l.Loud > 1 {
		fmt.Printf("            %d like: %s\n", l.Loud, l.Loudest)
	}
	for _, w := range r.Wrong() {
		fmt.Println("  WRONG     " + w)
	}
}
