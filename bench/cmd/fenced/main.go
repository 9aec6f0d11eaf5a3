// Command fenced prints what a guarded write costs on each store, beside a plain one
// of the same content: requests, counted on the wire, and medians of writes that take
// turns.
//
// Usage: go run ./cmd/fenced [KIND] …, of etcd, zookeeper, postgres, dynamodb, gcs,
// azureblob, consul, mysql, nats, redis and s3
//
// Without a name it measures all but consul and s3.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	_ "github.com/elector-go/elector/backends/consul"
	_ "github.com/elector-go/elector/backends/dynamodb"
	_ "github.com/elector-go/elector/backends/etcd"
	_ "github.com/elector-go/elector/backends/gcs"
	_ "github.com/elector-go/elector/backends/mysql"
	_ "github.com/elector-go/elector/backends/nats"
	_ "github.com/elector-go/elector/backends/postgres"
	_ "github.com/elector-go/elector/backends/redis"
	_ "github.com/elector-go/elector/backends/s3"
	_ "github.com/elector-go/elector/backends/zookeeper"
	"github.com/elector-go/elector/bench/fenced"
	"github.com/elector-go/elector/internal/proof/stores"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	slog.SetDefault(slog.New(slog.DiscardHandler)) // adapters report the tables that they make
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fenced:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, wanted []string) error {
	kinds, err := stores.Choose(wanted)
	if err != nil {
		return err
	}
	stores.AnyCredentials()
	in, err := fenced.InProcess(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("Fence.Do, around nothing: %v\n\nplain → guarded write: requests, medians in pairs that take turns, and their ratio\n", in)
	for _, kind := range kinds {
		if e := one(ctx, kind); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", kind, e))
		}
	}
	return err
}

func one(ctx context.Context, kind string) (err error) {
	s, err := stores.StartDurable(ctx, kind)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	fmt.Printf("\n%s: %s\n", kind, s.Settings)
	if kind == stores.DynamoDB && s.PID != 0 {
		fmt.Println("dynalite has no transactions: those of Term.Write run on an emulator before it, whose times show little")
	}
	results, err := fenced.Measure(ctx, s)
	for _, r := range results {
		fmt.Println(r)
	}
	return err
}
