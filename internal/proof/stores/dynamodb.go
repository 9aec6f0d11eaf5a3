package stores

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

const (
	dynamoRegion = "us-east-1"
	dynamoTable  = "elector"
)

// startDynamoDB starts dynalite, with the table elector as the adapter wants
// it. It asks for no particular credentials, but for some.
func startDynamoDB(ctx context.Context) (*Store, error) {
	node, err := binaries.Node()
	if err != nil {
		return nil, err
	}
	script, err := binaries.Dynalite()
	if err != nil {
		return nil, fmt.Errorf("%w; run make stores", err)
	}
	name := "dynalite " + binaries.DynaliteVersion
	s, err := newServer(ctx, recipe{
		name:    name,
		program: node,
		arguments: func(s *server) []string {
			return []string{script,
				"--host=127.0.0.1",
				"--port=" + strconv.Itoa(s.port),
				"--path=" + filepath.Join(s.dir, "data"),
				"--createTableMs=0",
				"--deleteTableMs=0",
				"--updateTableMs=0",
			}
		},
		ready: dynaliteReady,
		quit:  syscall.SIGKILL, // it heeds SIGTERM in no other way
	})
	if err != nil {
		return nil, err
	}
	store := &Store{
		Kind:    DynamoDB,
		How:     "local process " + name + " (from npm)",
		URL:     dynamoURL(s.address()),
		Address: s.address(),
		PID:     s.pid,
		server:  s,
	}
	if err := dynamoCreateTable(ctx, s.address(), dynamoTable); err != nil {
		return nil, errors.Join(fmt.Errorf("making the table %s: %w", dynamoTable, err), store.Stop())
	}
	return store, nil
}

// AnyCredentials puts those of emulators into the environment, unless
// ELECTOR_TEST_DYNAMODB, ELECTOR_TEST_S3 or ELECTOR_TEST_AZUREBLOB names a store with its
// own.
func AnyCredentials() {
	if os.Getenv(variables[AzureBlob]) == "" {
		os.Setenv("AZURE_STORAGE_KEY", azuriteKey)
	}
	if os.Getenv(variables[DynamoDB]) == "" && os.Getenv(variables[S3]) == "" {
		os.Setenv("AWS_ACCESS_KEY_ID", "test")
		os.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	}
}

func dynamoURL(address string) string {
	return "dynamodb://" + dynamoTable + "?" + url.Values{
		"region":   {dynamoRegion},
		"endpoint": {"http://" + address},
	}.Encode()
}

// dynaliteReady looks into its log first: nothing that it answers tells whose
// it is, but it logs that it listens only when the port is its own.
func dynaliteReady(ctx context.Context, s *server) error {
	if !bytes.Contains(s.log(s.logBegins), []byte("listening at: http://"+s.address())) {
		return errors.New("it has not said that it listens")
	}
	return dynamoReady(ctx, s.address())
}

// dynamoReady asks for the tables.
func dynamoReady(ctx context.Context, address string) error {
	client, done := dynamoClient(address)
	defer done()
	_, err := client.ListTables(ctx, nil)
	return err
}

// dynamoClient connects to a server that does not look at credentials. done
// closes its connections.
func dynamoClient(address string) (client *dynamodb.Client, done func()) {
	transport := &http.Transport{}
	client = dynamodb.New(dynamodb.Options{
		Region:       dynamoRegion,
		BaseEndpoint: aws.String("http://" + address),
		Credentials:  credentials.NewStaticCredentialsProvider("test", "test", ""),
		HTTPClient:   &http.Client{Transport: transport},
		Retryer:      aws.NopRetryer{},
	})
	return client, transport.CloseIdleConnections
}

// dynamoCreateTable makes a table with the keys that the adapter wants, and
// returns when it can be used.
func dynamoCreateTable(ctx context.Context, address, table string) error {
	client, done := dynamoClient(address)
	defer done()
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            &table,
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("election"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("election"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		return err
	}
	return until(ctx, 5*time.Second, func(ctx context.Context) error {
		d, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
		if err == nil && d.Table.TableStatus != types.TableStatusActive {
			err = fmt.Errorf("the table is %s", d.Table.TableStatus)
		}
		return err
	})
}
