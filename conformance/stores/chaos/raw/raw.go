// Package raw reads and writes the records of elections behind the backs of the
// adapters, as an operator or a restored backup does.
package raw

import (
	"context"
	"fmt"
	"net/url"

	"github.com/elector-go/elector/conformance/stores"
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

	// Delete removes the record. That there is none is no error.
	Delete(ctx context.Context, election string) error
}

// Open connects to the records that the store's URL leads to. close ends the
// connection. ctx bounds the opening only.
func Open(ctx context.Context, s *stores.Store) (records Records, close func() error, err error) {
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
	}[s.Kind]
	if open == nil {
		return nil, nil, fmt.Errorf("no records of a store of the kind %q are known", s.Kind)
	}
	if records, close, err = open(ctx, u); err != nil {
		return nil, nil, fmt.Errorf("the records of %s: %w", s, err)
	}
	return records, close, nil
}
