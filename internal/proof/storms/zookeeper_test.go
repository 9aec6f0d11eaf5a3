package storms

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/zookeeper"
	"github.com/elector-go/elector/internal/proof/stores"
)

const zooKeeperPrefix = "/elector"

var anyone = zk.WorldACL(zk.PermAll)

func TestZooKeeper(t *testing.T) {
	s := start(t, stores.ZooKeeper)
	conn := zooKeeperConn(t, s)
	create(t, conn, "/data")
	storm := func(election string, write func(context.Context, *Attempt) error) Storm {
		create(t, conn, "/data/"+election)
		o := &zooKeeperOrder{conn: conn, election: election}
		var handles []backends.Backend
		for range 3 {
			handles = append(handles, ordered{made(zookeeper.New(t.Context(), zooKeeperConn(t, s), &zookeeper.Options{Prefix: zooKeeperPrefix})), o})
		}
		return Storm{Handles: handles, Election: election, Every: 25 * time.Millisecond, Pause: 40 * time.Millisecond, Seed: 1,
			Write: write, Order: o.marks}
	}
	put := func(a *Attempt) *zk.CreateRequest {
		return &zk.CreateRequest{Path: fmt.Sprintf("/data/%s/%d", a.Election, a.Number), Data: []byte(strconv.FormatUint(a.Token, 10)), Acl: anyone}
	}
	stale := func(err error) error {
		if errors.Is(err, zk.ErrNoNode) {
			return backends.ErrStale
		}
		return err
	}

	t.Run("guarded", func(t *testing.T) {
		pass(t, storm("guarded-"+run, func(_ context.Context, a *Attempt) error {
			a.Pause()
			a.Send()
			_, err := zookeeper.Multi(conn, a, put(a))
			return err
		}))
	})
	t.Run("the leader's node alone checked", func(t *testing.T) {
		caught(t, storm("leader-"+run, func(_ context.Context, a *Attempt) error {
			a.Pause()
			a.Send()
			leader := fmt.Sprintf("%s/%s/leader", zooKeeperPrefix, a.Election)
			_, err := conn.Multi(&zk.CheckVersionRequest{Path: leader, Version: -1}, put(a))
			return stale(err)
		}), late)
	})
	t.Run("exists, then create", func(t *testing.T) {
		caught(t, storm("exists-"+run, func(_ context.Context, a *Attempt) error {
			guard, err := zookeeper.Guard(a)
			if err != nil {
				return err
			}
			if _, err := conn.Multi(guard...); err != nil {
				return stale(err)
			}
			a.Pause()
			a.Send()
			_, err = conn.Multi(put(a))
			return err
		}), late)
	})
	t.Run("a lease", func(t *testing.T) { zooKeeperLease(t, s, conn) })
}

// ordered notes the place of each acquisition in the store's order: the
// transaction that has created the leader's node.
type ordered struct {
	*zookeeper.Backend
	order *zooKeeperOrder
}

func (o ordered) Unwrap() backends.Backend { return o.Backend }

func (o ordered) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	r, err := o.Backend.Swap(ctx, name, prev, next)
	if err == nil && r.Attempt.Sequence == 1 {
		var stat *zk.Stat
		if _, stat, err = o.order.conn.Get(zooKeeperPrefix + "/" + name + "/leader"); err == nil {
			o.order.acquisitions = append(o.order.acquisitions, Mark{r.Token, stat.Czxid})
		}
	}
	return r, err
}

type zooKeeperOrder struct {
	conn         *zk.Conn
	election     string
	acquisitions []Mark
}

// marks reads the writes from the znodes that they have created.
func (o *zooKeeperOrder) marks(context.Context) (acquisitions, writes []Mark, err error) {
	children, _, err := o.conn.Children("/data/" + o.election)
	if err != nil {
		return nil, nil, err
	}
	for _, child := range children {
		data, stat, err := o.conn.Get("/data/" + o.election + "/" + child)
		if err != nil {
			return nil, nil, err
		}
		token, err := strconv.ParseUint(string(data), 10, 64)
		if err != nil {
			return nil, nil, err
		}
		writes = append(writes, Mark{token, stat.Czxid})
	}
	return o.acquisitions, writes, nil
}

// One guard is good for as long as a lease lasts, whatever the lease writes
// meanwhile, and no longer; and until the leader is deposed.
func zooKeeperLease(t *testing.T, s *stores.Store, conn *zk.Conn) {
	name := "lease-" + run
	e, lease := lead(t, made(zookeeper.New(t.Context(), zooKeeperConn(t, s), &zookeeper.Options{Prefix: zooKeeperPrefix})), name)
	guard, err := zookeeper.Guard(lease)
	must(t, err)
	passes := func(when string, want error) {
		t.Helper()
		_, err := conn.Multi(guard...)
		wants(t, "a guard "+when, err, want)
	}
	alone := func(when string, want error) {
		t.Helper()
		_, err := conn.Multi(guard[0])
		wants(t, "a guard without the leader's node "+when, err, want)
	}
	create(t, conn, "/data/"+name)
	set := &zk.SetDataRequest{Path: "/data/" + name, Version: -1}
	passes("after the acquisition", nil)
	must(t, lease.Proclaim(t.Context(), "a value"))
	passes("after a renewal with a value", nil)
	answers, err := zookeeper.Multi(conn, lease, set)
	if err != nil || len(answers) != 1 || answers[0].Stat.Version != 1 {
		t.Errorf("Multi answers %+v, %v; want that to the operation", answers, err)
	}
	_, err = zookeeper.Multi(conn, lease, &zk.DeleteRequest{Path: "/data/missing"})
	wants(t, "Multi with an operation that fails", err, zk.ErrNoNode)

	must(t, lease.Release(t.Context()))
	passes("after the release", zk.ErrNoNode)
	alone("after the release", zk.ErrNoNode)
	_, err = zookeeper.Multi(conn, lease, set)
	wants(t, "Multi after the release", err, elector.ErrResigned)

	lease, err = e.TryCampaign(t.Context())
	must(t, err)
	passes("after another acquisition", zk.ErrNoNode)
	guard, err = zookeeper.Guard(lease)
	must(t, err)
	passes("of the other acquisition", nil)
	must(t, conn.Delete(zooKeeperPrefix+"/"+name+"/leader", -1))
	passes("after a deposition", zk.ErrNoNode)
	alone("after a deposition", nil)
	<-lease.Context().Done()
	_, err = zookeeper.Multi(conn, lease, set)
	wants(t, "Multi after a deposition", err, elector.ErrDeposed)
}

// A connection without the election's login cannot look at its znodes.
func TestZooKeeperDenied(t *testing.T) {
	s := start(t, stores.ZooKeeper)
	user, other := zooKeeperConn(t, s), zooKeeperConn(t, s)
	must(t, user.AddAuth("digest", []byte("app:secret")))
	_, lease := lead(t, made(zookeeper.New(t.Context(), user, &zookeeper.Options{Prefix: "/secured-" + run, ACL: zk.DigestACL(zk.PermAll, "app", "secret")})), "denied")
	_, err := zookeeper.Multi(other, lease)
	wants(t, "Multi without the election's login", err, elector.ErrDenied)
	must(t, other.AddAuth("digest", []byte("app:secret")))
	_, err = zookeeper.Multi(other, lease)
	must(t, err)
}

func zooKeeperConn(t *testing.T, s *stores.Store) *zk.Conn {
	t.Helper()
	conn, _, err := zk.Connect([]string{s.Address}, 30*time.Second, zk.WithLogInfo(false))
	must(t, err)
	t.Cleanup(conn.Close)
	_, _, err = conn.Exists("/") // waits for the session, which the adapter does not
	must(t, err)
	return conn
}

func create(t *testing.T, conn *zk.Conn, path string) {
	t.Helper()
	if _, err := conn.Create(path, nil, 0, anyone); !errors.Is(err, zk.ErrNodeExists) {
		must(t, err)
	}
}
