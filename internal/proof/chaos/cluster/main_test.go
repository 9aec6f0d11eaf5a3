// Package cluster shows what becomes of leases when a store of three servers
// loses one of them, its leader above all: the cases part/follower,
// part/leader-stopped, part/store-restart and part/stale-read on real etcd and
// ZooKeeper. There are only tests.
//
// Each case is done in rounds, two by default. ELECTOR_ROUNDS=20 makes twenty.
package cluster

import (
	"testing"

	_ "github.com/elector-go/elector/backends/consul"
	_ "github.com/elector-go/elector/backends/etcd"
	_ "github.com/elector-go/elector/backends/nats"
	_ "github.com/elector-go/elector/backends/zookeeper"
	"github.com/elector-go/elector/internal/leak"
	"github.com/elector-go/elector/internal/proof/child"
)

func TestMain(m *testing.M) {
	child.Prepare()
	leak.Main(m)
}
