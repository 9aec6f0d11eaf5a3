package peers

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/elector-go/elector/internal/proof/stores"
)

var zookeepers = []Library{
	electorOn(stores.ZooKeeper),
	zkLock("zk-lock", "Lock has returned nil and no session event said expired: Lock itself has no signal of a loss", zk.StateExpired),
	zkLock("zk-lock/careful", "Lock has returned nil and no session event said expired or disconnected: a rule that users have to make for themselves",
		zk.StateExpired, zk.StateDisconnected),
}

// zkLock is the lock that comes with go-zookeeper, with the session's states at
// which its user stops.
func zkLock(name, belief string, stops ...zk.State) Library {
	return Library{
		Name:     name,
		Module:   "github.com/go-zookeeper/zk",
		Store:    stores.ZooKeeper,
		Belief:   belief,
		Settings: "session timeout; defaults",
		// Pings go out every third of the timeout, and the connection is given
		// up when nothing came for two thirds.
		Slowest: func(ttl time.Duration) time.Duration { return ttl / 3 },
		Open:    func(ctx context.Context, c Config) (Candidate, error) { return openZK(ctx, c, stops) },
	}
}

type zkCandidate struct {
	conn  *zk.Conn
	lock  *zk.Lock
	stops []zk.State
	leads atomic.Bool
}

func openZK(ctx context.Context, c Config, stops []zk.State) (Candidate, error) {
	z := &zkCandidate{stops: stops}
	there := make(chan struct{}, 1)
	conn, _, err := zk.Connect([]string{c.Address}, c.TTL, zk.WithLogInfo(false), zk.WithEventCallback(func(e zk.Event) {
		if e.Type != zk.EventSession {
			return
		}
		if e.State == zk.StateHasSession {
			select {
			case there <- struct{}{}:
			default:
			}
		}
		for _, s := range z.stops {
			if e.State == s {
				z.leads.Store(false)
			}
		}
	}))
	if err != nil {
		return nil, err
	}
	select {
	case <-there:
	case <-ctx.Done():
		conn.Close()
		return nil, ctx.Err()
	}
	z.conn, z.lock = conn, zk.NewLock(conn, "/"+c.Name, zk.WorldACL(zk.PermAll))
	return z, nil
}

func (z *zkCandidate) Campaign(ctx context.Context) error {
	result := make(chan error, 1)
	go func() { result <- z.lock.Lock() }()
	select {
	case err := <-result:
		z.leads.Store(err == nil)
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (z *zkCandidate) Leads() bool { return z.leads.Load() }

// Renewal is the header of a ping: the request's number -2, the operation 11.
func (z *zkCandidate) Renewal() []byte { return []byte{0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 11} }

// Resign cannot be interrupted but by Close.
func (z *zkCandidate) Resign(context.Context) error {
	z.leads.Store(false)
	return z.lock.Unlock()
}

func (z *zkCandidate) Close() error {
	z.conn.Close()
	return nil
}
