package scale

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"cirello.io/dynamolock/v2"
	"cirello.io/pglock"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/internal/proof/stores"
)

// A crowd is a process's part in many elections, over as few connections as the
// library makes possible.
type crowd interface {
	// hold blocks until this process leads an election.
	hold(ctx context.Context, name string) error

	// lost counts the elections that were led and are not any more.
	lost() int
}

// A task tells a child what to do.
type task struct {
	Library, Store string
	URL, Address   string // of the store; a proxy's may be in it
	TTL            time.Duration
	Elections      int
	Prefix         string // of the elections' names
	Wait           bool   // another process leads: campaign in all at once
	Profiles       string // where profiles of the holding go, the beginning of their files' names; empty for none
}

// election names an election of the crowd, from 1.
func (t task) election(i int64) string { return fmt.Sprintf("%s_%d", t.Prefix, i) }

// open connects as the library's users would who have many elections.
func open(ctx context.Context, t task) (crowd, error) {
	switch t.Library {
	case "elector":
		return openElector(ctx, t)
	case "etcd":
		return openEtcd(t)
	case clientGo:
		return openClientGo(t)
	case "zk-lock":
		return openZooKeeper(ctx, t)
	case "pglock":
		return openPGLock(t)
	case "dynamolock":
		return openDynamoLock(ctx, t)
	case "redislock":
		return openRedisLock(t), nil
	case "rueidislock":
		return openRueidisLock(t)
	}
	return nil, fmt.Errorf("there is no crowd of %s", t.Library)
}

// electors share a backend.
type electors struct {
	backend backends.Backend
	ttl     time.Duration

	mutex   sync.Mutex
	leases  []*elector.Lease
	waiting map[string]bool // elections that another process was seen to lead
	seen    func(elections int)

	warnings atomic.Int64
}

// A counter counts warnings, and passes nothing on.
type counter struct {
	slog.Handler
	warnings *atomic.Int64
}

func (c counter) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }
func (c counter) Handle(_ context.Context, r slog.Record) error {
	if n := c.warnings.Add(1); n < 10 || n%1000 == 0 {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "error" {
				println(n, r.Message, a.Value.String())
			}
			return true
		})
	}
	return nil
}
func (c counter) WithAttrs([]slog.Attr) slog.Handler { return c }
func (c counter) WithGroup(string) slog.Handler      { return c }

func openElector(ctx context.Context, t task) (crowd, error) {
	b, err := backends.Open(ctx, t.URL)
	return &electors{backend: b, ttl: t.TTL, waiting: map[string]bool{}}, err
}

func (c *electors) hold(_ context.Context, name string) error {
	outcome := make(chan error, 1)
	c.run(name, outcome)
	return <-outcome
}

// run campaigns and leads in a goroutine of its own, the one that a user of Run
// has. It sends the outcome of the campaign, once.
func (c *electors) run(name string, outcome chan<- error) {
	o := &elector.Options{TTL: c.ttl, Logger: slog.New(counter{slog.DiscardHandler, &c.warnings})}
	if c.seen != nil {
		o.Trace = &elector.Trace{Observed: func(_ context.Context, i elector.LeaderInfo) {
			if !i.Leader.Vacant() {
				c.sees(name)
			}
		}}
	}
	e, err := elector.New(c.backend, name, o)
	if err != nil {
		outcome <- err
		return
	}
	go func() {
		won := false
		err := e.Run(context.Background(), func(ctx context.Context, l *elector.Lease) error {
			c.mutex.Lock()
			c.leases = append(c.leases, l)
			c.mutex.Unlock()
			if !won {
				won = true
				outcome <- nil
			}
			<-ctx.Done()
			return nil
		})
		if !won {
			outcome <- fmt.Errorf("the election was not won: %w", err)
		}
	}()
}

// sees counts elections that have a leader.
func (c *electors) sees(name string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !c.waiting[name] {
		c.waiting[name] = true
		c.seen(len(c.waiting))
	}
}

func (c *electors) lost() (n int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, l := range c.leases {
		if l.Check() != nil {
			n++
		}
	}
	return n
}

// etcdElections share a session, whose keep-alives hold all of them.
type etcdElections struct {
	session *concurrency.Session

	mutex sync.Mutex
	held  []*concurrency.Election
}

func openEtcd(t task) (crowd, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{t.Address}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	session, err := concurrency.NewSession(client, concurrency.WithTTL(int(t.TTL/time.Second)))
	return &etcdElections{session: session}, err
}

func (c *etcdElections) hold(ctx context.Context, name string) error {
	e := concurrency.NewElection(c.session, "/"+name)
	err := e.Campaign(ctx, "scale")
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.held = append(c.held, e)
	return err
}

func (c *etcdElections) lost() int {
	select {
	case <-c.session.Done():
		return len(c.held)
	default:
		return 0
	}
}

// clientGo is the variant that a process with many elections would choose: it
// releases them on its way out, and no request hangs for ever. It costs what the
// others do while elections are held.
const clientGo = "client-go/timeout+release"

// clientGoElections share a client.
type clientGoElections struct {
	client coordinationv1.LeasesGetter
	ttl    time.Duration

	mutex sync.Mutex
	held  []context.Context // each ends with its leading
}

func openClientGo(t task) (crowd, error) {
	client, err := peers.LeaseClient(t.URL, t.TTL, true)
	return &clientGoElections{client: client, ttl: t.TTL}, err
}

func (c *clientGoElections) hold(ctx context.Context, name string) error {
	won, ended := make(chan context.Context, 1), make(chan error, 1)
	config := peers.Config{Name: name, ID: "scale", TTL: c.ttl}
	go func() {
		ended <- peers.RunClientGo(context.Background(), c.client, config, func(ctx context.Context) { won <- ctx })
	}()
	select {
	case leading := <-won:
		c.mutex.Lock()
		defer c.mutex.Unlock()
		c.held = append(c.held, leading)
		return nil
	case err := <-ended:
		return errors.Join(errors.New("the election was not won, or lost at once"), err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *clientGoElections) lost() (n int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, leading := range c.held {
		if leading.Err() != nil {
			n++
		}
	}
	return n
}

// pgLocks share a client, each with a heartbeat of its own.
type pgLocks struct {
	client *pglock.Client

	mutex sync.Mutex
	over  int
}

func openPGLock(t task) (crowd, error) {
	db, err := postgresPool(t.URL)
	if err != nil {
		return nil, err
	}
	client, err := pglock.New(db, pglock.WithLeaseDuration(t.TTL), pglock.WithHeartbeatFrequency(t.TTL/4), pglock.WithCustomTable(t.Prefix))
	if err == nil {
		err = client.TryCreateTable()
	}
	return &pgLocks{client: client}, err
}

func (c *pgLocks) hold(ctx context.Context, name string) error {
	won, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- c.client.Do(context.Background(), name, func(ctx context.Context, _ *pglock.Lock) error {
			close(won)
			<-ctx.Done()
			c.mutex.Lock()
			defer c.mutex.Unlock()
			c.over++
			return nil
		})
	}()
	select {
	case <-won:
		return nil
	case err := <-ended:
		return errors.Join(errors.New("the lock was not won"), err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *pgLocks) lost() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.over
}

// dynamoLocks share a client, which renews with as many workers as there are
// processors.
type dynamoLocks struct {
	client *dynamolock.Client

	mutex sync.Mutex
	held  []*dynamolock.Lock
}

func openDynamoLock(ctx context.Context, t task) (crowd, error) {
	db, err := dynamoClient(ctx, t.URL)
	if err != nil {
		return nil, err
	}
	client, err := dynamolock.New(db, t.Prefix, dynamolock.WithLeaseDuration(t.TTL), dynamolock.WithHeartbeatPeriod(t.TTL/4))
	if err == nil {
		err = makeTable(ctx, db, client, t.Prefix)
	}
	return &dynamoLocks{client: client}, err
}

func (c *dynamoLocks) hold(ctx context.Context, name string) error {
	l, err := c.client.AcquireLockWithContext(ctx, name, dynamolock.WithAdditionalTimeToWaitForLock(24*time.Hour))
	if err != nil {
		return err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.held = append(c.held, l)
	return nil
}

func (c *dynamoLocks) lost() (n int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, l := range c.held {
		if l.IsExpired() {
			n++
		}
	}
	return n
}

// libraries are those that are measured on each store, ours first.
var libraries = map[string][]string{
	stores.Etcd:       {"elector", "etcd"},
	stores.ZooKeeper:  {"elector", "zk-lock"},
	stores.Postgres:   {"elector", "pglock"},
	stores.DynamoDB:   {"elector", "dynamolock"},
	stores.Kubernetes: {"elector", clientGo},
	stores.Redis:      {"elector", "redislock", "rueidislock"},
	stores.NATS:       {"elector"},
}
