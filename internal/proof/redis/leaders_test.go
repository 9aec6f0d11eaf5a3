package redis

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	_ "github.com/elector-go/elector/backends/redis"
	"github.com/elector-go/elector/internal/proof/stores"
)

// candidate opens a candidate whose leases are longer than the test.
func candidate(t *testing.T, url, id string) *elector.Elector {
	t.Helper()
	e, err := elector.Open(t.Context(), url, "office", &elector.Options{ID: id, TTL: 2 * time.Minute, RenewEvery: 30 * time.Second, RequestTimeout: 2 * time.Second, ReleaseTimeout: time.Second, Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	return e
}

// lead makes a candidate lead at once.
func lead(t *testing.T, e *elector.Elector) *elector.Lease {
	t.Helper()
	lease, err := e.TryCampaign(t.Context())
	must(t, err)
	return lease
}

// A primary that syncs each write and its replica, with durability=lossy: A resigns, the
// replica loses its link, B acquires, and the primary dies. The promoted replica knows of
// A's release and not of B, so C leads while B's lease is valid. Both leases report
// that this may happen, and without durability=lossy each of the servers is refused
// at each step.
func TestLossyPairHasTwoLeaders(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	const lossy = "?durability=lossy"
	refused := func(when, url, reason string) {
		t.Helper()
		b, err := backends.Open(ctx, url)
		if err == nil {
			must(t, b.Close())
		}
		if !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), reason) || !strings.Contains(err.Error(), "durability=lossy") {
			t.Errorf("%s: %v; want ErrMisconfigured with %q", when, err, reason)
		}
	}
	primary := begin(t, func() (*stores.Store, error) { return stores.StartRedis(ctx, stores.RedisDurable...) })
	door := newDoor(t, primary.Address)
	host, port, err := net.SplitHostPort(door.Addr().String())
	must(t, err)
	replica := begin(t, func() (*stores.Store, error) {
		return stores.StartRedis(ctx, append(stores.RedisDurable, "--replicaof", host, port)...)
	})
	at := dial(t, primary.Address)
	await(t, ctx, "the replica to be connected", func() bool { return at.number("WAIT", "1", "100") == 1 })
	refused("a primary with a replica", primary.URL, "1 replicas")

	a := candidate(t, primary.URL+lossy, "A")
	must(t, lead(t, a).Release(ctx))
	must(t, a.Close())
	copied := dial(t, replica.Address)
	await(t, ctx, "the replica to have A's release", func() bool {
		content, _ := copied.do("GET", "elector:office").(string)
		r, err := backends.Decode("office", []byte(content))
		return err == nil && r.Vacant()
	})

	door.Close()
	at.number("CLIENT", "KILL", "TYPE", "replica")
	refused("a primary whose replica has lost its link", primary.URL, "a replica was connected")
	b := candidate(t, primary.URL+lossy, "B")
	first := lead(t, b)
	must(t, primary.Kill())
	copied.do("REPLICAOF", "NO", "ONE") // as Sentinel does
	refused("a promoted replica", replica.URL, "was promoted")
	c := candidate(t, replica.URL+lossy, "C")
	second := lead(t, c)

	if first.Check() != nil || second.Check() != nil {
		t.Errorf("the leases of B and C are not both valid: %v, %v; then package redis need not refuse replicas", first.Check(), second.Check())
	}
	if first.Lossy() == "" || second.Lossy() == "" {
		t.Error("a lease does not report that another process may lead")
	}
	t.Logf("two leaders at once: B with token %d, C with token %d", first.Token(), second.Token())
	must(t, second.Release(ctx))
	must(t, c.Close())

	if err := b.Close(); err == nil {
		t.Error("B's release reached a server that is dead")
	}
}

// One server that syncs each write, and the same story: it is killed right after it
// acknowledged B, and C is kept out.
func TestDurableServerHasOneLeader(t *testing.T) {
	s := begin(t, func() (*stores.Store, error) { return stores.StartRedis(t.Context(), stores.RedisDurable...) })
	a := candidate(t, s.URL, "A")
	defer a.Close()
	must(t, lead(t, a).Release(t.Context()))
	b := candidate(t, s.URL, "B")
	defer func() { must(t, b.Close()) }()
	lease := lead(t, b)
	must(t, s.Kill())
	must(t, s.Restart(t.Context()))
	c := candidate(t, s.URL, "C")
	defer c.Close()
	if _, err := c.TryCampaign(t.Context()); !errors.Is(err, elector.ErrHeld) {
		t.Errorf("C campaigns after the server was killed and restarted: %v, want ErrHeld", err)
	}
	must(t, lease.Check())
	must(t, lease.Proclaim(t.Context(), "B goes on"))
	if lease.Lossy() != "" {
		t.Errorf("lossy: %s", lease.Lossy())
	}
}
