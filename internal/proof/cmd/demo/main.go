// Command demo runs the example examples/singleton on real stores: on each,
// two processes that know nothing of it but ELECTOR_URL elect a leader, which is
// told to end, and the next one killed. It prints how long that took, and exits
// 1 if something was not as promised, or a store could not be had. Lateness is
// no failure: it is reported with how long the machine stood still meanwhile.
//
// Usage: go run ./cmd/demo [KIND] …
//
// Without a name it shows all of stores.Kinds.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/elector-go/elector/examples/singleton/demo"
	"github.com/elector-go/elector/internal/overlay"
	"github.com/elector-go/elector/internal/proof/stores"

	// To ask each store for its limits.
	_ "github.com/elector-go/elector/backends/consul"
	_ "github.com/elector-go/elector/backends/dynamodb"
	_ "github.com/elector-go/elector/backends/etcd"
	_ "github.com/elector-go/elector/backends/gcs"
	_ "github.com/elector-go/elector/backends/kubernetes"
	_ "github.com/elector-go/elector/backends/postgres"
	_ "github.com/elector-go/elector/backends/zookeeper"
	_ "github.com/elector-go/elector/internal/proof/modules"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, wanted []string) error {
	kinds, err := stores.Choose(wanted)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "elector-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "singleton")
	if err := build(ctx, program); err != nil {
		return err
	}
	var rows []row
	for _, kind := range kinds {
		r := play(ctx, program, kind)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rows = append(rows, r)
	}
	for _, kind := range stores.All() {
		if len(wanted) == 0 && !slices.Contains(kinds, kind) {
			fmt.Printf("NOT RUN: %s; name it to see it\n", kind)
		}
	}
	fmt.Println()
	if !report(os.Stdout, rows) {
		return errors.New("not everything was as promised")
	}
	return nil
}

// build compiles the example in this module, with one more file, which imports the
// backends that are modules of their own.
func build(ctx context.Context, program string) error {
	const module = "github.com/elector-go/elector"
	where, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return fmt.Errorf("looking for the folder of %s; work inside the repository: %w", module, err)
	}
	list, err := overlay.Write(strings.TrimSpace(string(where)), filepath.Dir(program), "singleton", []overlay.Edit{
		{File: "examples/singleton/modules.go", New: "package main\n\nimport _ \"" + module + "/internal/proof/modules\"\n"},
	})
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-overlay", list, "-o", program, module+"/examples/singleton")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building examples/singleton: %w", err)
	}
	return nil
}

// play starts a store, plays on it and stops it.
func play(ctx context.Context, program, kind string) (r row) {
	r.kind = kind
	s, err := stores.Start(ctx, kind)
	if err != nil {
		r.err = err
		return r
	}
	defer func() { r.err = errors.Join(r.err, s.Stop()) }()
	r.how = s.How
	fmt.Println(s)
	stores.AnyCredentials()
	r.figures, r.err = demo.Measure(ctx, program, s.URL)
	return r
}
