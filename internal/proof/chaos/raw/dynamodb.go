package raw

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A dynamoRecords has an item of the table for each record.
type dynamoRecords struct {
	JSON
	client *dynamodb.Client
	table  string
}

// openDynamoDB is for servers that the tests started, which look at no credentials.
func openDynamoDB(_ context.Context, u *url.URL) (Records, func() error, error) {
	endpoint := u.Query().Get("endpoint")
	if endpoint == "" {
		return nil, nil, errors.New("it is the cloud's own, which is not for breaking")
	}
	transport := &http.Transport{}
	client := dynamodb.New(dynamodb.Options{
		Region:       u.Query().Get("region"),
		BaseEndpoint: &endpoint,
		Credentials:  credentials.NewStaticCredentialsProvider("test", "test", ""),
		HTTPClient:   &http.Client{Transport: transport},
	})
	return dynamoRecords{client: client, table: u.Host}, func() error { transport.CloseIdleConnections(); return nil }, nil
}

func (r dynamoRecords) key(election string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"election": &types.AttributeValueMemberS{Value: election}}
}

func (r dynamoRecords) Get(ctx context.Context, election string) ([]byte, error) {
	answer, err := r.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &r.table, Key: r.key(election), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	switch record := answer.Item["record"].(type) {
	case nil:
		return nil, nil
	case *types.AttributeValueMemberS:
		return []byte(record.Value), nil
	default:
		return nil, fmt.Errorf("the record of %s is of the type %T", election, record)
	}
}

func (r dynamoRecords) Put(ctx context.Context, election string, content []byte) error {
	_, err := r.client.PutItem(ctx, r.item(election, content))
	return err
}

func (r dynamoRecords) item(election string, content []byte) *dynamodb.PutItemInput {
	item := r.key(election)
	item["record"] = &types.AttributeValueMemberS{Value: string(content)}
	return &dynamodb.PutItemInput{TableName: &r.table, Item: item}
}

func (r dynamoRecords) Replace(ctx context.Context, election string, old, content []byte) (bool, error) {
	put := r.item(election, content)
	put.ConditionExpression = aws.String("#r = :old")
	put.ExpressionAttributeNames = map[string]string{"#r": "record"}
	put.ExpressionAttributeValues = map[string]types.AttributeValue{":old": &types.AttributeValueMemberS{Value: string(old)}}
	_, err := r.client.PutItem(ctx, put)
	var changed *types.ConditionalCheckFailedException
	if errors.As(err, &changed) {
		return false, nil
	}
	return err == nil, err
}

func (r dynamoRecords) Delete(ctx context.Context, election string) error {
	_, err := r.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &r.table, Key: r.key(election)})
	return err
}
