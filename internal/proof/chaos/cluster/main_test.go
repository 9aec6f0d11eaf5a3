// Package cluster shows what becomes of leases when a store of three servers
// loses one of them, its leader above all: the cases part/follower,
// part/leader-stopped, part/store-restart and part/stale-read on real etcd and
// ZooKeeper. There are only tests.
//
// Each case is done in rounds, two by default. ELECTOR_ROUNDS=20 makes twenty.
package cluster

import (
	"context"
	"fmt"
	"os"
	"testing"

	_ "github.com/elector-go/elector/backends/etcd"
	_ "github.com/elector-go/elector/backends/zookeeper"
	"github.com/elector-go/elector/internal/leak"
	"github.com/elector-go/elector/internal/proof/stores"
)

func TestMain(m *testing.M) {
	// The first store starts a goroutine that lives as long as we do: it is part
	// of what is there before the tests.
	first, err := stores.StartCluster(context.Background(), stores.Etcd, 1)
	if err == nil {
		err = first.Stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	leak.Main(m)
}
