package gcs_test

import (
	"context"
	"errors"
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
	b, err := gcs.New(ctx, client, &gcs.Options{Bucket: "my-bucket", Prefix: "elections/"})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	for _, name := range []string{"invoice-sender", "report-writer"} {
		e, err := elector.New(b, name, nil)
		if err != nil {
			log.Fatal(err)
		}
		defer e.Close()
	}
}

// A worker adds to an object that it reads. A leader that was paused cannot write it
// once a later one has claimed it.
func ExampleClaim() {
	var bucket *storage.BucketHandle // yours
	work := func(ctx context.Context, lease *elector.Lease) error {
		object := bucket.Object("report.csv")
		content, err := gcs.Claim(ctx, object, lease)
		if errors.Is(err, storage.ErrObjectNotExist) {
			err = nil
		}
		if err != nil {
			return err
		}
		content = append(content, "2041,paid\n"...)
		return gcs.Write(ctx, object, lease, content, func(w *storage.Writer) { w.ContentType = "text/csv" })
	}
	_ = work // for Elector.Run
}
