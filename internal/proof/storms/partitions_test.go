package storms

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/etcd"
	"github.com/elector-go/elector/backends/zookeeper"
	"github.com/elector-go/elector/internal/proof/stores"
	"github.com/elector-go/elector/partition"
)

// A guard of a store holds for a partition's lease as for an election's: until the
// partition is given up, and never again.
func TestPartitions(t *testing.T) {
	t.Run("etcd", func(t *testing.T) {
		s := start(t, stores.Etcd)
		client := etcdClient(t, s, s.Admin)
		partitions(t, func() backends.Backend { return made(etcd.New(t.Context(), client, &etcd.Options{Prefix: etcdPrefix})) }, func(l *partition.Lease) (write, late func() error) {
			put := clientv3.OpPut("data/"+strconv.Itoa(l.Partition()), l.Token().String())
			guard, err := etcd.Guard(l)
			must(t, err)
			return func() error {
					_, err := etcd.Commit(t.Context(), client, l, put)
					return err
				}, func() error {
					answer, err := client.Txn(t.Context()).If(guard...).Then(put).Commit()
					if err == nil && !answer.Succeeded {
						err = backends.ErrStale
					}
					return err
				}
		})
	})
	t.Run("ZooKeeper", func(t *testing.T) {
		s := start(t, stores.ZooKeeper)
		conn := zooKeeperConn(t, s)
		create(t, conn, "/partitions-"+run)
		set := &zk.SetDataRequest{Path: "/partitions-" + run, Version: -1}
		partitions(t, func() backends.Backend {
			return made(zookeeper.New(t.Context(), zooKeeperConn(t, s), &zookeeper.Options{Prefix: zooKeeperPrefix}))
		}, func(l *partition.Lease) (write, late func() error) {
			guard, err := zookeeper.Guard(l)
			must(t, err)
			return func() error {
					_, err := zookeeper.Multi(conn, l, set)
					return err
				}, func() error {
					_, err := conn.Multi(append(guard, set)...)
					if errors.Is(err, zk.ErrNoNode) {
						return backends.ErrStale
					}
					return err
				}
		})
	})
}

// partitions moves partitions from one process to another. guards returns, for a valid
// lease, a write that checks the lease, and one that was checked now and arrives later.
func partitions(t *testing.T, open func() backends.Backend, guards func(*partition.Lease) (write, late func() error)) {
	const count = 2
	join := func(id string) (leases [count]*partition.Lease, leave func()) {
		g, err := partition.New(open(), "partitions-"+run, &partition.Options{Partitions: count, Elector: elector.Options{ID: id, TTL: 5 * time.Second, Logger: slog.New(slog.DiscardHandler)}})
		must(t, err)
		ctx, stop := context.WithCancel(context.Background())
		owned, done := make(chan *partition.Lease, 100), make(chan error, 1)
		go func() {
			done <- g.Run(ctx, func(ctx context.Context, l *partition.Lease) error {
				owned <- l
				<-ctx.Done()
				return nil
			})
		}()
		left := false
		leave = func() {
			if !left {
				left = true
				stop()
				must(t, <-done)
				must(t, g.Close())
			}
		}
		t.Cleanup(leave)
		for n := 0; n < count; n++ {
			select {
			case l := <-owned:
				leases[l.Partition()] = l
			case <-time.After(time.Minute):
				t.Fatalf("%s owns %d of %d partitions", id, n, count)
			}
		}
		return leases, leave
	}

	var lates []func() error
	before, leave := join("a")
	for _, l := range before {
		write, late := guards(l)
		lates = append(lates, late)
		wants(t, "a write under a valid lease", write(), nil)
		wants(t, "a write that was checked under a valid lease", late(), nil)
	}
	leave()
	for i, l := range before {
		wants(t, "a late write after the partition was given up", lates[i](), backends.ErrStale)
		if _, err := l.Acquisition(); !errors.Is(err, elector.ErrResigned) {
			t.Errorf("the acquisition of a lease that is over: %v", err)
		}
	}
	after, _ := join("b")
	for i, l := range after {
		write, _ := guards(l)
		wants(t, "a write of the next owner", write(), nil)
		wants(t, "a late write", lates[i](), backends.ErrStale)
		if l.Token() <= before[i].Token() {
			t.Errorf("%v follows %v", l, before[i])
		}
	}
}
