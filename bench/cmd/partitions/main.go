// Command partitions counts what a group of 10 processes with 10,000 partitions costs each
// store, at rest and when members come, leave, crash and are replaced one after the other.
// Where the store takes several records in a request, a second group then makes some of
// the same changes with one record in each. It exits 1 if a figure is over its budget, or if
// a store could not be had.
//
// Usage: go run ./cmd/partitions [KIND] …, of etcd, postgres, dynamodb, kubernetes and s3
//
// Without a name it measures etcd, postgres and dynamodb. All processes are goroutines
// of one, each with a connection of its own. Kubernetes and s3 get 1,000 partitions.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "github.com/elector-go/elector/backends/dynamodb"
	_ "github.com/elector-go/elector/backends/etcd"
	_ "github.com/elector-go/elector/backends/kubernetes"
	_ "github.com/elector-go/elector/backends/postgres"
	_ "github.com/elector-go/elector/backends/s3"
	"github.com/elector-go/elector/internal/proof/stores"
)

const ttl = 15 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	slog.SetDefault(slog.New(slog.DiscardHandler)) // adapters report the tables that they make
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "partitions:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, wanted []string) (err error) {
	if len(wanted) == 0 {
		wanted = []string{"etcd", "postgres", "dynamodb"}
	}
	kinds, err := stores.Choose(wanted)
	if err != nil {
		return err
	}
	stores.AnyCredentials()
	var errs []error
	for _, kind := range kinds {
		if err := one(ctx, kind); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", kind, err))
		}
	}
	return errors.Join(errs...)
}

func one(ctx context.Context, kind string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	s, err := stores.StartDurable(ctx, kind)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	partitions := 10000
	if kind == "kubernetes" || kind == "s3" {
		partitions = 1000
	}
	fmt.Printf("\n%s, %s; %d partitions\n", s, s.Settings, partitions)
	return measure(ctx, s.URL, partitions)
}
