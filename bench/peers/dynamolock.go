package peers

import (
	"context"
	"errors"
	"net/url"
	"sync/atomic"
	"time"

	"cirello.io/dynamolock/v2"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/elector-go/elector/internal/proof/stores"
)

var dynamodbs = []Library{
	electorOn(stores.DynamoDB),
	{
		Name:     "dynamolock",
		Module:   "cirello.io/dynamolock/v2",
		Store:    stores.DynamoDB,
		Belief:   "Lock.IsExpired says false",
		Settings: "lease duration is the TTL, a heartbeat every quarter of it, as the defaults 20 and 5 s; opening makes the table if it is missing, which New does not",
		// Each heartbeat is given the time until the next one.
		Slowest: func(ttl time.Duration) time.Duration { return ttl / 4 },
		Open:    openDynamoLock,
	},
}

type dynamoCandidate struct {
	client *dynamolock.Client
	name   string
	life   context.Context
	end    context.CancelFunc
	lock   atomic.Pointer[dynamolock.Lock]
}

func openDynamoLock(ctx context.Context, c Config) (Candidate, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, err
	}
	settings, err := config.LoadDefaultConfig(ctx, config.WithRegion(u.Query().Get("region")))
	if err != nil {
		return nil, err
	}
	db := dynamodb.NewFromConfig(settings, func(o *dynamodb.Options) {
		if endpoint := u.Query().Get("endpoint"); endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
		}
	})
	client, err := dynamolock.New(db, c.Name,
		dynamolock.WithLeaseDuration(c.TTL),
		dynamolock.WithHeartbeatPeriod(c.TTL/4),
		dynamolock.WithOwnerName(c.ID),
	)
	if err != nil {
		return nil, err
	}
	_, err = client.CreateTableWithContext(ctx, c.Name)
	if there := (*types.ResourceInUseException)(nil); err != nil && !errors.As(err, &there) {
		return nil, err
	}
	quick := func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay, o.MaxDelay = 20*time.Millisecond, time.Second }
	if err := dynamodb.NewTableExistsWaiter(db, quick).Wait(ctx, &dynamodb.DescribeTableInput{TableName: &c.Name}, time.Minute); err != nil {
		return nil, err
	}
	d := &dynamoCandidate{client: client, name: c.Name}
	d.life, d.end = context.WithCancel(context.Background())
	return d, nil
}

func (d *dynamoCandidate) Campaign(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.life, cancel)()
	l, err := d.client.AcquireLockWithContext(ctx, d.name, dynamolock.WithAdditionalTimeToWaitForLock(24*time.Hour))
	d.lock.Store(l)
	return err
}

// Leads blocks while a heartbeat is under way.
func (d *dynamoCandidate) Leads() bool {
	l := d.lock.Load()
	return l != nil && !l.IsExpired()
}

func (d *dynamoCandidate) Renewal() []byte { return []byte(d.name) }

func (d *dynamoCandidate) Resign(ctx context.Context) error {
	_, err := d.client.ReleaseLockWithContext(ctx, d.lock.Swap(nil))
	return err
}

// Close ends a campaign first: the library's own Close waits for it. The SDK
// keeps its idle connections for 90 s more.
func (d *dynamoCandidate) Close() error {
	d.end()
	ctx, cancel := context.WithTimeout(context.Background(), closingTime)
	defer cancel()
	return d.client.CloseWithContext(ctx)
}
