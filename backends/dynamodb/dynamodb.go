package dynamodb

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/awsclient"
)

// The attributes of an item, both strings.
const (
	keyAttribute    = "election"
	recordAttribute = "record"
)

// minTTL leaves a request 150 ms, a sixth of the time that a holder trusts its
// lease.
const minTTL = time.Second

// A Backend keeps each record in one item. Open and New make it.
type Backend struct {
	base     *backends.Base
	client   *dynamodb.Client
	table    string
	region   string
	endpoint string // empty for the region's own
	idle     func() // closes idle connections
}

var (
	_ backends.BatchLoader = (*Backend)(nil)
	_ backends.Lister      = (*Backend)(nil)
	_ backends.Inspector   = (*Backend)(nil)
)

func newBackend(client *dynamodb.Client, table string, idle func()) *Backend {
	o := client.Options()
	b := &Backend{client: client, table: table, region: o.Region, idle: idle}
	store := "dynamodb://" + table + "?region=" + o.Region
	if o.BaseEndpoint != nil {
		if u, err := url.Parse(*o.BaseEndpoint); err == nil {
			b.endpoint = backends.Redact(u)
			store += "&endpoint=" + b.endpoint
		}
	}
	b.base = backends.NewBase(store, b.classify)
	return b
}

// Load implements [backends.Backend].
func (b *Backend) Load(ctx context.Context, name string) (backends.Record, error) {
	return b.base.Load(ctx, name, func(ctx context.Context) (backends.Record, error) { return b.load(ctx, name) })
}

func (b *Backend) load(ctx context.Context, name string) (backends.Record, error) {
	answer, err := b.client.GetItem(ctx, b.item(name), once)
	if err != nil || answer.Item == nil {
		return backends.Record{}, b.failed(ctx, err)
	}
	return decode(name, answer.Item)
}

// item is a consistent read of an item.
func (b *Backend) item(name string) *dynamodb.GetItemInput {
	return &dynamodb.GetItemInput{
		TableName:      &b.table,
		Key:            map[string]types.AttributeValue{keyAttribute: text(name)},
		ConsistentRead: aws.Bool(true),
	}
}

// decode returns the record in an item.
func decode(name string, item map[string]types.AttributeValue) (backends.Record, error) {
	content, ok := item[recordAttribute].(*types.AttributeValueMemberS)
	if !ok {
		return backends.Record{}, backends.Foreign("its item has no string %q", recordAttribute)
	}
	r, err := backends.Decode(name, []byte(content.Value))
	r.Version = backends.Version(content.Value)
	return r, err
}

// maxLoads is how many keys the service takes in a request.
const maxLoads = 100

// LoadMany implements [backends.BatchLoader]. It is one BatchGetItem.
func (b *Backend) LoadMany(ctx context.Context, names []string) []backends.Outcome {
	return b.base.LoadMany(ctx, names, func(ctx context.Context) ([]backends.Outcome, error) {
		found := map[string]backends.Outcome{} // at first none is
		var keys []map[string]types.AttributeValue
		for _, name := range names {
			if _, twice := found[name]; !twice { // which the service refuses
				found[name] = backends.Outcome{}
				keys = append(keys, map[string]types.AttributeValue{keyAttribute: text(name)})
			}
		}
		answer, err := b.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{b.table: {Keys: keys, ConsistentRead: aws.Bool(true)}},
		}, once)
		switch {
		case err != nil:
			return nil, b.failed(ctx, err)
		case len(answer.Responses)+len(answer.UnprocessedKeys) == 0:
			return nil, fmt.Errorf("%w: the answer has nothing about the table", backends.ErrUnavailable)
		}
		for _, items := range answer.Responses {
			for _, item := range items {
				if name := nameOf(item); name != "" {
					r, err := decode(name, item)
					found[name] = backends.Outcome{Record: r, Err: err}
				}
			}
		}
		for _, left := range answer.UnprocessedKeys { // whether they have items is not known
			for _, key := range left.Keys {
				name := nameOf(key)
				if name == "" {
					return nil, errUnprocessed
				}
				found[name] = backends.Outcome{Err: errUnprocessed}
			}
		}
		outcomes := make([]backends.Outcome, len(names))
		for i, name := range names {
			outcomes[i] = found[name]
		}
		return outcomes, nil
	})
}

// errUnprocessed is the error of a key that the service has left out.
var errUnprocessed = fmt.Errorf("%w: the service has left it out of its answer to a request for many records: it throttles (see the table's capacity, or bill it on demand), or the answer had more than 16 MB", backends.ErrUnavailable)

// nameOf returns the election's name in a key or an item.
func nameOf(item map[string]types.AttributeValue) string {
	name, _ := item[keyAttribute].(*types.AttributeValueMemberS)
	if name == nil {
		return ""
	}
	return name.Value
}

// List implements [backends.Lister]. It scans the table, a page of 1 MB at a time,
// and costs a read unit for each 4 kB in it.
func (b *Backend) List(ctx context.Context) ([]string, error) {
	return b.base.List(ctx, func(ctx context.Context) (names []string, _ error) {
		pages := dynamodb.NewScanPaginator(b.client, &dynamodb.ScanInput{
			TableName:                &b.table,
			ProjectionExpression:     aws.String("#e"),
			ExpressionAttributeNames: map[string]string{"#e": keyAttribute},
			ConsistentRead:           aws.Bool(true),
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx, once)
			if err != nil {
				return nil, b.failed(ctx, err)
			}
			for _, item := range page.Items {
				if name := nameOf(item); name != "" {
					names = append(names, name)
				}
			}
		}
		return names, nil
	})
}

// Swap implements [backends.Backend].
func (b *Backend) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	return b.base.Swap(ctx, name, func(ctx context.Context) (backends.Record, error) {
		content := string(backends.Encode(name, next))
		put := &dynamodb.PutItemInput{
			TableName:                &b.table,
			Item:                     map[string]types.AttributeValue{keyAttribute: text(name), recordAttribute: text(content)},
			ConditionExpression:      aws.String("attribute_not_exists(#a)"), // no item, whatever is in it
			ExpressionAttributeNames: map[string]string{"#a": keyAttribute},
		}
		if prev.Exists() {
			put.ConditionExpression = aws.String("#a = :prev")
			put.ExpressionAttributeNames["#a"] = recordAttribute
			put.ExpressionAttributeValues = map[string]types.AttributeValue{":prev": text(string(prev.Version))}
		}
		_, err := b.client.PutItem(ctx, put, once)
		if awsclient.Code(err) == conditionFailed {
			return backends.Record{}, backends.ErrConflict
		}
		next.Version = backends.Version(content)
		return next, b.failed(ctx, err)
	})
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// once makes a call send one request, whatever the client's policy is. A
// repeated conditional write can fail because its own first try succeeded.
func once(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

// Describe implements [backends.Backend].
func (b *Backend) Describe() backends.Description {
	return backends.Description{Store: b.base.Store(), MinTTL: minTTL, MaxLoads: maxLoads, ReadOnly: b.base.ReadOnly()}
}

// Close implements [backends.Backend]. It ends the calls under way and closes
// the idle connections, except those of a client that was given to New.
func (b *Backend) Close() error {
	return b.base.Close(func() error { b.idle(); return nil })
}
