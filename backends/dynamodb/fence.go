package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/elector-go/elector/backends"
)

// The attributes that fence. No election has the key of a term item, because no
// name has a slash.
const (
	tokenAttribute = "elector_token"
	nonceAttribute = "elector_nonce"
	termSuffix     = "/term"
)

// A Tenure fences transactions with a lease: see Claim.
type Tenure struct {
	holding backends.Holding
	table   string
	key     map[string]types.AttributeValue
	nonce   string
}

// Claim writes, once in a tenure, the item ELECTION/term in the election's table,
// in one request. When it has returned, no transaction under an older Tenure
// commits any more. Claim before the first read of what the tenure changes.
//
// It returns the lease's error if that is over, ErrMisconfigured if its election
// is not on DynamoDB, ErrStale if a later acquisition has claimed, and the errors
// of Load.
func Claim(ctx context.Context, holding backends.Holding) (*Tenure, error) {
	a, b, err := acquisition(holding)
	if err != nil {
		return nil, err
	}
	key := map[string]types.AttributeValue{keyAttribute: text(a.Election + termSuffix)}
	item := maps.Clone(key)
	item[tokenAttribute], item[nonceAttribute] = number(a.Record.Token), text(a.Record.Attempt.Nonce)
	put := &dynamodb.PutItemInput{
		TableName:                &b.table,
		Item:                     item,
		ConditionExpression:      aws.String("attribute_not_exists(#key) OR #token < :token OR #nonce = :nonce"),
		ExpressionAttributeNames: map[string]string{"#key": keyAttribute, "#token": tokenAttribute, "#nonce": nonceAttribute},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":token": item[tokenAttribute], ":nonce": item[nonceAttribute],
		},
	}
	err = b.handle.Do(ctx, "claiming the term of election "+a.Election, func(ctx context.Context) error {
		_, err := b.client.PutItem(ctx, put, once)
		if code(err) == conditionFailed {
			return stale
		}
		return b.failed(ctx, err)
	})
	if err != nil {
		return nil, err
	}
	return &Tenure{holding, b.table, key, a.Record.Attempt.Nonce}, nil
}

const conditionFailed = "ConditionalCheckFailedException"

var stale = fmt.Errorf("%w: a later acquisition has claimed; nothing was written", backends.ErrStale)

// Check returns the condition that makes a transaction fail once a later
// acquisition has claimed. It returns the lease's error if that is over. The
// transaction must go to the region and account of the election's table.
func (t *Tenure) Check() (types.TransactWriteItem, error) {
	if _, err := t.holding.Acquisition(); err != nil {
		return types.TransactWriteItem{}, err
	}
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName:                 &t.table,
		Key:                       t.key,
		ConditionExpression:       aws.String("#nonce = :nonce"),
		ExpressionAttributeNames:  map[string]string{"#nonce": nonceAttribute},
		ExpressionAttributeValues: map[string]types.AttributeValue{":nonce": text(t.nonce)},
	}}, nil
}

// Write makes the items in one transaction with Check. It returns the errors of
// Check and of the client, and ErrStale if a later acquisition has claimed:
// nothing was written then, and the caller must stop.
func (t *Tenure) Write(ctx context.Context, client *dynamodb.Client, items ...types.TransactWriteItem) error {
	check, err := t.Check()
	if err != nil {
		return err
	}
	_, err = client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: slices.Concat([]types.TransactWriteItem{check}, items)})
	var cancelled *types.TransactionCanceledException
	if errors.As(err, &cancelled) && len(cancelled.CancellationReasons) > 0 && aws.ToString(cancelled.CancellationReasons[0].Code) == "ConditionalCheckFailed" {
		return fmt.Errorf("%w: %w", stale, err)
	}
	return err
}

// Put writes one item of the caller's, and keeps the lease's token with it, as the
// number elector_token: it fails with ErrStale if the item has a higher token. Put
// takes no Claim and no transaction, and fences this item alone. A leader that
// reads the item and writes what it computed from that must first Put what it has
// read: until then an older leader can write in between.
//
// Put changes the input: its item and its condition. It returns the lease's error
// if that is over, ErrMisconfigured if its election is not on DynamoDB, and the
// client's.
func Put(ctx context.Context, client *dynamodb.Client, holding backends.Holding, input *dynamodb.PutItemInput) (*dynamodb.PutItemOutput, error) {
	a, _, err := acquisition(holding)
	if err != nil {
		return nil, err
	}
	token := number(a.Record.Token)
	if input.ExpressionAttributeNames == nil {
		input.ExpressionAttributeNames = map[string]string{}
	}
	if input.ExpressionAttributeValues == nil {
		input.ExpressionAttributeValues = map[string]types.AttributeValue{}
	}
	const fence = "(attribute_not_exists(#elector_token) OR #elector_token <= :elector_token)"
	condition := fence
	if input.ConditionExpression != nil {
		condition += " AND (" + *input.ConditionExpression + ")"
	}
	input.Item[tokenAttribute] = token
	input.ConditionExpression = &condition
	input.ExpressionAttributeNames["#elector_token"] = tokenAttribute
	input.ExpressionAttributeValues[":elector_token"] = token
	input.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	output, err := client.PutItem(ctx, input)
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) && above(failed.Item[tokenAttribute], a.Record.Token) {
		return nil, fmt.Errorf("%w: the item has a higher token; nothing was written: %w", backends.ErrStale, err)
	}
	return output, err
}

// above reports whether an attribute is a higher token.
func above(attribute types.AttributeValue, token uint64) bool {
	n, ok := attribute.(*types.AttributeValueMemberN)
	if !ok {
		return false
	}
	highest, err := strconv.ParseUint(n.Value, 10, 64)
	return err == nil && highest > token
}

func number(n uint64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatUint(n, 10)}
}

func acquisition(holding backends.Holding) (backends.Acquisition, *Backend, error) {
	a, err := holding.Acquisition()
	if err != nil {
		return backends.Acquisition{}, nil, err
	}
	b, ok := backends.As[*Backend](a.Backend)
	if !ok {
		return backends.Acquisition{}, nil, fmt.Errorf("%w: election %s is not on DynamoDB, so DynamoDB cannot fence a write with its lease", backends.ErrMisconfigured, a.Election)
	}
	return a, b, nil
}
