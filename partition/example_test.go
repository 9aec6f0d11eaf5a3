package partition_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	_ "github.com/elector-go/elector/backends/memory"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/partition"
)

// Each process of the service calls Join and Run. The group calls the worker of each
// partition in one of them.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	g, err := partition.Join(ctx, "memory://example", "orders", &partition.Options{
		Partitions: 3,
		Elector:    elector.Options{Logger: slog.New(slog.DiscardHandler)},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()

	working := make(chan int)
	go func() {
		for range 3 {
			fmt.Println("partition", <-working)
		}
		stop()
	}()
	err = g.Run(ctx, func(ctx context.Context, lease *partition.Lease) error {
		if err := lease.Check(); err != nil { // before each side effect
			return err
		}
		working <- lease.Partition() // with lease.Token()
		<-ctx.Done()
		return nil
	})
	fmt.Println(err)
	// Unordered output:
	// partition 0
	// partition 1
	// partition 2
	// <nil>
}

// Every process computes the same partition of a key.
func ExampleOf() {
	fmt.Println(partition.Of("customer-17", 64))
	// Output: 3
}
