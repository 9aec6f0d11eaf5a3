package redis_test

import (
	"context"
	"log"

	goredis "github.com/redis/go-redis/v9"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/redis"
)

func Example() {
	// Importing the package is enough for its URLs.
	ctx := context.Background()
	e, err := elector.Open(ctx, "redis://app:secret@redis.example", "invoice-sender", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
}

// With your own client, for many elections.
func ExampleNew() {
	ctx := context.Background()
	client := goredis.NewClient(&goredis.Options{Addr: "redis.example:6379"})
	defer client.Close()
	b, err := redis.New(ctx, client, nil)
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

// A worker changes data in the election's database. However late the script arrives, it
// cannot undo what a later leader has written.
func ExampleCommit() {
	ctx := context.Background()
	e, err := elector.Open(ctx, "redis://app:secret@redis.example", "invoice-sender", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	err = e.Run(ctx, func(ctx context.Context, lease *elector.Lease) error {
		_, err := redis.Commit(ctx, lease, redis.Command{"INCRBY", "account:7", 500})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}
