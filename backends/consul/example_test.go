package consul_test

import (
	"context"
	"log"
	"net/http"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/consul"
)

func Example() {
	// Importing the package is enough for its URLs.
	ctx := context.Background()
	e, err := elector.Open(ctx, "consul://127.0.0.1:8500/services/elector", "invoice-sender", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
}

// A worker keeps a mark of what it has done in Consul. However late its write
// arrives, it cannot undo that of a later leader.
func ExampleCommit() {
	b, err := consul.New(context.Background(), &http.Client{}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	e, err := elector.New(b, "invoice-sender", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	err = e.Run(context.Background(), func(ctx context.Context, lease *elector.Lease) error {
		_, err := consul.Commit(ctx, lease, consul.Operation{Verb: "set", Key: "invoices/last", Value: []byte("2041")})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}
