package chaos

import (
	"context"
	"errors"

	"github.com/elector-go/elector/internal/proof/stores"
)

// clusterFaults break one of three servers.
var clusterFaults = []Fault{
	clusterFault("store: leader kill -9", (*Round).storeLeader,
		func(_ context.Context, _ *stores.Cluster, m *stores.Store, _ int) error { return m.Kill() },
		func(ctx context.Context, _ *stores.Cluster, m *stores.Store, _ int) error { return m.Restart(ctx) }),
	// For longer than the TTL: then the leader that goes on believes, for a
	// moment, in leases and sessions of the past.
	clusterFault("store: leader SIGSTOP", (*Round).storeLeader,
		func(_ context.Context, _ *stores.Cluster, m *stores.Store, _ int) error { return m.Pause() },
		func(_ context.Context, _ *stores.Cluster, m *stores.Store, _ int) error { return m.Continue() }),
	clusterFault("store: member cut off", (*Round).anyMember,
		func(_ context.Context, c *stores.Cluster, _ *stores.Store, i int) error { return c.Isolate(i) },
		func(_ context.Context, c *stores.Cluster, _ *stores.Store, i int) error { return c.Join(i) }),
	clusterFault("store: member kill -9", (*Round).anyMember,
		func(_ context.Context, _ *stores.Cluster, m *stores.Store, _ int) error { return m.Kill() },
		func(ctx context.Context, _ *stores.Cluster, m *stores.Store, _ int) error { return m.Restart(ctx) }),
}

func clusterFault(name string, choose func(*Round, context.Context) (int, error), harm, mend func(context.Context, *stores.Cluster, *stores.Store, int) error) Fault {
	return Fault{
		Name: name,
		on:   func(p *Place) bool { return p.cluster != nil },
		strike: func(ctx context.Context, r *Round) error {
			i, err := choose(r, ctx)
			if err != nil {
				return err
			}
			defer r.breaks(name, "")()
			c := r.place.cluster
			m := c.Members[i]
			return errors.Join(harm(ctx, c, m, i), r.last(ctx, 1.2, 2.5), mend(ctx, c, m, i), c.Ready(ctx))
		},
	}
}

func (r *Round) storeLeader(ctx context.Context) (leader int, err error) {
	// They may elect just then.
	err = insist(ctx, func() (err error) { leader, err = r.place.cluster.Leader(ctx); return err })
	return leader, err
}

func (r *Round) anyMember(context.Context) (int, error) {
	return r.random.IntN(len(r.place.cluster.Members)), nil
}
