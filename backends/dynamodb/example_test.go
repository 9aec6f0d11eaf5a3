package dynamodb_test

import (
	"context"
	"fmt"
	"log"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	client "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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
	b, err := dynamodb.New(ctx, client.NewFromConfig(settings), &dynamodb.Options{Table: "elector"})
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

// A worker claims the term, reads what was sent last, and writes what it sends. A
// leader that was paused cannot write once a later one has claimed.
func ExampleClaim() {
	var db *client.Client // yours
	work := func(ctx context.Context, lease *elector.Lease) error {
		term, err := dynamodb.Claim(ctx, lease)
		if err != nil {
			return err
		}
		last, err := lastInvoice(ctx, db)
		if err != nil {
			return err
		}
		return term.Write(ctx, db, types.TransactWriteItem{Update: &types.Update{
			TableName:                 aws.String("billing"),
			Key:                       map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "last"}},
			UpdateExpression:          aws.String("SET invoice = :n"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":n": &types.AttributeValueMemberN{Value: fmt.Sprint(last + 1)}},
		}})
	}
	_ = work // for Elector.Run
}

// An item that is not computed from others needs no claim.
func ExamplePut() {
	var db *client.Client // yours
	work := func(ctx context.Context, lease *elector.Lease) error {
		_, err := dynamodb.Put(ctx, db, lease, &client.PutItemInput{
			TableName: aws.String("status"),
			Item:      map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "billing"}, "healthy": &types.AttributeValueMemberBOOL{Value: true}},
		})
		return err
	}
	_ = work // for Elector.Run
}

func lastInvoice(context.Context, *client.Client) (int, error) { return 0, nil }

func sendInvoices(context.Context, *elector.Lease) error { return nil }
