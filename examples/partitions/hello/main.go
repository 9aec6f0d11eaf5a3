package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "github.com/elector-go/elector/backends/file" // or etcd, postgres, …
	"github.com/elector-go/elector/partition"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	g, err := partition.Join(ctx, os.Getenv("ELECTOR_URL"), "orders", &partition.Options{Partitions: 8})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	log.Println(g.Run(ctx, func(ctx context.Context, lease *partition.Lease) error { // for each partition
		for ; ctx.Err() == nil && lease.Check() == nil; time.Sleep(time.Second) {
			log.Println("works on", lease) // and sends lease.Token() with each write
		}
		return nil
	}))
}
