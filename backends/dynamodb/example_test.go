package dynamodb_test

import (
	"context"
	"log"

	"github.com/aws/aws-sdk-go-v2/config"
	client "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/dynamodb"
)

// A service with nothing but a URL imports the package for its scheme. The
// credentials are those that the AWS SDK finds.
func Example() {
	ctx := context.Background()
	e, err := elector.Open(ctx, "dynamodb://elector?region=eu-central-1", "invoice-sender", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	err = e.Run(ctx, func(ctx context.Context, lease *elector.Lease) error {
		return sendInvoices(ctx, lease)
	})
	log.Print(err)
}

// A service with a client of its own shares it among many elections.
func ExampleNew() {
	ctx := context.Background()
	settings, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	b, err := dynamodb.New(ctx, client.NewFromConfig(settings), "elector", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	for _, name := range []string{"invoice-sender", "report-mailer"} {
		e, err := elector.New(b, name, nil)
		if err != nil {
			log.Fatal(err)
		}
		defer e.Close()
	}
}

func sendInvoices(context.Context, *elector.Lease) error { return nil }
