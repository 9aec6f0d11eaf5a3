package nats_test

import (
	"context"
	"log"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/nats"
)

func Example() {
	// Importing the package is enough for its URLs.
	ctx := context.Background()
	e, err := elector.Open(ctx, "nats://127.0.0.1:4222/elections", "invoice-sender", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
}

// A worker keeps a mark of what it has done in the bucket. However late its write
// arrives, it cannot undo that of a later leader.
func ExamplePut() {
	e, err := elector.Open(context.Background(), "nats://127.0.0.1:4222/elections", "invoice-sender", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	err = e.Run(context.Background(), func(ctx context.Context, lease *elector.Lease) error {
		_, err := nats.Put(ctx, lease, "invoices.last", []byte("2041"))
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}
