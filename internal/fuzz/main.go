// Fuzz runs every fuzz target of a module, one after another, and prints a line
// for each.
//
//	go run ./internal/fuzz                      60 s for each target
//	go run ./internal/fuzz -time 10m -only URL  those whose name holds a text
//	go run ./internal/fuzz -list                only says which there are
//
// A directory as an argument names another module. It exits with status 1 if a
// target fails, and says where the input is that made it fail: a file in
// testdata/fuzz, which go test runs from then on. Interesting inputs are kept in
// Go's build cache, and the next run goes on from them; go clean -fuzzcache
// forgets them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	limit := flag.Duration("time", time.Minute, "how long to run each target")
	only := flag.String("only", "", "run only the targets whose name, PACKAGE.FuzzName, holds this text")
	list := flag.Bool("list", false, "only list the targets")
	flag.Parse()
	modules := flag.Args()
	if len(modules) == 0 {
		modules = []string{"."}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok := run(ctx, modules, *only, *limit, *list)
	stop()
	if !ok {
		os.Exit(1)
	}
}

// run reports whether all targets ran and none failed.
func run(ctx context.Context, modules []string, only string, limit time.Duration, list bool) bool {
	var chosen []target
	for _, module := range modules {
		all, err := targets(ctx, module)
		if err != nil {
			fmt.Fprintln(os.Stderr, "fuzz:", err)
			return false
		}
		for _, t := range all {
			if strings.Contains(t.String(), only) {
				chosen = append(chosen, t)
			}
		}
	}
	if len(chosen) == 0 {
		fmt.Fprintln(os.Stderr, "fuzz: there is no such target")
		return false
	}
	if list {
		for _, t := range chosen {
			fmt.Println(t)
		}
		fmt.Printf("%d targets\n", len(chosen))
		return true
	}

	fmt.Printf("%d targets, %v each\n", len(chosen), limit)
	var results []result
	for i, t := range chosen {
		r := t.run(ctx, limit)
		if ctx.Err() != nil {
			fmt.Fprintln(os.Stderr, "fuzz: interrupted")
			break
		}
		results = append(results, r)
		fmt.Fprintf(os.Stderr, "%d of %d: %v: %d executions, %s\n", i+1, len(chosen), t, r.executions, r.verdict())
	}
	return report(results) && len(results) == len(chosen)
}

// report prints the table, and what the targets that failed have printed.
func report(results []result) bool {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "TARGET\tTIME\tEXECUTIONS\tNEW INTERESTING\tRESULT")
	bad, executions := 0, 0
	for _, r := range results {
		fmt.Fprintf(out, "%v\t%.0fs\t%d\t%d\t%s\n", r.target, r.time.Seconds(), r.executions, r.interesting, r.verdict())
		executions += r.executions
		if r.failed {
			bad++
		}
	}
	out.Flush()
	fmt.Printf("%d of %d targets clean, %d executions\n", len(results)-bad, len(results), executions)
	for _, r := range results {
		if r.failed {
			fmt.Printf("\n%v printed:\n%s\n", r.target, r.output)
		}
		if r.input != "" {
			fmt.Printf("the input is in %s; in testdata/fuzz/%s go test runs it: go test -run='^%s$/^%s$' %s\n", r.input, r.target.name, r.target.name, filepath.Base(r.input), r.target.pkg)
		}
	}
	return bad == 0
}
