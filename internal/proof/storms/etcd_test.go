package storms

import (
	"context"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/etcd"
	"github.com/elector-go/elector/internal/proof/stores"
)

func TestEtcd(t *testing.T) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{start(t, stores.Etcd).Address}, DialTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	storm := func(election string, write func(context.Context, *Attempt) error) Storm {
		var handles []backends.Backend
		for range 3 {
			handles = append(handles, etcd.New(client, "elector/"))
		}
		return Storm{Handles: handles, Election: election, Every: 25 * time.Millisecond, Pause: 40 * time.Millisecond, Seed: 1, Write: write}
	}
	pass(t, storm("guarded", func(ctx context.Context, a *Attempt) error {
		guard, err := etcd.Guard(a)
		if err != nil {
			return err
		}
		a.Pause()
		a.Send()
		answer, err := client.Txn(ctx).If(guard...).Then(clientv3.OpPut(fmt.Sprintf("data/guarded/%d", a.Number), fmt.Sprint(a.Token))).Commit()
		if err == nil && !answer.Succeeded {
			return backends.ErrStale
		}
		return err
	}))
}
