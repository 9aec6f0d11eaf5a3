package etcd_test

import (
	"context"
	"log"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/etcd"
)

func Example() {
	// Importing the package is enough for its URLs.
	ctx := context.Background()
	e, err := elector.Open(ctx, "etcd://etcd1,etcd2,etcd3:2379/services/elector", "invoice-sender", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
}

// A worker keeps a mark of what it has done in etcd. However late its write
// arrives, it cannot undo that of a later leader.
func ExampleCommit() {
	client, err := clientv3.New(clientv3.Config{
		Endpoints:         []string{"http://etcd1:2379", "http://etcd2:2379", "http://etcd3:2379"},
		DialKeepAliveTime: 10 * time.Second,
		MaxUnaryRetries:   1,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	b, err := etcd.New(context.Background(), client, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	e, err := elector.New(b, "invoice-sender", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	err = e.Run(context.Background(), func(ctx context.Context, lease *elector.Lease) error {
		_, err := etcd.Commit(ctx, client, lease, clientv3.OpPut("invoices/last", "2041"))
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}
