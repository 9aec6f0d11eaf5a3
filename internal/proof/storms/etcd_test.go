package storms

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/etcd"
	"github.com/elector-go/elector/internal/proof/stores"
)

var takeovers = flag.Int("takeovers", 60, "takeovers of each storm")

func TestEtcd(t *testing.T) {
	server, err := stores.Start(t.Context(), stores.Etcd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Stop() })
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Address}, DialTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	storm := func(election string, write func(context.Context, *Attempt) error) Storm {
		var handles []backends.Backend
		for range 3 {
			handles = append(handles, etcd.New(client, "elector/"))
		}
		return Storm{Handles: handles, Election: election, Takeovers: *takeovers, Every: 25 * time.Millisecond, Pause: 40 * time.Millisecond, Seed: 1, Write: write}
	}
	result, err := storm("guarded", func(ctx context.Context, a *Attempt) error {
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
	}).Run(t.Context())
	t.Logf("guarded: %v", result)
	if err != nil || result.Late+result.Disordered+result.FalseRefusals+result.RenewalsFailed > 0 {
		t.Errorf("%v, %v", result, err)
	}
}
