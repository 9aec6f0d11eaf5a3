// Command demo runs the example examples/singleton on real stores: on each,
// two processes that know nothing of it but ELECTOR_URL elect a leader, which is
// told to end, and the next one killed. It prints how long that took, and exits
// 1 if something was not as promised, or a store could not be had. Lateness is
// no failure: it is reported with how long the machine stood still meanwhile.
//
// Usage: go run ./cmd/demo [etcd] [zookeeper] [postgres] [dynamodb] [gcs] [consul] [s3]
//
// Without a name it shows all but consul and s3.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/elector-go/elector/examples/singleton/demo"
	"github.com/elector-go/elector/internal/proof/stores"

	// To ask each store for its limits.
	_ "github.com/elector-go/elector/backends/consul"
	_ "github.com/elector-go/elector/backends/dynamodb"
	_ "github.com/elector-go/elector/backends/etcd"
	_ "github.com/elector-go/elector/backends/gcs"
	_ "github.com/elector-go/elector/backends/kubernetes"
	_ "github.com/elector-go/elector/backends/postgres"
	_ "github.com/elector-go/elector/backends/s3"
	_ "github.com/elector-go/elector/backends/zookeeper"
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
	programs := map[string]string{} // by the backend that they import besides the example's
	var rows []row
	for _, kind := range kinds {
		backend := modules[kind]
		if programs[backend] == "" {
			programs[backend] = filepath.Join(dir, "singleton"+kind)
			if err := build(ctx, programs[backend], backend); err != nil {
				return err
			}
		}
		r := play(ctx, programs[backend], kind)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rows = append(rows, r)
	}
	fmt.Println()
	if !report(os.Stdout, rows) {
		return errors.New("not everything was as promised")
	}
	return nil
}

const module = "github.com/elector-go/elector"

// modules are the backends that are modules of their own. The example's module does not
// require them.
var modules = map[string]string{stores.S3: module + "/backends/s3"}

// build compiles the example as its users do: in the module that it belongs to,
// with the clients that this one requires. With another backend it compiles it in the
// module of this command, and adds the import.
func build(ctx context.Context, program, backend string) error {
	where, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return fmt.Errorf("looking for the folder of %s; work inside the repository: %w", module, err)
	}
	root := strings.TrimSpace(string(where))
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, "./examples/singleton")
	cmd.Dir = root
	if backend != "" {
		added, overlay := program+".go", program+".json"
		list, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, "examples", "singleton", "added.go"): added}})
		err = errors.Join(err, os.WriteFile(added, []byte("package main\n\nimport _ \""+backend+"\"\n"), 0o600), os.WriteFile(overlay, list, 0o600))
		if err != nil {
			return err
		}
		cmd = exec.CommandContext(ctx, "go", "build", "-overlay="+overlay, "-o", program, module+"/examples/singleton")
	}
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
