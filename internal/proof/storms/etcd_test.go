package storms

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/etcd"
	"github.com/elector-go/elector/internal/proof/stores"
)

const etcdPrefix = "elector/"

func TestEtcd(t *testing.T) {
	s := start(t, stores.Etcd)
	client := etcdClient(t, s, s.Admin)
	storm := func(election string, write func(context.Context, *Attempt) error) Storm {
		handles := []backends.Backend{made(etcd.New(t.Context(), client, &etcd.Options{Prefix: etcdPrefix})), made(etcd.New(t.Context(), client, &etcd.Options{Prefix: etcdPrefix})), made(etcd.New(t.Context(), client, &etcd.Options{Prefix: etcdPrefix}))}
		return Storm{Handles: handles, Election: election, Every: 25 * time.Millisecond, Pause: 40 * time.Millisecond, Seed: 1,
			Write: write, Order: etcdOrder(client, election)}
	}
	put := func(a *Attempt) clientv3.Op {
		return clientv3.OpPut(fmt.Sprintf("data/%s/%d", a.Election, a.Number), strconv.FormatUint(a.Token, 10))
	}
	// read returns the record's text, or ErrStale if another acquisition made it.
	read := func(ctx context.Context, a *Attempt) (string, error) {
		answer, err := client.Get(ctx, etcdPrefix+a.Election)
		if err != nil {
			return "", err
		}
		value := string(answer.Kvs[0].Value)
		if r, err := backends.Decode(a.Election, []byte(value)); err != nil || r.Token != a.Token || r.Vacant() {
			return "", errors.Join(backends.ErrStale, err)
		}
		return value, nil
	}

	t.Run("guarded", func(t *testing.T) {
		pass(t, storm("guarded-"+run, func(ctx context.Context, a *Attempt) error {
			a.Pause()
			a.Send()
			_, err := etcd.Commit(ctx, client, a, put(a))
			return err
		}))
	})
	t.Run("read, then put", func(t *testing.T) {
		caught(t, storm("read-put-"+run, func(ctx context.Context, a *Attempt) error {
			if _, err := read(ctx, a); err != nil {
				return err
			}
			a.Pause()
			a.Send()
			_, err := client.Do(ctx, put(a))
			return err
		}), late)
	})
	t.Run("the whole record compared", func(t *testing.T) {
		caught(t, storm("whole-"+run, func(ctx context.Context, a *Attempt) error {
			value, err := read(ctx, a)
			if err != nil {
				return err
			}
			a.Pause()
			a.Send()
			answer, err := client.Txn(ctx).If(clientv3.Compare(clientv3.Value(etcdPrefix+a.Election), "=", value)).Then(put(a)).Commit()
			if err == nil && !answer.Succeeded {
				err = backends.ErrStale
			}
			return err
		}), falselyRefused)
	})
	t.Run("a lease", func(t *testing.T) { etcdLease(t, client) })
}

// etcdOrder reads the acquisitions from the history of the election's key, and the
// writes from the keys that they have created.
func etcdOrder(client *clientv3.Client, election string) func(context.Context) (acquisitions, writes []Mark, err error) {
	return func(ctx context.Context) (acquisitions, writes []Mark, err error) {
		data, err := client.Get(ctx, "data/"+election+"/", clientv3.WithPrefix())
		if err != nil {
			return nil, nil, err
		}
		for _, kv := range data.Kvs {
			token, err := strconv.ParseUint(string(kv.Value), 10, 64)
			if err != nil {
				return nil, nil, err
			}
			writes = append(writes, Mark{token, kv.CreateRevision})
		}
		latest, err := client.Get(ctx, etcdPrefix+election)
		if err != nil {
			return nil, nil, err
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for answer := range client.Watch(ctx, etcdPrefix+election, clientv3.WithRev(1)) {
			for _, e := range answer.Events {
				r, err := backends.Decode(election, e.Kv.Value)
				if err != nil {
					return nil, nil, err
				}
				if r.Attempt.Sequence == 1 {
					acquisitions = append(acquisitions, Mark{r.Token, e.Kv.ModRevision})
				}
				if e.Kv.ModRevision == latest.Kvs[0].ModRevision {
					return acquisitions, writes, nil
				}
			}
		}
		return nil, nil, errors.New("the watch of the record's history ended early")
	}
}

// One guard is good for as long as a lease lasts, whatever the lease writes
// meanwhile, and no longer.
func etcdLease(t *testing.T, client *clientv3.Client) {
	name := "lease-" + run
	e, lease := lead(t, made(etcd.New(t.Context(), client, &etcd.Options{Prefix: etcdPrefix})), name)
	guard, err := etcd.Guard(lease)
	must(t, err)
	succeeds := func(when string, want bool) {
		t.Helper()
		answer, err := client.Txn(t.Context()).If(guard...).Commit()
		must(t, err)
		if answer.Succeeded != want {
			t.Errorf("a guard %s: succeeds is %v, want %v", when, answer.Succeeded, want)
		}
	}
	succeeds("after the acquisition", true)
	must(t, lease.Proclaim(t.Context(), "a value"))
	succeeds("after a renewal with a value", true)
	_, err = etcd.Commit(t.Context(), client, lease, clientv3.OpPut("data/"+name, "1"))
	must(t, err)
	must(t, lease.Release(t.Context()))
	succeeds("after the release", false)
	_, err = etcd.Commit(t.Context(), client, lease, clientv3.OpPut("data/"+name, "2"))
	wants(t, "Commit after the release", err, elector.ErrResigned)
	_, err = e.TryCampaign(t.Context())
	must(t, err)
	succeeds("after another acquisition", false)
	_, err = client.Delete(t.Context(), etcdPrefix+name)
	must(t, err)
	succeeds("without a record", false)
}

// A user of the data alone cannot look at the record.
func TestEtcdDenied(t *testing.T) {
	s, err := stores.EtcdWithAuth(t.Context(), "data/")
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	_, lease := lead(t, made(etcd.New(t.Context(), etcdClient(t, s, s.Admin), &etcd.Options{Prefix: etcdPrefix})), "denied")
	_, err = etcd.Commit(t.Context(), etcdClient(t, s, s.User), lease, clientv3.OpPut("data/denied", "1"))
	wants(t, "Commit without the permission to read the record", err, elector.ErrDenied)
	if !strings.Contains(err.Error(), "elector/denied") {
		t.Errorf("the error does not name the key: %v", err)
	}
}

func etcdClient(t *testing.T, s *stores.Store, as stores.Login) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Address}, DialTimeout: 10 * time.Second, Username: as.User, Password: as.Password, Logger: zap.NewNop()})
	must(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}
