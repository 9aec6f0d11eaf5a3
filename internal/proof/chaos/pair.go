package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/raw"
	"github.com/elector-go/elector/internal/proof/stores"
)

// Pair is the name of the place that is a primary and its replica.
const Pair = stores.Redis + " pair"

// A pair is two Redis servers, of which one is the primary and the other one its replica.
// Candidates know the addresses of both. They accept by durability=lossy that a failover
// may lose what was acknowledged. The only failover here is a switchover, which loses
// nothing, so the checker demands of a pair what it demands of every store. No server of it
// is killed: one that starts again has the role of its first start.
type pair struct {
	servers [2]*stores.Store
	records [2]raw.Records
	primary int // of the two
}

func (p *Place) openPair(ctx context.Context) error {
	p.pair = &pair{}
	for i := range p.pair.servers {
		// A replica is there at once: by default a primary waits for others first.
		s, err := stores.StartRedis(ctx, append(stores.RedisDurable, "--repl-diskless-sync-delay", "0")...)
		if err != nil {
			return err
		}
		p.close = append(p.close, s.Stop)
		records, closeRecords, err := raw.Open(ctx, s)
		if err != nil {
			return err
		}
		p.close = append(p.close, closeRecords)
		p.pair.servers[i], p.pair.records[i] = s, records
	}
	first, second := p.pair.servers[0], p.pair.servers[1]
	host, port, err := net.SplitHostPort(first.Address)
	if err != nil {
		return err
	}
	if err := second.RedisDo(ctx, "REPLICAOF", host, port); err != nil {
		return err
	}
	if err := p.pair.ready(ctx); err != nil {
		return err
	}
	p.How = "a primary and a replica, 2 × " + first.How
	p.records = pairRecords{pair: p.pair}
	p.url = func(through func(string) string) string {
		return "redis://" + through(first.Address) + "," + through(second.Address) + "/0?durability=lossy"
	}
	p.dataURL = func(func(string) string) string { return "" } // guards refuse durability=lossy
	return nil
}

// ready waits until the one server is the primary and the other one follows it.
func (p *pair) ready(ctx context.Context) error {
	for {
		primary, err := redisReplication(ctx, p.servers[p.primary])
		replica, err2 := redisReplication(ctx, p.servers[1-p.primary])
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		if primary["role"] == "master" && strings.Contains(primary["slave0"], "state=online") &&
			replica["role"] == "slave" && replica["master_link_status"] == "up" {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the replica does not follow the primary: %w", context.Cause(ctx))
		}
	}
}

// redisReplication returns what a server shows of its replication.
func redisReplication(ctx context.Context, s *stores.Store) (map[string]string, error) {
	c := s.RedisClient()
	defer c.Close()
	text, err := c.Info(ctx, "replication").Result()
	if err != nil {
		return nil, err
	}
	shown := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		shown[name] = value
	}
	return shown, nil
}

// switchover makes the replica the primary, and the primary its replica, which is read-only.
// Without FORCE the primary takes no more writes and waits until the replica has them all.
// It keeps its connections.
func (p *pair) switchover(ctx context.Context) error {
	if err := p.ready(ctx); err != nil { // or the server refuses it
		return err
	}
	if err := p.servers[p.primary].RedisDo(ctx, "FAILOVER"); err != nil {
		return err
	}
	p.primary = 1 - p.primary
	return p.ready(ctx)
}

// pairRecords are the records of the server that is the primary.
type pairRecords struct {
	raw.JSON
	pair *pair
}

func (r pairRecords) now() raw.Records { return r.pair.records[r.pair.primary] }

func (r pairRecords) Get(ctx context.Context, election string) ([]byte, error) {
	return r.now().Get(ctx, election)
}

func (r pairRecords) Put(ctx context.Context, election string, content []byte) error {
	return r.now().Put(ctx, election, content)
}

func (r pairRecords) Replace(ctx context.Context, election string, old, content []byte) (bool, error) {
	return r.now().Replace(ctx, election, old, content)
}

func (r pairRecords) Delete(ctx context.Context, election string) error {
	return r.now().Delete(ctx, election)
}

// pairFault leaves a server that is read-only beside a new primary: for good, so a leader
// must be back soon.
var pairFault = Fault{Name: "store: switchover", on: func(p *Place) bool { return p.pair != nil }, felt: true, lasts: true, refuses: true, strike: func(ctx context.Context, r *Round) error {
	defer r.breaks("store: switchover", "")()
	return r.place.pair.switchover(ctx)
}}
