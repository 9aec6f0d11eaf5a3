package s3_test

import (
	"context"
	"errors"
	"log"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/s3"
)

// By URL, with the credentials that the AWS SDK finds.
func Example() {
	ctx := context.Background()
	e, err := elector.Open(ctx, "s3://my-bucket/elections?region=eu-central-1", "invoice-sender", nil)
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
	c, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	b, err := s3.New(ctx, awss3.NewFromConfig(c), &s3.Options{Bucket: "my-bucket", Prefix: "elections/"})
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
	var client *awss3.Client // yours
	work := func(ctx context.Context, lease *elector.Lease) error {
		content, err := s3.Claim(ctx, client, "my-bucket", "report.csv", lease)
		if errors.As(err, new(*types.NoSuchKey)) {
			err = nil
		}
		if err != nil {
			return err
		}
		content = append(content, "2041,paid\n"...)
		return s3.Write(ctx, client, "my-bucket", "report.csv", lease, content, func(in *awss3.PutObjectInput) {
			in.ContentType = aws.String("text/csv")
		})
	}
	_ = work // for Elector.Run
}
