package zookeeper_test

import (
	"context"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/zookeeper"
)

func Example() {
	// Importing the package is enough for its URLs.
	ctx := context.Background()
	e, err := elector.Open(ctx, "zookeeper://zk1:2181,zk2:2181,zk3:2181/services/elector", "invoice-sender", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
}

func ExampleNew() {
	conn, _, err := zk.Connect([]string{"zk1:2181", "zk2:2181", "zk3:2181"}, 30*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	if err := conn.AddAuth("digest", []byte("app:PASSWORD")); err != nil {
		log.Fatal(err)
	}
	b, err := zookeeper.New(context.Background(), conn, &zookeeper.Options{Prefix: "/services/elector", ACL: zk.DigestACL(zk.PermAll, "app", "PASSWORD")})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	e, err := elector.New(b, "invoice-sender", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
}

// A worker keeps a mark of what it has done in ZooKeeper. However late its write arrives, it
// cannot undo that of a later leader.
func ExampleMulti() {
	ctx := context.Background()
	e, err := elector.Open(ctx, "zookeeper://zk1:2181,zk2:2181,zk3:2181/services/elector", "invoice-sender", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	conn, _, err := zk.Connect([]string{"zk1:2181", "zk2:2181", "zk3:2181"}, 30*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	err = e.Run(ctx, func(ctx context.Context, lease *elector.Lease) error {
		_, err := zookeeper.Multi(conn, lease, &zk.SetDataRequest{Path: "/invoices/last", Data: []byte("2041"), Version: -1})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}
