package dynamodb

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/elector-go/elector/backends"
)

// The attributes of an item, both strings.
const (
	keyAttribute    = "election"
	recordAttribute = "record"
)

// minTTL leaves a request 150 ms, a sixth of how long a holder trusts its lease.
const minTTL = time.Second

// A Backend keeps each record in one item. Open and New make it.
type Backend struct {
	client   *dynamodb.Client
	table    string
	region   string
	endpoint string          // empty for the region's own
	life     context.Context // ends with Close
	end      context.CancelFunc
	idle     func() // closes idle connections
}

var _ backends.Backend = (*Backend)(nil)

// Load implements [backends.Backend].
func (b *Backend) Load(ctx context.Context, name string) (backends.Record, error) {
	call, end, err := b.begin(ctx, name)
	if err != nil {
		return backends.Record{}, err
	}
	defer end()
	r, err := b.load(call, name)
	if err != nil {
		return backends.Record{}, b.explain(ctx, "reading election "+name, err)
	}
	return r, nil
}

func (b *Backend) load(ctx context.Context, name string) (backends.Record, error) {
	answer, err := b.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      &b.table,
		Key:            map[string]types.AttributeValue{keyAttribute: text(name)},
		ConsistentRead: aws.Bool(true),
	}, once)
	if err != nil || answer.Item == nil {
		return backends.Record{}, err
	}
	content, ok := answer.Item[recordAttribute].(*types.AttributeValueMemberS)
	if !ok {
		return backends.Record{}, backends.Foreign("its item has no string %q", recordAttribute)
	}
	r, err := backends.Decode(name, []byte(content.Value))
	if err != nil {
		return backends.Record{}, err
	}
	r.Version = backends.Version(content.Value)
	return r, nil
}

// Swap implements [backends.Backend].
func (b *Backend) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	call, end, err := b.begin(ctx, name)
	if err != nil {
		return backends.Record{}, err
	}
	defer end()
	content := string(backends.Encode(name, next))
	put := &dynamodb.PutItemInput{
		TableName:                &b.table,
		Item:                     map[string]types.AttributeValue{keyAttribute: text(name), recordAttribute: text(content)},
		ConditionExpression:      aws.String("attribute_not_exists(#a)"), // of no item, whatever is in it
		ExpressionAttributeNames: map[string]string{"#a": keyAttribute},
	}
	if prev.Exists() {
		put.ConditionExpression = aws.String("#a = :prev")
		put.ExpressionAttributeNames["#a"] = recordAttribute
		put.ExpressionAttributeValues = map[string]types.AttributeValue{":prev": text(string(prev.Version))}
	}
	_, err = b.client.PutItem(call, put, once)
	if code(err) == "ConditionalCheckFailedException" {
		return backends.Record{}, backends.ErrConflict
	}
	if err != nil {
		return backends.Record{}, b.explain(ctx, "writing election "+name, err)
	}
	next.Version = backends.Version(content)
	return next, nil
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// once makes one request of a call, whatever the client's policy is. A
// conditional write that is repeated can find its own first try, and call it
// somebody else's.
func once(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

// begin refuses what cannot be asked. The context it returns ends with the
// handle too.
func (b *Backend) begin(ctx context.Context, name string) (context.Context, func(), error) {
	if err := backends.CheckName(name); err != nil {
		return nil, nil, err
	}
	if b.life.Err() != nil {
		return nil, nil, errClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(b.life, cancel)
	return ctx, func() { stop(); cancel() }, nil
}

// Describe implements [backends.Backend].
func (b *Backend) Describe() backends.Description {
	return backends.Description{Store: b.store(), MinTTL: minTTL}
}

func (b *Backend) store() string {
	s := "dynamodb://" + b.table + "?region=" + b.region
	if b.endpoint != "" {
		s += "&endpoint=" + b.endpoint
	}
	return s
}

// Close implements [backends.Backend]. It ends the calls under way and closes
// the idle connections, unless they belong to a client that was given to New.
func (b *Backend) Close() error {
	b.end()
	b.idle()
	return nil
}
