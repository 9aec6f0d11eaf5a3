package stores

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/elector-go/elector/backends"
	_ "github.com/elector-go/elector/backends/dynamodb"
	"github.com/elector-go/elector/conformance"
)

// The suite runs on a table of the real service with
//
//	ELECTOR_TEST_DYNAMODB='dynamodb://TABLE?region=eu-central-1' go test -count=1 -timeout=60m -run 'TestDynamoDB$' .
//
// and the credentials that the AWS SDK finds. They need what the adapter's
// documentation lists under Permissions, and dynamodb:DeleteItem for the cases
// in which a record is deleted. It leaves its items in the table: their
// names are of this run alone, and the table is best made for it. No table is
// made or changed there, so the set-ups that need one run on a local server
// only.
func TestDynamoDB(t *testing.T) {
	s := dynamoStore(t)
	raw := openDynamo(t, s)
	h := conformance.Harness{
		Open:         opener(s.URL),
		OpenReadOnly: readOnlyOpener(s.URL),
		OpenFaulty:   faulty(s, s.URL),
		Slow:         true,
		MaxContent:   mostDynamo,
		Raw:          &conformance.Raw{Get: raw.get, Put: raw.put, Delete: raw.remove},
		Setups:       dynamoSetups(raw, s),
	}
	if s.server == nil {
		h.TTL = 5 * time.Second // it may be far away
	} else {
		open := h.Open
		h.Open = func(t testing.TB) backends.Backend { return hasten(t, open(t)) }
	}
	conform(t, DynamoDB, s.How, h)
}

// dynamoStore obtains a store. A server that the tests started takes any
// credentials, as long as there are some.
func dynamoStore(t *testing.T) *Store {
	s := obtain(t, DynamoDB)
	if s.server == nil {
		return s
	}
	for key, value := range map[string]string{"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull} {
		t.Setenv(key, value)
	}
	return s
}

// rawDynamo reaches a table behind the adapter's back.
type rawDynamo struct {
	client *dynamodb.Client
	table  string
}

func openDynamo(t *testing.T, s *Store) rawDynamo {
	t.Helper()
	u, err := url.Parse(s.URL)
	must(t, err)
	c, err := config.LoadDefaultConfig(t.Context(), config.WithRegion(u.Query().Get("region")),
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.DisableKeepAlives = true })))
	must(t, err)
	return rawDynamo{table: u.Host, client: dynamodb.NewFromConfig(c, func(o *dynamodb.Options) {
		if endpoint := u.Query().Get("endpoint"); endpoint != "" {
			o.BaseEndpoint = &endpoint
		}
	})}
}

func dynamoKey(name string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"election": &types.AttributeValueMemberS{Value: name}}
}

func (r rawDynamo) item(t testing.TB, name string) map[string]types.AttributeValue {
	t.Helper()
	answer, err := r.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &r.table, Key: dynamoKey(name), ConsistentRead: aws.Bool(true)})
	must(t, err)
	return answer.Item
}

func (r rawDynamo) putItem(t testing.TB, name string, attributes map[string]types.AttributeValue) {
	t.Helper()
	item := dynamoKey(name)
	maps.Copy(item, attributes)
	_, err := r.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &r.table, Item: item})
	must(t, err)
}

func (r rawDynamo) get(t testing.TB, name string) []byte {
	t.Helper()
	item := r.item(t, name)
	switch record := item["record"].(type) {
	case *types.AttributeValueMemberS:
		return []byte(record.Value)
	case *types.AttributeValueMemberB:
		return append([]byte{}, record.Value...)
	case nil:
		if item != nil {
			return []byte{}
		}
	default:
		t.Fatalf("a record of type %T", record)
	}
	return nil
}

// mostDynamo is what is left of an item's 400 KB.
const mostDynamo = 399 << 10

// put keeps what a string attribute cannot hold, bytes that are not UTF-8, as a
// binary one, and no bytes as an item without a record.
func (r rawDynamo) put(t testing.TB, name string, content []byte) {
	t.Helper()
	attributes := map[string]types.AttributeValue{"record": &types.AttributeValueMemberB{Value: content}}
	if len(content) == 0 {
		attributes = nil
	} else if utf8.Valid(content) {
		attributes["record"] = &types.AttributeValueMemberS{Value: string(content)}
	}
	r.putItem(t, name, attributes)
}

func (r rawDynamo) remove(t testing.TB, name string) {
	t.Helper()
	_, err := r.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &r.table, Key: dynamoKey(name)})
	must(t, err)
}

// Items that only this store can hold are as foreign as any other.
func TestDynamoDBForeignItems(t *testing.T) {
	s := dynamoStore(t)
	raw := openDynamo(t, s)
	b := opener(s.URL)(t)
	defer b.Close()
	record := backends.Record{Holder: "h", Token: 1, TTL: 15 * time.Second, RenewEvery: time.Second, Attempt: backends.Attempt{Nonce: "n", Sequence: 1}}
	run := fmt.Sprintf("foreign-%x-", time.Now().UnixNano())
	for i, attributes := range []map[string]types.AttributeValue{
		nil,
		{"other": &types.AttributeValueMemberS{Value: "x"}},
		{"record": &types.AttributeValueMemberN{Value: "5"}},
		{"record": &types.AttributeValueMemberBOOL{Value: true}},
		{"record": &types.AttributeValueMemberNULL{Value: true}},
		{"record": &types.AttributeValueMemberB{Value: []byte("{}")}},
		{"record": &types.AttributeValueMemberSS{Value: []string{"{}"}}},
		{"record": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"record": &types.AttributeValueMemberS{Value: "{}"}}}},
		{"record": &types.AttributeValueMemberS{Value: "{}"}, "other": &types.AttributeValueMemberN{Value: "1"}},
	} {
		name := fmt.Sprint(run, i)
		old, err := b.Swap(t.Context(), name, backends.Record{}, record)
		must(t, err)
		raw.putItem(t, name, attributes)
		before := raw.item(t, name)
		if r, err := b.Load(t.Context(), name); !errors.Is(err, backends.ErrForeignRecord) {
			t.Errorf("item %d: Load returns %+v and error %v", i, r, err)
		}
		for _, prev := range []backends.Record{{}, old} {
			next := record
			next.Attempt.Sequence++
			if r, err := b.Swap(t.Context(), name, prev, next); !errors.Is(err, backends.ErrConflict) {
				t.Errorf("item %d: Swap from %q returns %+v and error %v", i, prev.Version, r, err)
			}
		}
		if after := raw.item(t, name); !reflect.DeepEqual(before, after) {
			t.Errorf("item %d: %v became %v", i, before, after)
		}
	}
}

// dynamoSetups are servers and tables that do not serve.
func dynamoSetups(raw rawDynamo, s *Store) map[string]func(testing.TB) error {
	u, _ := url.Parse(s.URL)
	with := func(table string, change func(url.Values)) string {
		v, q := *u, u.Query()
		q.Del("create")
		change(q)
		v.Host, v.RawQuery = table, q.Encode()
		return v.String()
	}
	as := func(url.Values) {}
	setups := map[string]func(testing.TB) error{
		"no server": func(t testing.TB) error {
			return openError(t, with(raw.table, func(q url.Values) { q.Set("endpoint", "http://"+vacantAddress(t)) }))
		},
		"no such table": func(t testing.TB) error { return openError(t, with("elector-that-is-not-there", as)) },
		"a password in the URL": func(t testing.TB) error {
			return openError(t, Login{"id", "not-the-secret"}.In(s.URL))
		},
		"an unknown parameter": func(t testing.TB) error {
			return openError(t, with(raw.table, func(q url.Values) { q.Set("consistency", "eventual") }))
		},
	}
	if s.server == nil {
		return setups // the account is not the tests' own
	}
	for what, key := range map[string][]string{ // of names, kinds and types
		"a key of another name": {"name HASH S"},
		"a key of another type": {"election HASH N"},
		"a sort key":            {"election HASH S", "at RANGE S"},
	} {
		setups[what] = func(t testing.TB) error {
			table := "unfit-" + strings.ReplaceAll(what, " ", "-")
			input := &dynamodb.CreateTableInput{TableName: &table, BillingMode: types.BillingModePayPerRequest}
			for _, k := range key {
				part := strings.Fields(k)
				input.KeySchema = append(input.KeySchema, types.KeySchemaElement{AttributeName: &part[0], KeyType: types.KeyType(part[1])})
				input.AttributeDefinitions = append(input.AttributeDefinitions, types.AttributeDefinition{AttributeName: &part[0], AttributeType: types.ScalarAttributeType(part[2])})
			}
			_, err := raw.client.CreateTable(t.Context(), input)
			must(t, err)
			must(t, dynamodb.NewTableExistsWaiter(raw.client, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay, o.MaxDelay = 10*time.Millisecond, time.Second }).
				Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &table}, time.Minute))
			return openError(t, with(table, as))
		}
	}
	return setups
}

// Many processes that start at once make one table, and all of them can use it.
func TestDynamoDBCreate(t *testing.T) {
	t.Setenv(variables[DynamoDB], "") // do not make tables in a user's account
	s := dynamoStore(t)
	raw := openDynamo(t, s)
	created := strings.Replace(s.URL, "//"+raw.table+"?", "//created?", 1) + "&create=true"
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const many = 8
	opened, errs := make([]backends.Backend, many), make(chan error, many)
	for i := range many {
		go func() {
			b, err := backends.Open(ctx, created)
			opened[i] = b
			errs <- err
		}()
	}
	for range many {
		must(t, <-errs)
	}
	record := backends.Record{Holder: "h", Token: 1, TTL: 15 * time.Second, RenewEvery: time.Second, Attempt: backends.Attempt{Nonce: "n", Sequence: 1}}
	written, err := opened[0].Swap(ctx, "a", backends.Record{}, record)
	must(t, err)
	for _, b := range opened {
		if r, err := b.Load(ctx, "a"); err != nil || r != written {
			t.Errorf("got %+v and error %v, want %+v", r, err, written)
		}
		must(t, b.Close())
	}
	raw.table = "created"
	if !bytes.Equal(raw.get(t, "a"), []byte(written.Version)) {
		t.Error("the record is not in the table that was named")
	}
}
