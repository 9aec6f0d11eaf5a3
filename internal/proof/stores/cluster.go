package stores

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Cluster is one store of several servers, which are processes of this
// machine. Its methods, and those of its members, are for one goroutine at a
// time.
type Cluster struct {
	Kind string // Etcd, ZooKeeper, Consul or NATS

	// Members are the servers, with an address and a URL of their own. What is
	// done to one is not done to the others. Restart of a member blocks until
	// that one answers, for which a majority has to run: see Cluster.Restart.
	Members []*Store

	Path string // of its URLs

	network *peerNetwork
	ask     asker
}

// An asker knows how to talk to the members of one kind of cluster.
type asker interface {
	// answers asks the member for something that takes a majority.
	answers(ctx context.Context, s *Store) error

	// leads asks the member whether it is the leader, and in which term, round
	// or epoch: who leads in a later one is right.
	leads(ctx context.Context, s *Store) (leads bool, term uint64, err error)
}

// StartCluster starts a store of kind Etcd, ZooKeeper, Consul or NATS with n servers, and
// returns when all of them answer. They are local processes, which make stores
// has fetched; neither Docker nor the environment is asked. ctx bounds the
// start and not the life of the cluster: call Stop.
//
// A leader that is gone is replaced within about two seconds. It is not taken
// for gone sooner than after one second, so that a slow machine elects no
// leader by mistake.
func StartCluster(ctx context.Context, kind string, n int) (*Cluster, error) {
	makers := map[string]func(c *Cluster, token string, n int) ([]recipe, error){
		Etcd:      etcdCluster,
		ZooKeeper: zooKeeperCluster,
		Consul:    consulCluster,
		NATS:      natsCluster,
	}
	if makers[kind] == nil {
		return nil, fmt.Errorf("there is no cluster of %q; known are %s, %s, %s and %s", kind, Etcd, ZooKeeper, Consul, NATS)
	}
	c := &Cluster{Kind: kind, Members: make([]*Store, n), network: newPeerNetwork()}
	recipes, err := makers[kind](c, "cluster-"+rand.Text(), n)
	if err != nil {
		c.network.close()
		return nil, err
	}
	if err := c.start(ctx, recipes); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// start starts all at the same time: none of them is ready without others.
func (c *Cluster) start(ctx context.Context, recipes []recipe) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return together(len(recipes), func(i int) error {
		s, err := newServer(ctx, recipes[i])
		if err != nil {
			cancel() // no other member can succeed
			return fmt.Errorf("member %d: %w", i, err)
		}
		c.Members[i] = &Store{
			Kind:    c.Kind,
			How:     fmt.Sprintf("local process %s, member %d of %d", s.name, i, len(recipes)),
			URL:     c.Kind + "://" + s.address() + c.Path,
			Address: s.address(),
			PID:     s.pid,
			server:  s,
		}
		return nil
	})
}

// together calls do for 0 to n-1 at the same time.
func together(n int, do func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// URL is that of all members, for elector.Open.
func (c *Cluster) URL() string {
	var addresses []string
	for _, m := range c.Members {
		addresses = append(addresses, m.Address)
	}
	return c.Kind + "://" + strings.Join(addresses, ",") + c.Path
}

// Restart starts all members again on the same ports and data, after killing
// those that run, and blocks until they answer. ctx bounds that.
func (c *Cluster) Restart(ctx context.Context) error {
	for i := range c.Members {
		if !c.gone(i) {
			if err := c.Members[i].Kill(); err != nil {
				return err
			}
		}
	}
	return together(len(c.Members), func(i int) error { return c.Members[i].Restart(ctx) })
}

// Leader returns which of the members leads. It asks those that run and are
// not isolated, and blocks until they have answered or ctx ends. It returns an
// error when none of them leads; see Ready.
func (c *Cluster) Leader(ctx context.Context) (int, error) {
	type claim struct {
		member int
		term   uint64
	}
	var claims []claim
	var reasons []error
	for _, i := range c.running() {
		leads, term, err := c.ask.leads(ctx, c.Members[i])
		if err != nil {
			reasons = append(reasons, fmt.Errorf("member %d: %w", i, err))
		} else if leads {
			claims = append(claims, claim{i, term})
		}
	}
	if len(claims) == 0 {
		return 0, fmt.Errorf("no member of the %s cluster leads: %w", c.Kind, errors.Join(append(reasons, ctx.Err())...))
	}
	return slices.MaxFunc(claims, func(a, b claim) int { return cmp.Compare(a.term, b.term) }).member, nil
}

// Ready makes the bucket of NATS. It blocks until every member that runs and is not
// isolated has answered a request that takes a majority, asked after Ready was called, and
// one of them leads; or until ctx ends.
func (c *Cluster) Ready(ctx context.Context) error {
	// Attempts can be lost with a leader.
	for _, i := range c.running() {
		if err := until(ctx, 2*time.Second, func(ctx context.Context) error { return c.ask.answers(ctx, c.Members[i]) }); err != nil {
			return fmt.Errorf("member %d of the %s cluster does not answer: %w", i, c.Kind, err)
		}
	}
	return until(ctx, 2*time.Second, func(ctx context.Context) error {
		_, err := c.Leader(ctx)
		return err
	})
}

// running are the members that run and are not isolated.
func (c *Cluster) running() (members []int) {
	for i := range c.Members {
		if !c.gone(i) && len(c.server(i).frozen) == 0 && !c.network.isIsolated(i) {
			members = append(members, i)
		}
	}
	return members
}

func (c *Cluster) server(i int) *server { return c.Members[i].server.(*server) }

// gone reports whether a member's process has ended.
func (c *Cluster) gone(i int) bool { return c.server(i).hasExited() }

// Isolate cuts member i off from the other members, in both directions, until
// Join: what they send one another is held back, so that connections between
// them stay open and are silent. Its clients still reach it.
func (c *Cluster) Isolate(i int) error { return c.cut(i, true) }

// Join undoes Isolate.
func (c *Cluster) Join(i int) error { return c.cut(i, false) }

func (c *Cluster) cut(i int, off bool) error {
	if i < 0 || i >= len(c.Members) {
		return fmt.Errorf("the cluster has no member %d, only 0 to %d", i, len(c.Members)-1)
	}
	c.network.isolate(i, off)
	return nil
}

// Stop ends all members at once and removes their data. It returns an error if
// one of them had died without being told to.
func (c *Cluster) Stop() error {
	var errs []error
	for _, m := range c.Members {
		if m != nil { // one that could not be started
			errs = append(errs, m.Stop())
		}
	}
	c.network.close()
	return errors.Join(errs...)
}
