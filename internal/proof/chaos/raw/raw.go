// Package raw reads and writes the records of elections behind the backs of the
// adapters, as an operator or a restored backup does.
package raw

import (
	"context"
	"fmt"
	"net/url"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/proof/stores"
)

// Records are the records of one store's elections. The methods block until the
// store has answered, or ctx ends, and may be called at the same time.
type Records interface {
	// Get returns what the store keeps for the election, for Put to restore;
	// nil if there is nothing.
	Get(ctx context.Context, election string) ([]byte, error)

	// Put makes content the record, whatever is there. What is no record of
	// the store's format it may refuse.
	Put(ctx context.Context, election string, content []byte) error

	// Replace makes content the record if that is old, in one step, and reports
	// whether it was.
	Replace(ctx context.Context, election string, old, content []byte) (bool, error)

	// Delete removes the record. That there is none is no error.
	Delete(ctx context.Context, election string) error

	// Decode and Encode know the store's format, see JSON.
	Decode(election string, content []byte) (backends.Record, error)
	Encode(election string, r backends.Record) []byte
}

// JSON is the format of all stores that keep bytes.
type JSON struct{}

func (JSON) Decode(election string, content []byte) (backends.Record, error) {
	return backends.Decode(election, content)
}

func (JSON) Encode(election string, r backends.Record) []byte { return backends.Encode(election, r) }

// Load reads a record without its version.
func Load(ctx context.Context, from Records, election string) (backends.Record, error) {
	content, err := from.Get(ctx, election)
	if err != nil {
		return backends.Record{}, err
	}
	return from.Decode(election, content)
}

// Edit changes something in a record by hand and leaves the rest as it is. It
// calls change again if another one writes meanwhile, and returns its error, or
// what stands then.
func Edit(ctx context.Context, in Records, election string, change func(*backends.Record) error) (backends.Record, error) {
	for {
		old, err := in.Get(ctx, election)
		if err != nil {
			return backends.Record{}, err
		}
		r, err := in.Decode(election, old)
		if err == nil {
			err = change(&r)
		}
		if err != nil {
			return backends.Record{}, err
		}
		if done, err := in.Replace(ctx, election, old, in.Encode(election, r)); done || err != nil {
			return r, err
		}
	}
}

// Open connects to the records that the store's URL leads to. close ends the
// connection. ctx bounds the opening only.
func Open(ctx context.Context, s *stores.Store) (records Records, close func() error, err error) {
	if s.Kind == stores.Kubernetes {
		return kubernetesRecords{store: s}, func() error { return nil }, nil
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, nil, fmt.Errorf("the URL of %s cannot be read", s.Kind)
	}
	open := map[string]func(context.Context, *url.URL) (Records, func() error, error){
		stores.Etcd:      openEtcd,
		stores.ZooKeeper: openZooKeeper,
		stores.Postgres:  openPostgres,
		stores.DynamoDB:  openDynamoDB,
		stores.GCS:       openGCS,
		stores.AzureBlob: openAzureBlob,
		stores.Consul:    openConsul,
		stores.Redis:     openRedis,
		stores.S3:        openS3,
		stores.MySQL:     openMySQL,
		stores.NATS:      openNATS,
	}[s.Kind]
	if open == nil {
		return nil, nil, fmt.Errorf("no records of a store of the kind %q are known", s.Kind)
	}
	if records, close, err = open(ctx, u); err != nil {
		return nil, nil, fmt.Errorf("the records of %s: %w", s, err)
	}
	return records, close, nil
}
