package kubernetes_test

import (
	"context"
	"log"
	"net/http"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/kubernetes"
)

// In a pod, with its service account.
func Example() {
	ctx := context.Background()
	e, err := elector.Open(ctx, "kubernetes:///", "invoice-sender", nil)
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

// With the HTTP client of client-go's rest.HTTPClientFor, or another one that has
// the credentials.
func ExampleNew() {
	client := &http.Client{}
	b, err := kubernetes.New(context.Background(), client, &kubernetes.Options{BaseURL: "https://10.96.0.1:443", Namespace: "billing"})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	e, err := elector.New(b, "invoice-sender", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
}
