package gcs_test

import (
	"context"
	"log"

	"cloud.google.com/go/storage"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/gcs"
)

// By URL, with the credentials of the machine.
func Example() {
	ctx := context.Background()
	e, err := elector.Open(ctx, "gs://my-bucket/elections", "invoice-sender", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	err = e.Run(ctx, func(ctx context.Context, lease *elector.Lease) error {
		<-ctx.Done() // work here, with lease.Check before each side effect
		return ctx.Err()
	})
	log.Print(err)
}

// With your own client, for many elections.
func ExampleNew() {
	ctx := context.Background()
	client, err := storage.NewClient(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	b := gcs.New(client, "my-bucket", "elections/")
	defer b.Close()
	for _, name := range []string{"invoice-sender", "report-writer"} {
		e, err := elector.New(b, name, nil)
		if err != nil {
			log.Fatal(err)
		}
		defer e.Close()
	}
}
