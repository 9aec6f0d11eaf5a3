package peers

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector"

	_ "github.com/elector-go/elector/backends/dynamodb"
	_ "github.com/elector-go/elector/backends/etcd"
	_ "github.com/elector-go/elector/backends/kubernetes"
	_ "github.com/elector-go/elector/backends/nats"
	_ "github.com/elector-go/elector/backends/postgres"
	_ "github.com/elector-go/elector/backends/redis"
	_ "github.com/elector-go/elector/backends/zookeeper"
)

const electorModule = "github.com/elector-go/elector"

// electorOn is Ours without a trace.
func electorOn(store string) Library { return Ours(store, nil) }

// Ours is this repository's library on a kind of store, with its defaults, but
// for the TTL. All candidates share the trace, which may be nil. Nothing is
// logged, as with the others, so that it does not count.
func Ours(store string, trace *elector.Trace) Library {
	return Library{
		Name:     ourName,
		Module:   electorModule,
		Store:    store,
		Belief:   "Lease.Check returns nil",
		Settings: "defaults; on ZooKeeper a session of 30 s, which no lease rests on; on PostgreSQL the table that it makes, with a fillfactor of 50",
		// RequestTimeout: half of RenewEvery, which is a third of H.
		Slowest: func(ttl time.Duration) time.Duration { return ttl * 9 / 10 / 3 / 2 },
		Open: func(ctx context.Context, c Config) (Candidate, error) {
			e, err := elector.Open(ctx, c.URL, c.Name, &elector.Options{ID: c.ID, TTL: c.TTL, Trace: trace, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				return nil, err
			}
			return &ours{Elector: e, name: c.Name}, nil
		},
	}
}

type ours struct {
	*elector.Elector
	name  string
	lease atomic.Pointer[elector.Lease]
}

func (o *ours) Campaign(ctx context.Context) error {
	l, err := o.Elector.Campaign(ctx)
	o.lease.Store(l)
	return err
}

func (o *ours) Leads() bool {
	l := o.lease.Load()
	return l != nil && l.Check() == nil
}

// Lost returns why the candidate does not lead any more, nil while it does.
func (o *ours) Lost() error {
	if l := o.lease.Load(); l != nil {
		return l.Check()
	}
	return nil
}

// Observe calls changed with each change of the leader, the first included,
// until ctx ends, and returns why it ended.
func (o *ours) Observe(ctx context.Context, changed func()) error {
	for _, err := range o.Elector.Observe(ctx) {
		if err != nil {
			return err
		}
		changed()
	}
	return nil
}

// Renewal is the election's name: a holder's only requests that name it are
// its renewals.
func (o *ours) Renewal() []byte { return []byte(o.name) }
