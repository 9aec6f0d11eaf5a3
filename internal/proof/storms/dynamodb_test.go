package storms

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/logging"

	"github.com/elector-go/elector/backends"
	fence "github.com/elector-go/elector/backends/dynamodb"
	"github.com/elector-go/elector/internal/proof/stores"
	"github.com/elector-go/elector/internal/proof/transactor"
)

// The storms run on a table of the real service if ELECTOR_TEST_DYNAMODB names
// one, with the permissions that the adapter's documentation lists. Otherwise they
// run on dynalite, with an emulator of transactions before it.
func TestDynamoDB(t *testing.T) {
	stores.AnyCredentials()
	s := start(t, stores.DynamoDB)
	address := s.Address
	if os.Getenv("ELECTOR_TEST_DYNAMODB") == "" {
		x := transactor.Start(s.Address)
		t.Cleanup(x.Stop)
		address = x.Address()
	}
	d := openDynamo(t, s.Through(address))

	pass(t, d.storm("put", func(item string) Storm {
		h := &history{dynamo: d, item: item, before: map[int64]entry{}}
		return Storm{Write: h.put, Acquired: h.acquired, Order: h.order}
	}))
	caught(t, d.storm("read-then-put", func(item string) Storm {
		h := &history{dynamo: d, item: item, before: map[int64]entry{}}
		return Storm{Write: h.readThenPut, Acquired: h.acquired}
	}), late)
	pass(t, d.storm("transaction", func(item string) Storm {
		l := &list{dynamo: d, item: item, terms: map[uint64]*fence.Term{}}
		return Storm{Write: l.write, Acquired: l.acquired, Order: l.order, Takeovers: max(*takeovers/5, 2)} // claims wait for transactions
	}))
	caught(t, d.storm("record-checked", func(item string) Storm {
		l := &list{dynamo: d, item: item}
		return Storm{Write: l.checkRecord}
	}), renewalsFailed)
}

// A dynamo is the table of the elections, which has the items that are written too.
type dynamo struct {
	client  *dynamodb.Client
	table   string
	handles []backends.Backend
	run     string
}

func openDynamo(t *testing.T, rawURL string) *dynamo {
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.LoadDefaultConfig(t.Context(), config.WithLogger(logging.Nop{}), config.WithRegion(u.Query().Get("region")),
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.DisableKeepAlives = true })))
	if err != nil {
		t.Fatal(err)
	}
	d := &dynamo{table: u.Host, run: fmt.Sprintf("storm-%x-", time.Now().UnixNano()), client: dynamodb.NewFromConfig(c, func(o *dynamodb.Options) {
		if endpoint := u.Query().Get("endpoint"); endpoint != "" {
			o.BaseEndpoint = &endpoint
		}
	})}
	for range 3 {
		b, err := backends.Open(t.Context(), rawURL)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		d.handles = append(d.handles, b)
	}
	return d
}

// storm completes a storm on an item of its own.
func (d *dynamo) storm(name string, of func(item string) Storm) Storm {
	s := of(d.run + name + "/data")
	s.Handles, s.Election, s.Every, s.Pause, s.Seed = d.handles, d.run+name, 120*time.Millisecond, 120*time.Millisecond, 1
	return s
}

func (d *dynamo) read(ctx context.Context, item string) (map[string]types.AttributeValue, error) {
	answer, err := d.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &d.table, Key: dynamoKey(item), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	return answer.Item, nil
}

func dynamoKey(item string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"election": dynamoText(item)}
}

func dynamoText(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func dynamoNumber[N uint64 | int64](n N) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(n)}
}

func dynamoInt(v types.AttributeValue) int64 {
	n, _ := v.(*types.AttributeValueMemberN)
	if n == nil {
		return 0
	}
	i, _ := strconv.ParseInt(n.Value, 10, 64)
	return i
}

// A history is that of an item: each Put returns the number of the write that it
// has replaced. Acquisitions have negative numbers.
type history struct {
	*dynamo
	item   string
	mutex  sync.Mutex
	before map[int64]entry // by number of a write
}

type entry struct {
	token  uint64
	before int64
}

func (h *history) input(number int64) *dynamodb.PutItemInput {
	item := dynamoKey(h.item)
	item["number"] = dynamoNumber(number)
	return &dynamodb.PutItemInput{TableName: &h.table, Item: item, ReturnValues: types.ReturnValueAllOld}
}

func (h *history) fenced(ctx context.Context, lease backends.Lease, token uint64, number int64) error {
	answer, err := fence.Put(ctx, h.client, lease, h.input(number))
	if err != nil {
		return err
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.before[number] = entry{token, dynamoInt(answer.Attributes["number"])}
	return nil
}

func (h *history) acquired(ctx context.Context, lease backends.Lease) error {
	a, err := lease.Acquisition()
	if err != nil {
		return err
	}
	return h.fenced(ctx, lease, a.Record.Token, -int64(a.Record.Token))
}

func (h *history) put(ctx context.Context, a *Attempt) error {
	a.Pause()
	a.Send()
	return h.fenced(ctx, a, a.Token, int64(a.Number))
}

// readThenPut is a broken fence.
func (h *history) readThenPut(ctx context.Context, a *Attempt) error {
	item, err := h.read(ctx, h.item)
	if err != nil {
		return err
	}
	if dynamoInt(item["elector_token"]) > int64(a.Token) {
		return backends.ErrStale
	}
	a.Pause()
	a.Send()
	input := h.input(int64(a.Number))
	input.Item["elector_token"], input.Item["elector_election"] = dynamoNumber(a.Token), item["elector_election"]
	_, err = h.client.PutItem(ctx, input)
	return err
}

func (h *history) order(context.Context) (acquisitions, writes []Mark, err error) {
	after := map[int64]int64{}
	for number, e := range h.before {
		after[e.before] = number
	}
	number, position := int64(0), int64(0)
	for after[number] != 0 {
		number, position = after[number], position+1
		mark := Mark{h.before[number].token, position}
		if number < 0 {
			acquisitions = append(acquisitions, mark)
		} else {
			writes = append(writes, mark)
		}
	}
	return acquisitions, writes, nil
}

// A list is an item to which each write appends its token, and each acquisition the
// token below 0.
type list struct {
	*dynamo
	item  string
	mutex sync.Mutex
	terms map[uint64]*fence.Term
}

func (l *list) append(token int64) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &l.table, Key: dynamoKey(l.item),
		UpdateExpression:         aws.String("SET #tokens = list_append(if_not_exists(#tokens, :none), :token)"),
		ExpressionAttributeNames: map[string]string{"#tokens": "tokens"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":none": &types.AttributeValueMemberL{}, ":token": &types.AttributeValueMemberL{Value: []types.AttributeValue{dynamoNumber(token)}},
		},
	}}
}

// met repeats what met another transaction.
func met(ctx context.Context, try func() error) error {
	for {
		if err := try(); !errors.Is(err, backends.ErrUnavailable) || ctx.Err() != nil {
			return err
		}
	}
}

func (l *list) acquired(ctx context.Context, lease backends.Lease) error {
	a, err := lease.Acquisition()
	if err != nil {
		return err
	}
	var term *fence.Term
	if err := met(ctx, func() error { term, err = fence.Claim(ctx, lease); return err }); err != nil {
		return err
	}
	l.mutex.Lock()
	l.terms[a.Record.Token] = term
	l.mutex.Unlock()
	return met(ctx, func() error { return term.Write(ctx, l.client, l.append(-int64(a.Record.Token))) })
}

func (l *list) write(ctx context.Context, a *Attempt) error {
	l.mutex.Lock()
	term := l.terms[a.Token]
	l.mutex.Unlock()
	return met(ctx, func() error {
		a.Pause()
		a.Send()
		return term.Write(ctx, l.client, l.append(int64(a.Token)))
	})
}

// checkRecord is a broken guard: a transaction that checks the record itself meets
// its renewals.
func (l *list) checkRecord(ctx context.Context, a *Attempt) error {
	acquisition, err := a.Acquisition()
	if err != nil {
		return err
	}
	check := types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &l.table, Key: dynamoKey(acquisition.Election),
		ConditionExpression:       aws.String("begins_with(#record, :stem)"),
		ExpressionAttributeNames:  map[string]string{"#record": "record"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":stem": dynamoText(backends.RecordPrefix(acquisition.Election, acquisition.Record))},
	}}
	a.Pause()
	a.Send()
	_, err = l.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{l.append(int64(a.Token)), check}})
	if errors.As(err, new(*types.TransactionCanceledException)) {
		return backends.ErrStale // or met another transaction: only the renewals are judged
	}
	return err
}

func (l *list) order(ctx context.Context) (acquisitions, writes []Mark, err error) {
	item, err := l.read(ctx, l.item)
	if err != nil {
		return nil, nil, err
	}
	tokens, _ := item["tokens"].(*types.AttributeValueMemberL)
	if tokens == nil {
		return nil, nil, errors.New("the item has no list")
	}
	for i, v := range tokens.Value {
		if token := dynamoInt(v); token < 0 {
			acquisitions = append(acquisitions, Mark{uint64(-token), int64(i)})
		} else {
			writes = append(writes, Mark{uint64(token), int64(i)})
		}
	}
	return acquisitions, writes, nil
}
