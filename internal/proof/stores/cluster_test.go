package stores

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// clusterCases are done on one cluster, one after the other: each leaves it
// whole.
var clusterCases = []struct {
	name string
	test func(t *testing.T, c *Cluster)
}{
	{"follower isolated", func(t *testing.T, c *Cluster) { isolates(t, c, (leader(t, c)+1)%3) }},
	{"leader isolated", func(t *testing.T, c *Cluster) { isolates(t, c, leader(t, c)) }},
	{"leader stopped", stopsLeader},
	{"leader killed", killsLeader},
	{"follower restarted, leader isolated", meetAnew},
	{atGates, meetAtGates},
}

const atGates = "members meet at gates"

func TestCluster(t *testing.T) {
	for _, kind := range []string{Etcd, ZooKeeper} {
		t.Run(kind, func(t *testing.T) { testCluster(t, kind) })
	}
}

func testCluster(t *testing.T, kind string) {
	begun := time.Now()
	c, err := StartCluster(t.Context(), kind, 3)
	must(t, err)
	t.Cleanup(func() { must(t, c.Stop()) })
	t.Logf("three of %s, ready after %v", c.server(0).name, time.Since(begun).Round(time.Millisecond))
	for _, k := range clusterCases {
		if kind == Consul && k.name == atGates { // its members gossip past the gates
			continue
		}
		ready(t, c)
		t.Run(k.name, func(t *testing.T) { k.test(t, c) })
	}
}

func ready(t *testing.T, c *Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	must(t, c.Ready(ctx))
}

func leader(t *testing.T, c *Cluster) int {
	t.Helper()
	i, err := c.Leader(t.Context())
	must(t, err)
	return i
}

// A clerk reads and writes one record through one member of a cluster.
type clerk struct {
	backends.Backend
	c      *Cluster
	member int
}

func clerkAt(t *testing.T, c *Cluster, member int) clerk {
	t.Helper()
	b, err := backends.Open(t.Context(), c.Members[member].URL)
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	return clerk{b, c, member}
}

// increment writes the record anew, with the next token.
func (k clerk) increment(ctx context.Context, prev backends.Record) (backends.Record, error) {
	next := backends.Record{Holder: "clerk", Token: prev.Token + 1, TTL: time.Second, RenewEvery: time.Second / 4}
	next.Attempt = backends.Attempt{Nonce: rand.Text(), Sequence: 1} // it acquires: a renewal would need a session that lives on
	return k.Swap(ctx, "record", prev, next)
}

// mustIncrement tries until the member answers.
func (k clerk) mustIncrement(t *testing.T) (written backends.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	must(t, until(ctx, 2*time.Second, func(ctx context.Context) error {
		prev, err := k.Load(ctx, "record")
		if err != nil {
			return err
		}
		written, err = k.increment(ctx, prev)
		return err
	}))
	return written
}

// mustShow waits until the member answers, and wants that record of it.
func (k clerk) mustShow(t *testing.T, want backends.Record) {
	t.Helper()
	var got backends.Record
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	must(t, until(ctx, 2*time.Second, func(ctx context.Context) (err error) {
		if got, err = k.Load(ctx, "record"); err != nil || got.Token >= want.Token || k.c.Kind != ZooKeeper {
			return err
		}
		// ZooKeeper's leader answers before it has applied what a follower has acknowledged.
		if l, err := k.c.Leader(ctx); err != nil || l != k.member {
			return err
		}
		return errors.New("the leader is behind")
	}))
	if got.Token != want.Token {
		t.Errorf("member %d shows token %d, want %d", k.member, got.Token, want.Token)
	}
}

// mustRefuse shows that the member neither reads nor writes.
func (k clerk) mustRefuse(t *testing.T, prev backends.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if r, err := k.Load(ctx, "record"); err == nil {
		t.Errorf("member %d, cut off from the others, has read token %d", k.member, r.Token)
	}
	k.mustNotWrite(t, prev)
}

func (k clerk) mustNotWrite(t *testing.T, prev backends.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := k.increment(ctx, prev); err == nil {
		t.Errorf("member %d, cut off from the others, has written", k.member)
	}
}

// notices waits until a member knows of no leader any more.
func notices(t *testing.T, c *Cluster, member int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	must(t, until(ctx, 2*time.Second, func(ctx context.Context) error {
		_, _, err := c.ask.leads(ctx, c.Members[member])
		if err == nil {
			return errors.New("it still has a leader")
		}
		return nil
	}))
}

// isolates shows that an isolated member can neither read nor write, that the
// others go on, and that it catches up afterwards.
func isolates(t *testing.T, c *Cluster, at int) {
	cutOff, connected := clerkAt(t, c, at), clerkAt(t, c, (at+1)%3)
	before := cutOff.mustIncrement(t)

	must(t, c.Isolate(at))
	cutOff.mustNotWrite(t, before)
	notices(t, c, at)
	cutOff.mustRefuse(t, before)
	ready(t, c)
	if l := leader(t, c); l == at {
		t.Errorf("member %d leads although it is cut off", l)
	}
	after := connected.mustIncrement(t)
	cutOff.mustRefuse(t, before)

	must(t, c.Join(at))
	ready(t, c)
	cutOff.mustShow(t, after)
	connected.mustShow(t, cutOff.mustIncrement(t))
}

func stopsLeader(t *testing.T, c *Cluster) {
	old := leader(t, c)
	other := clerkAt(t, c, (old+1)%3)
	other.mustIncrement(t)
	must(t, c.Members[old].Pause())
	ready(t, c)
	if l := leader(t, c); l == old {
		t.Errorf("member %d leads although it stands still", l)
	}
	written := other.mustIncrement(t)
	must(t, c.Members[old].Continue())
	ready(t, c)
	clerkAt(t, c, old).mustShow(t, written)
}

// killsLeader kills the leader, and then all members.
func killsLeader(t *testing.T, c *Cluster) {
	old := leader(t, c)
	other := clerkAt(t, c, (old+1)%3)
	other.mustIncrement(t)
	must(t, c.Members[old].Kill())
	ready(t, c)
	written := other.mustIncrement(t)
	must(t, c.Members[old].Restart(t.Context()))
	ready(t, c)
	clerkAt(t, c, old).mustShow(t, written)

	must(t, c.Restart(t.Context()))
	ready(t, c)
	other.mustShow(t, written)
}

// meetAnew shows that two members connect to each other while the third is isolated.
func meetAnew(t *testing.T, c *Cluster) {
	at := leader(t, c)
	other, restarted := (at+1)%3, (at+2)%3
	connected := clerkAt(t, c, other)
	connected.mustIncrement(t)
	must(t, c.Isolate(at))
	must(t, c.Members[restarted].Kill())
	must(t, c.Members[restarted].Restart(t.Context()))
	ready(t, c)
	written := connected.mustIncrement(t)
	clerkAt(t, c, restarted).mustShow(t, written)
	must(t, c.Join(at))
	ready(t, c)
	clerkAt(t, c, at).mustShow(t, written)
}

func TestClusterOfAnotherKind(t *testing.T) {
	if c, err := StartCluster(t.Context(), Postgres, 3); err == nil {
		t.Errorf("there is a cluster %v", c)
	}
}

func TestClusterMissingProgram(t *testing.T) {
	t.Setenv("ELECTOR_STORES_DIR", t.TempDir())
	for _, kind := range []string{Etcd, ZooKeeper} {
		if c, err := StartCluster(t.Context(), kind, 3); err == nil {
			t.Errorf("there is a cluster %v", c)
		}
	}
}

// What was started is gone when one member cannot be.
func TestClusterCancelledStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := StartCluster(ctx, Etcd, 3); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", c, err)
	}
}
