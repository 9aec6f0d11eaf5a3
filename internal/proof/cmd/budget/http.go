package main

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"

	"cloud.google.com/go/storage"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"google.golang.org/api/option"
	htransport "google.golang.org/api/transport/http"

	"github.com/elector-go/elector/backends/dynamodb"
	"github.com/elector-go/elector/backends/gcs"
	"github.com/elector-go/elector/internal/proof/stores"
)

// A countedTransport counts HTTP requests as they leave, those included that a
// client library makes by itself.
type countedTransport struct {
	http.RoundTripper
	sent *atomic.Int64
}

func (t countedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.sent.Add(1)
	return t.RoundTripper.RoundTrip(r)
}

// newTransport has a connection for each of many waiters.
func newTransport() *http.Transport {
	return &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 64}
}

// startDynamoDB counts HTTP requests.
func startDynamoDB(ctx context.Context) (*counted, error) {
	s, err := stores.Start(ctx, stores.DynamoDB)
	if err != nil {
		return nil, err
	}
	open := func(ctx context.Context) (*client, error) {
		u, err := url.Parse(s.URL)
		if err != nil {
			return nil, err
		}
		sent, transport := new(atomic.Int64), newTransport()
		var settings []func(*config.LoadOptions) error
		if region := u.Query().Get("region"); region != "" {
			settings = append(settings, config.WithRegion(region))
		}
		if os.Getenv("ELECTOR_TEST_DYNAMODB") == "" { // a local server does not look at them
			settings = append(settings, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("test", "test", "")))
		}
		c, err := config.LoadDefaultConfig(ctx, settings...)
		if err != nil {
			return nil, err
		}
		c.HTTPClient = &http.Client{Transport: countedTransport{transport, sent}}
		if endpoint := u.Query().Get("endpoint"); endpoint != "" {
			c.BaseEndpoint = &endpoint
		}
		b, err := dynamodb.New(ctx, awsdynamodb.NewFromConfig(c), u.Host, nil)
		if err != nil {
			return nil, err
		}
		return &client{b, sent, transport.CloseIdleConnections}, nil
	}
	return &counted{how: s.String(), budget: budget{first: 2, acquire: 2, idle: 2}, polled: true, open: open, stop: s.Stop}, nil
}

// startGCS counts HTTP requests.
func startGCS(ctx context.Context) (*counted, error) {
	s, err := stores.Start(ctx, stores.GCS)
	if err != nil {
		return nil, err
	}
	open := func(ctx context.Context) (*client, error) {
		u, err := url.Parse(s.URL)
		if err != nil {
			return nil, err
		}
		sent, transport := new(atomic.Int64), newTransport()
		var through http.RoundTripper = countedTransport{transport, sent}
		options := []option.ClientOption{storage.WithJSONReads()}
		if endpoint := u.Query().Get("endpoint"); endpoint != "" {
			options = append(options, option.WithEndpoint(endpoint), option.WithoutAuthentication())
		} else if through, err = htransport.NewTransport(ctx, through, option.WithScopes(storage.ScopeReadWrite)); err != nil {
			return nil, err
		}
		c, err := storage.NewClient(ctx, append(options, option.WithHTTPClient(&http.Client{Transport: through}))...)
		if err != nil {
			return nil, err
		}
		prefix := "budget/"
		if path := strings.Trim(u.Path, "/"); path != "" {
			prefix = path + "/"
		}
		return &client{gcs.New(c, u.Host, prefix), sent, func() { c.Close(); transport.CloseIdleConnections() }}, nil
	}
	return &counted{
		how: s.String(), budget: budget{first: 3, acquire: 2, idle: 2}, polled: true, open: open, stop: s.Stop,
		note: "where an object is missing, one more request asks whether the bucket is",
	}, nil
}
