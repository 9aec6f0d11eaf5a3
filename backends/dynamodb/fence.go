package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/awsclient"
	"github.com/elector-go/elector/internal/fencing"
)

// The attributes that fence. No election has the key of a term item, because no
// name has a slash.
const (
	tokenAttribute    = "elector_token"
	electionAttribute = "elector_election"
	nonceAttribute    = "elector_nonce"
	termSuffix        = "/term"
)

// The service's codes: of a request, and in the reasons of a transaction.
const (
	conditionFailed = "ConditionalCheckFailedException"
	checkFailed     = "ConditionalCheckFailed"
	conflicted      = "TransactionConflict"
)

// Put writes one item, and keeps the lease's token and election in its attributes
// elector_token and elector_election. It fails if the item has a higher token. All
// writers of the item must use Put, and none may delete it: its token would be
// forgotten. See Fencing in the package comment.
//
// The election may be in any store, and the client and the table may be any, except
// a table that several regions write without strong consistency. Put leaves the
// input as it is; the input's condition must hold too. Put sends one request, and
// repeats it as the client does. Its errors are:
//
//   - The lease's error if that is over. Nothing was sent.
//   - ErrStale if the item has a higher token: the worker must stop.
//   - ErrMisconfigured if the item has another election's token, or one that is no
//     number.
//   - [types.ConditionalCheckFailedException] if the input's own condition does
//     not hold, perhaps because of an earlier try whose answer was lost.
//   - Any other error of the client. Whether the item was written is unknown.
//
// An emulator that does not return the item for which a condition failed, such as
// dynalite, cannot tell ErrStale from the input's own condition: Put then returns
// the client's error if the input has one, and ErrStale otherwise.
func Put(ctx context.Context, client *dynamodb.Client, lease backends.Lease, input *dynamodb.PutItemInput) (*dynamodb.PutItemOutput, error) {
	a, err := lease.Acquisition()
	if err != nil {
		return nil, err
	}
	put := *input
	put.Item = with(input.Item, tokenAttribute, number(a.Record.Token))
	put.Item[electionAttribute] = text(a.Election)
	put.ExpressionAttributeNames, put.ExpressionAttributeValues = maps.Clone(input.ExpressionAttributeNames), maps.Clone(input.ExpressionAttributeValues)
	for _, attribute := range []string{tokenAttribute, electionAttribute} {
		name, value := "#"+attribute, ":"+attribute
		if put.ExpressionAttributeNames[name] != "" || put.ExpressionAttributeValues[value] != nil {
			return nil, fmt.Errorf("dynamodb: the input uses the placeholders %s or %s, which Put needs; rename them", name, value)
		}
		put.ExpressionAttributeNames = with(put.ExpressionAttributeNames, name, attribute)
		put.ExpressionAttributeValues = with(put.ExpressionAttributeValues, value, put.Item[attribute])
	}
	condition := "(attribute_not_exists(#elector_token) OR (#elector_election = :elector_election AND #elector_token <= :elector_token))"
	if input.ConditionExpression != nil {
		condition += " AND (" + *input.ConditionExpression + ")"
	}
	put.ConditionExpression = &condition
	put.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld

	output, err := client.PutItem(ctx, &put)
	var failed *types.ConditionalCheckFailedException
	if !errors.As(err, &failed) {
		return output, err
	}
	refusal := admit(failed.Item, a)
	if failed.Item == nil && input.ConditionExpression == nil {
		refusal = fmt.Errorf("%w: its token is higher than %d; the worker must stop", backends.ErrStale, a.Record.Token)
	}
	if refusal == nil {
		return nil, err
	}
	return nil, fmt.Errorf("writing an item of table %s under the lease of election %s: %w: %w", aws.ToString(input.TableName), a.Election, refusal, err)
}

// admit returns why an item must not be written under an acquisition, nil if it
// may.
func admit(item map[string]types.AttributeValue, a backends.Acquisition) error {
	fence := map[string]string{}
	if item[tokenAttribute] != nil {
		fence[tokenAttribute] = ""
	}
	if n, ok := item[tokenAttribute].(*types.AttributeValueMemberN); ok {
		fence[tokenAttribute] = n.Value
	}
	if s, ok := item[electionAttribute].(*types.AttributeValueMemberS); ok {
		fence[electionAttribute] = s.Value
	}
	return fencing.Admit(fence, tokenAttribute, electionAttribute, a)
}

// A Term fences transactions with a lease: see Claim. Many goroutines may call
// its methods.
type Term struct {
	lease   backends.Lease
	claimed backends.Acquisition
	table   string
	store   string
	turn    chan struct{} // has an element while Write is under way
}

// Claim begins a term: it writes the item ELECTION/term to the election's table.
// After it has returned, transactions under the Term of an earlier acquisition
// fail. So call Claim at the beginning of a lease, before the worker reads what it
// will change. Calling it again in the same lease is harmless.
//
// Claim sends one request, and repeats it as the client of the election's backend
// does. Its errors are the lease's if that is over; ErrMisconfigured if the
// election is not on DynamoDB; ErrStale if a later acquisition has claimed; and
// those of the backend's Load.
func Claim(ctx context.Context, lease backends.Lease) (*Term, error) {
	a, err := lease.Acquisition()
	if err != nil {
		return nil, err
	}
	store := a.Backend.Describe().Store
	b, ok := backends.As[*Backend](a.Backend)
	if !ok {
		return nil, fmt.Errorf("%w: election %s is on %s; its lease cannot fence a transaction of DynamoDB; use Put", backends.ErrMisconfigured, a.Election, store)
	}
	t := &Term{lease, a, b.table, store, make(chan struct{}, 1)}
	token, nonce := number(a.Record.Token), text(a.Record.Attempt.Nonce)
	put := &dynamodb.PutItemInput{
		TableName:                 &t.table,
		Item:                      with(with(t.key(), tokenAttribute, token), nonceAttribute, nonce),
		ConditionExpression:       aws.String("attribute_not_exists(#key) OR #token < :token OR #nonce = :nonce"),
		ExpressionAttributeNames:  map[string]string{"#key": keyAttribute, "#token": tokenAttribute, "#nonce": nonceAttribute},
		ExpressionAttributeValues: map[string]types.AttributeValue{":token": token, ":nonce": nonce},
	}
	stale := error(nil)
	err = b.base.Do(ctx, "claiming the term of election "+a.Election, func(ctx context.Context) error {
		_, err := b.client.PutItem(ctx, put, patiently)
		if awsclient.Code(err) == conditionFailed {
			stale = t.stale(err)
			return nil
		}
		return b.failed(ctx, err)
	})
	if err = errors.Join(err, stale); err != nil {
		return nil, err
	}
	return t, nil
}

// patiently repeats a request that met a transaction, of an earlier leader say.
func patiently(o *dynamodb.Options) {
	o.Retryer = retry.AddWithErrorCodes(o.Retryer, conflicted+"Exception")
}

func (t *Term) key() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{keyAttribute: text(t.claimed.Election + termSuffix)}
}

func (t *Term) stale(err error) error {
	return fmt.Errorf("writing under the lease of election %s on %s: %w: a later acquisition has claimed; nothing was written, and the worker must stop: %w", t.claimed.Election, t.store, backends.ErrStale, awsclient.FirstLine(err))
}

// Check returns a condition for a transaction of your own, which fails with
// ConditionalCheckFailed once a later acquisition has claimed. The transaction must
// go to the account and the region of the election's table. Check makes no request.
// It returns the lease's error if that is over.
func (t *Term) Check() (types.TransactWriteItem, error) {
	if _, err := t.lease.Acquisition(); err != nil {
		return types.TransactWriteItem{}, err
	}
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName:                 &t.table,
		Key:                       t.key(),
		ConditionExpression:       aws.String("#nonce = :nonce"),
		ExpressionAttributeNames:  map[string]string{"#nonce": nonceAttribute},
		ExpressionAttributeValues: map[string]types.AttributeValue{":nonce": text(t.claimed.Record.Attempt.Nonce)},
	}}, nil
}

// Write writes the items, 99 at most, in one transaction with Check. The reasons
// in its errors are in the order of the items. Writes of a Term wait for each
// other, because transactions that share an item, as all of these share the term,
// may conflict. Its errors are:
//
//   - The lease's error if that is over. Nothing was sent.
//   - ErrStale if a later acquisition has claimed. Nothing was written, and the
//     worker must stop.
//   - ErrUnavailable if the transaction met another one on one of its items.
//     Nothing was written; try again.
//   - [types.TransactionCanceledException] for any other reason. Nothing was
//     written.
//   - Any other error of the client. Whether the items were written is unknown.
//   - The cause of ctx if that ends while Write waits. Nothing was sent.
func (t *Term) Write(ctx context.Context, client *dynamodb.Client, items ...types.TransactWriteItem) error {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	check, err := t.Check()
	if err != nil {
		return err
	}
	_, err = client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: append(slices.Clip(items), check)})
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) {
		return err
	}
	reasons := cancelled.CancellationReasons
	reason := func(i int, code string) bool { return aws.ToString(reasons[i].Code) == code }
	for i := len(reasons) - 1; i >= 0; i-- {
		switch {
		case i == len(items) && reason(i, checkFailed):
			return t.stale(err)
		case reason(i, conflicted):
			return fmt.Errorf("writing under the lease of election %s on %s: %w: another transaction is writing one of the items, or a new leader claims; nothing was written; try again: %w", t.claimed.Election, t.store, backends.ErrUnavailable, err)
		}
	}
	return err
}

// with returns a copy of a map, which may be nil, with one more element.
func with[V any](m map[string]V, key string, value V) map[string]V {
	m = maps.Clone(m)
	if m == nil {
		m = map[string]V{}
	}
	m[key] = value
	return m
}

func number(n uint64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatUint(n, 10)}
}
