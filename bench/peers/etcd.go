package peers

import (
	"context"
	"encoding/binary"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/elector-go/elector/internal/proof/stores"
)

var etcds = []Library{
	electorOn(stores.Etcd),
	{
		Name:     "etcd",
		Module:   "go.etcd.io/etcd/client/v3",
		Store:    stores.Etcd,
		Belief:   "Election.Campaign has returned nil and Session.Done is not closed",
		Settings: "session TTL; defaults",
		// A keep-alive goes out between a third and a half of the TTL after the
		// last answer, and the session ends a TTL after that answer.
		Slowest: func(ttl time.Duration) time.Duration { return ttl / 2 },
		Open:    openEtcd,
	},
}

type etcdCandidate struct {
	client   *clientv3.Client
	session  *concurrency.Session
	election *concurrency.Election
	id       string
	won      atomic.Bool
}

func openEtcd(ctx context.Context, c Config) (Candidate, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{c.Address}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	session, err := concurrency.NewSession(client, concurrency.WithTTL(int(c.TTL/time.Second)))
	if err != nil {
		client.Close()
		return nil, err
	}
	return &etcdCandidate{client: client, session: session, election: concurrency.NewElection(session, "/"+c.Name), id: c.ID}, nil
}

func (e *etcdCandidate) Campaign(ctx context.Context) error {
	err := e.election.Campaign(ctx, e.id)
	e.won.Store(err == nil)
	return err
}

// Observe calls changed with each change of the leader, the first included,
// until ctx ends or the library ends it, which it does without a reason.
func (e *etcdCandidate) Observe(ctx context.Context, changed func()) error {
	for range e.election.Observe(ctx) {
		changed()
	}
	return context.Cause(ctx)
}

func (e *etcdCandidate) Leads() bool {
	select {
	case <-e.session.Done():
		return false
	default:
		return e.won.Load()
	}
}

// Renewal is the body of a keep-alive: protobuf's field 1, the number of the
// lease.
func (e *etcdCandidate) Renewal() []byte {
	return binary.AppendUvarint([]byte{1 << 3}, uint64(e.session.Lease()))
}

func (e *etcdCandidate) Resign(ctx context.Context) error {
	e.won.Store(false)
	return e.election.Resign(ctx)
}

func (e *etcdCandidate) Close() error {
	e.session.Close() // the lease runs out if the store cannot be told
	return e.client.Close()
}
