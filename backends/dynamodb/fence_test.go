package dynamodb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

// A lease is one that a paused process believes in, or one that is over.
type lease struct {
	backend backends.Backend
	token   uint64
	over    error
}

func (l lease) Acquisition() (backends.Acquisition, error) {
	r := record
	r.Token = l.token
	return backends.Acquisition{Backend: l.backend, Election: "a", Record: r}, l.over
}

var errEnded = errors.New("the lease is over")

// cancels is the answer to a transaction with reasons.
func cancels(reasons ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(400)
		fmt.Fprintf(w, `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","CancellationReasons":[{"Code":"%s"}]}`, strings.Join(reasons, `"},{"Code":"`))
	}
}

func TestPut(t *testing.T) {
	f := newFake(t)
	client := f.open(t).(*Backend).client
	input := &dynamodb.PutItemInput{
		TableName:                 aws.String("data"),
		Item:                      map[string]types.AttributeValue{"id": text("x"), tokenAttribute: number(3)}, // as it was read
		ConditionExpression:       aws.String("#n = :n OR #n = :n"),
		ExpressionAttributeNames:  map[string]string{"#n": "n"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":n": number(1)},
	}
	if _, err := Put(t.Context(), client, lease{nil, 7, nil}, input); err != nil {
		t.Fatal(err)
	}
	type m = map[string]any
	var sent m
	if err := json.Unmarshal([]byte(f.bodies("PutItem")[0]), &sent); err != nil {
		t.Fatal(err)
	}
	want := m{"TableName": "data", "Item": m{"id": m{"S": "x"}, "elector_token": m{"N": "7"}, "elector_election": m{"S": "a"}},
		"ConditionExpression":                 "(attribute_not_exists(#elector_token) OR (#elector_election = :elector_election AND #elector_token <= :elector_token)) AND (#n = :n OR #n = :n)",
		"ExpressionAttributeNames":            m{"#n": "n", "#elector_token": "elector_token", "#elector_election": "elector_election"},
		"ExpressionAttributeValues":           m{":n": m{"N": "1"}, ":elector_token": m{"N": "7"}, ":elector_election": m{"S": "a"}},
		"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
	if !reflect.DeepEqual(sent, want) {
		t.Errorf("sent %v, want %v", sent, want)
	}
	if len(input.Item) != 2 || len(input.ExpressionAttributeNames) != 1 || len(input.ExpressionAttributeValues) != 1 || *input.ConditionExpression != "#n = :n OR #n = :n" || input.ReturnValuesOnConditionCheckFailure != "" {
		t.Errorf("Put has changed its input: %+v", input)
	}

	// Nothing is sent for these.
	if _, err := Put(t.Context(), client, lease{nil, 7, errEnded}, input); !errors.Is(err, errEnded) {
		t.Errorf("a lease that is over: got %v", err)
	}
	input.ExpressionAttributeNames["#elector_token"] = "mine"
	if _, err := Put(t.Context(), client, lease{nil, 7, nil}, input); err == nil || !strings.Contains(err.Error(), "#elector_token") {
		t.Errorf("a placeholder that Put needs: got %v", err)
	}
	if n := len(f.bodies("PutItem")); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

// A condition that fails is the fence's or the caller's own.
func TestPutRefused(t *testing.T) {
	own := errors.New("the client's error")
	for name, c := range map[string]struct {
		item string
		own  bool // whether the input has a condition
		want error
	}{
		"a higher token":             {`"elector_token":{"N":"8"},"elector_election":{"S":"a"}`, false, backends.ErrStale},
		"a higher token, two guards": {`"elector_token":{"N":"10"},"elector_election":{"S":"a"}`, true, backends.ErrStale},
		"the same token":             {`"elector_token":{"N":"7"},"elector_election":{"S":"a"}`, true, own},
		"a lower token":              {`"elector_token":{"N":"6"},"elector_election":{"S":"a"}`, true, own},
		"no token":                   {`"id":{"S":"x"}`, true, own},
		"another election":           {`"elector_token":{"N":"6"},"elector_election":{"S":"b"}`, false, backends.ErrMisconfigured},
		"no election":                {`"elector_token":{"N":"6"}`, false, backends.ErrMisconfigured},
		"a token that is a text":     {`"elector_token":{"S":"6"},"elector_election":{"S":"a"}`, false, backends.ErrMisconfigured},
		"a token with a fraction":    {`"elector_token":{"N":"6.5"},"elector_election":{"S":"a"}`, true, backends.ErrMisconfigured},
		"an emulator's answer":       {``, false, backends.ErrStale},
		"no item":                    {``, true, own},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			client := f.open(t).(*Backend).client
			f.on("PutItem", func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(400)
				item := ""
				if c.item != "" {
					item = `,"Item":{` + c.item + `}`
				}
				fmt.Fprintf(w, `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"The conditional request failed"%s}`, item)
			})
			input := &dynamodb.PutItemInput{TableName: aws.String("data"), Item: map[string]types.AttributeValue{"id": text("x")}}
			if c.own {
				input.ConditionExpression = aws.String("attribute_exists(id)")
			}
			_, err := Put(t.Context(), client, lease{nil, 7, nil}, input)
			refused := errors.Is(err, backends.ErrStale) || errors.Is(err, backends.ErrMisconfigured)
			if !errors.As(err, new(*types.ConditionalCheckFailedException)) || refused != (c.want != own) || refused && !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestTerm(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	client := b.(*Backend).client
	term, err := Claim(t.Context(), lease{b, 7, nil})
	if err != nil {
		t.Fatal(err)
	}
	type m = map[string]any
	key, nonce := m{"election": m{"S": "a/term"}}, m{":nonce": m{"S": "n"}}
	is := func(t *testing.T, operation string, want m) {
		t.Helper()
		bodies, got := f.bodies(operation), m{}
		if err := json.Unmarshal([]byte(bodies[len(bodies)-1]), &got); err != nil {
			t.Fatal(err)
		}
		delete(got, "ClientRequestToken")
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: sent %v, want %v", operation, got, want)
		}
	}
	t.Run("claim", func(t *testing.T) {
		is(t, "PutItem", m{"TableName": "elector", "Item": m{"election": key["election"], "elector_token": m{"N": "7"}, "elector_nonce": nonce[":nonce"]},
			"ConditionExpression":       "attribute_not_exists(#key) OR #token < :token OR #nonce = :nonce",
			"ExpressionAttributeNames":  m{"#key": "election", "#token": "elector_token", "#nonce": "elector_nonce"},
			"ExpressionAttributeValues": m{":token": m{"N": "7"}, ":nonce": nonce[":nonce"]}})
	})

	mine := types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String("data"), Key: map[string]types.AttributeValue{"id": text("x")}}}
	f.on("TransactWriteItems", says(`{}`))
	if err := term.Write(t.Context(), client, mine); err != nil {
		t.Fatal(err)
	}
	is(t, "TransactWriteItems", m{"TransactItems": []any{
		m{"Delete": m{"TableName": "data", "Key": m{"id": m{"S": "x"}}}},
		m{"ConditionCheck": m{"TableName": "elector", "Key": key, "ConditionExpression": "#nonce = :nonce", "ExpressionAttributeNames": m{"#nonce": "elector_nonce"}, "ExpressionAttributeValues": nonce}},
	}})
	own := errors.New("the client's error")
	for _, c := range []struct {
		reasons []string
		want    error
	}{
		{[]string{"None", checkFailed}, backends.ErrStale},
		{[]string{checkFailed, checkFailed}, backends.ErrStale},
		{[]string{conflicted, checkFailed}, backends.ErrStale},
		{[]string{"None", conflicted}, backends.ErrUnavailable},
		{[]string{conflicted, "None"}, backends.ErrUnavailable},
		{[]string{checkFailed, "None"}, own},
		{[]string{"ThrottlingError", "None"}, own},
	} {
		t.Run(strings.Join(c.reasons, " "), func(t *testing.T) {
			f.on("TransactWriteItems", cancels(c.reasons...))
			err := term.Write(t.Context(), client, mine)
			refused := errors.Is(err, backends.ErrStale) || errors.Is(err, backends.ErrUnavailable)
			if !errors.As(err, new(*types.TransactionCanceledException)) || refused != (c.want != own) || refused && !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}

	f.on("PutItem", fails(400, conditionFailed, "The conditional request failed"))
	if _, err := Claim(t.Context(), lease{b, 6, nil}); !errors.Is(err, backends.ErrStale) || errors.Is(err, backends.ErrUnavailable) {
		t.Errorf("a late claim: got %v, want ErrStale", err)
	}
	f.on("PutItem", fails(400, "TransactionConflictException", ""))
	if _, err := Claim(t.Context(), lease{b, 8, nil}); !errors.Is(err, backends.ErrUnavailable) {
		t.Errorf("a claim that meets a transaction: got %v, want ErrUnavailable", err)
	}
}

// Nothing is sent for a lease that cannot fence.
func TestTermRefused(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	if _, err := Claim(t.Context(), lease{b, 7, errEnded}); !errors.Is(err, errEnded) {
		t.Errorf("a lease that is over: got %v", err)
	}
	if _, err := Claim(t.Context(), lease{memory.New(), 7, nil}); !errors.Is(err, backends.ErrMisconfigured) {
		t.Errorf("a lease of another store: got %v", err)
	}
	if n := len(f.bodies("PutItem")); n != 0 {
		t.Errorf("%d requests", n)
	}
	l := &lease{b, 7, nil}
	term, err := Claim(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	l.over = errEnded
	if _, err := term.Check(); !errors.Is(err, errEnded) {
		t.Errorf("a lease that is over: got %v", err)
	}
	term.turn <- struct{}{} // a Write is under way
	stopped, stop := context.WithCancelCause(t.Context())
	stop(errEnded)
	if err := term.Write(stopped, nil); err != errEnded {
		t.Errorf("a Write that waited: got %v", err)
	}
}
