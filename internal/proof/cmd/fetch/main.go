// Command fetch gets the real stores that tests run on, and Prometheus, as
// programs for this machine, into the repository's .stores folder or
// $ELECTOR_STORES_DIR. What is there already is left alone, and an interrupted
// fetch leaves nothing that looks complete. Servers that the machine has installed
// are used instead where any version will do.
//
// Usage: go run ./cmd/fetch [KIND] …, of etcd, postgres, zookeeper, dynamodb, gcs,
// mysql, redis, prometheus, nats, azureblob, consul, kubernetes and s3
//
// Without a name it gets all but the last four, whose servers take minutes to get.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/elector-go/elector/internal/diagnose"
	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// fetchers get one store each and return what they did. Those that take long say
// why, and are only fetched by name.
var fetchers = []struct {
	kind  string
	fetch func(context.Context) (string, error)
	long  string
}{
	{kind: "etcd", fetch: fetchEtcd},
	{kind: "postgres", fetch: fetchPostgres},
	{kind: "zookeeper", fetch: fetchZooKeeper},
	{kind: "dynamodb", fetch: fetchDynamoDB},
	{kind: "gcs", fetch: fetchGCS},
	{kind: "mysql", fetch: fetchMariaDB},
	{kind: "redis", fetch: fetchRedis},
	{kind: "prometheus", fetch: fetchPrometheus},
	{kind: "nats", fetch: fetchNATS},
	{kind: "azureblob", fetch: fetchAzureBlob, long: "its server comes from npm, with many packages"},
	{kind: "consul", fetch: fetchConsul, long: "its server takes eight minutes of a processor to build"},
	{kind: "kubernetes", fetch: fetchKubernetes, long: "its API server takes ten minutes of a processor to build"},
	{kind: "s3", fetch: fetchS3, long: "one of its servers takes two minutes of a processor to build"},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fetch:", err)
		os.Exit(1)
	}
}

// run fetches what wanted names, everything if it is empty, side by side. One
// store that fails does not keep the others from being fetched.
func run(ctx context.Context, wanted []string) error {
	known := make([]string, len(fetchers))
	for i, f := range fetchers {
		known[i] = f.kind
	}
	for _, kind := range wanted {
		if !slices.Contains(known, kind) {
			return fmt.Errorf("unknown store %q; known are %s", kind, strings.Join(known, ", "))
		}
	}
	dir, err := binaries.Folder()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	removeLeftovers(dir)
	var running sync.WaitGroup
	var mutex sync.Mutex
	var failed []string
	for _, f := range fetchers {
		if len(wanted) > 0 && !slices.Contains(wanted, f.kind) {
			continue
		}
		if len(wanted) == 0 && f.long != "" {
			fmt.Printf("%s: left out, because %s; make stores KINDS=%s gets it\n", f.kind, f.long, f.kind)
			continue
		}
		running.Go(func() {
			begun := time.Now()
			did, err := f.fetch(ctx)
			if err != nil {
				mutex.Lock()
				failed = append(failed, f.kind)
				mutex.Unlock()
				fmt.Fprintln(os.Stderr, diagnose.Failure(f.kind+": FAILED", err))
				return
			}
			fmt.Printf("%s: %s (%.1f s)\n", f.kind, did, time.Since(begun).Seconds())
		})
	}
	running.Wait()
	if len(failed) > 0 {
		slices.Sort(failed)
		return fmt.Errorf("no server to test with for: %s; why is above", strings.Join(failed, ", "))
	}
	return nil
}

// progress tells what takes a while.
func progress(format string, args ...any) { fmt.Printf(format+" …\n", args...) }

// partial begins the names of what is being fetched. It lies next to its final
// place, because a rename is atomic only within one file system.
const partial = "partial-"

// scratch makes a folder for what is being fetched, to be renamed from, and
// removed by the caller in any case.
func scratch() (string, error) {
	dir, err := binaries.Folder()
	if err != nil {
		return "", err
	}
	return os.MkdirTemp(dir, partial)
}

// replace moves what was fetched to its place. What an earlier fetch left there
// incomplete, a file deleted by hand say, would be in the way.
func replace(path, fetched string) error {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return os.Rename(fetched, path)
}

// removeLeftovers removes what fetches that were killed have left. Young ones
// may belong to a fetch that is running.
func removeLeftovers(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, partial+"*"))
	for _, path := range left {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > time.Hour {
			os.RemoveAll(path)
		}
	}
}

// command runs a program in dir and returns its standard output; an error has
// what it said.
func command(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	// Give it the chance to end its own children.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return "", fmt.Errorf("interrupted while running %s %s", name, strings.Join(args, " "))
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, strings.TrimSpace(said.String()))
	}
	return string(out), nil
}
