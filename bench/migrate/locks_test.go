package migrate

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/url"
	"sync"
	"testing"
	"time"

	"cirello.io/dynamolock/v2"
	"cirello.io/pglock"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	_ "github.com/lib/pq"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/elector-go/elector/internal/proof/stores"
)

// Each old lock keeps its promise to version B: a process that was told to stop keeps
// the lock until its work has returned, however long that takes, and the next one has
// it then.
func TestOldLocks(t *testing.T) {
	for name, c := range map[string]struct {
		open    func(t *testing.T) (first, second oldLock)
		overrun time.Duration // for which the work goes on: longer than the lease, or than a waiter pauses
	}{
		"client-go":  {clientGo, 3 * time.Second},
		"pglock":     {pgLock, 3 * pglockLease / 2},
		"dynamolock": {dynamoLock, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keepsUntilReturn(t, c.open, c.overrun)
		})
	}
}

func keepsUntilReturn(t *testing.T, open func(*testing.T) (first, second oldLock), overrun time.Duration) {
	first, second := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var mutex sync.Mutex
	working := ""
	enter := func(who string) {
		mutex.Lock()
		defer mutex.Unlock()
		if working != "" {
			t.Errorf("%s begins while %s works", who, working)
		}
		working = who
	}
	leave := func() {
		mutex.Lock()
		defer mutex.Unlock()
		working = ""
	}
	leads := make(chan struct{})
	told, stop := context.WithCancel(ctx)
	defer stop()
	var both sync.WaitGroup
	both.Go(func() {
		err := first(told, func(ctx context.Context) error {
			enter("the first")
			defer leave()
			close(leads)
			<-ctx.Done()
			time.Sleep(overrun) // the work, not a wait for something
			return nil
		})
		if err != nil {
			t.Errorf("the first: %v", err)
		}
	})
	select {
	case <-leads:
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	}
	both.Go(func() {
		err := second(ctx, func(context.Context) error {
			enter("the second")
			leave()
			return nil
		})
		if err != nil {
			t.Errorf("the second: %v", err)
		}
	})
	stop()
	both.Wait()
}

const pglockLease = 4 * time.Second

func pgLock(t *testing.T) (first, second oldLock) {
	s := begin(t, stores.Postgres)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.RawQuery = "sslmode=disable" // lib/pq insists on TLS otherwise
	db, err := sql.Open("postgres", u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	client := func(owner string) *pglock.Client {
		c, err := pglock.New(db, pglock.WithLeaseDuration(pglockLease), pglock.WithHeartbeatFrequency(pglockLease/8), pglock.WithOwner(owner))
		if err == nil {
			err = c.TryCreateTable()
		}
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	with := func(c *pglock.Client) oldLock {
		return func(ctx context.Context, lead func(context.Context) error) error {
			return UnderPGLock(ctx, c, "invoices", lead)
		}
	}
	return with(client("first")), with(client("second"))
}

func dynamoLock(t *testing.T) (first, second oldLock) {
	stores.AnyCredentials()
	s := begin(t, stores.DynamoDB)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	settings, err := config.LoadDefaultConfig(t.Context(), config.WithRegion(u.Query().Get("region")))
	if err != nil {
		t.Fatal(err)
	}
	db := dynamodb.NewFromConfig(settings, func(o *dynamodb.Options) { o.BaseEndpoint = aws.String(u.Query().Get("endpoint")) })
	client := func(owner string) *dynamolock.Client {
		c, err := dynamolock.New(db, "old_locks", dynamolock.WithOwnerName(owner))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	one := client("first")
	if _, err := one.CreateTable("old_locks"); err != nil {
		t.Fatal(err)
	}
	created := dynamodb.NewTableExistsWaiter(db, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = 20 * time.Millisecond })
	if err := created.Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("old_locks")}, time.Minute); err != nil {
		t.Fatal(err)
	}
	with := func(c *dynamolock.Client) oldLock {
		return func(ctx context.Context, lead func(context.Context) error) error {
			return UnderDynamoLock(ctx, c, "invoices", lead)
		}
	}
	return with(one), with(client("second"))
}

func begin(t *testing.T, kind string) *stores.Store {
	t.Helper()
	s, err := stores.Start(t.Context(), kind)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// A lease is a Lease of Kubernetes in memory.
type lease struct {
	mutex   sync.Mutex
	version int
	record  resourcelock.LeaderElectionRecord
}

// A lock is one candidate's access to a lease.
type lock struct {
	*lease
	id   string
	seen int
}

var resource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func (l *lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.version == 0 {
		return nil, nil, apierrors.NewNotFound(resource, "invoices")
	}
	l.seen = l.version
	r := l.record
	raw, err := json.Marshal(r)
	return &r, raw, err
}

func (l *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	l.seen = 0
	return l.Update(ctx, r)
}

func (l *lock) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.seen != l.version {
		return apierrors.NewConflict(resource, "invoices", errors.New("another version"))
	}
	l.version++
	l.seen, l.record = l.version, r
	return nil
}

func (l *lock) RecordEvent(string) {}
func (l *lock) Identity() string   { return l.id }
func (l *lock) Describe() string   { return l.id }

func clientGo(*testing.T) (first, second oldLock) {
	shared := &lease{}
	with := func(id string) oldLock {
		l := &lock{lease: shared, id: id}
		return func(ctx context.Context, lead func(context.Context) error) error {
			return UnderClientGo(klog.NewContext(ctx, klog.Logger{}), l, lead)
		}
	}
	return with("first"), with("second")
}
