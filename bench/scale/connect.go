package scale

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"sync"
	"time"

	"cirello.io/dynamolock/v2"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-zookeeper/zk"
	_ "github.com/lib/pq"

	_ "github.com/elector-go/elector/backends/dynamodb"
	_ "github.com/elector-go/elector/backends/etcd"
	_ "github.com/elector-go/elector/backends/kubernetes"
	_ "github.com/elector-go/elector/backends/postgres"
	_ "github.com/elector-go/elector/backends/zookeeper"
)

// poolSize bounds the connections of a library that leaves them to
// database/sql, which has no bound by default: that would be one for each lock
// at the worst moment, and the server would refuse.
const poolSize = 16

func postgresPool(raw string) (*sql.DB, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, err
	}
	if q := u.Query(); !q.Has("sslmode") {
		q.Set("sslmode", "disable") // lib/pq insists on TLS otherwise
		u.RawQuery = q.Encode()
	}
	db, err := sql.Open("postgres", u.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(poolSize)
	db.SetMaxIdleConns(poolSize)
	return db, nil
}

func dynamoClient(ctx context.Context, raw string) (*dynamodb.Client, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, err
	}
	settings, err := config.LoadDefaultConfig(ctx, config.WithRegion(u.Query().Get("region")))
	if err != nil {
		return nil, err
	}
	return dynamodb.NewFromConfig(settings, func(o *dynamodb.Options) {
		if endpoint := u.Query().Get("endpoint"); endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
		}
	}), nil
}

func makeTable(ctx context.Context, db *dynamodb.Client, client *dynamolock.Client, table string) error {
	_, err := client.CreateTableWithContext(ctx, table)
	if there := (*types.ResourceInUseException)(nil); err != nil && !errors.As(err, &there) {
		return err
	}
	quick := func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay, o.MaxDelay = 20*time.Millisecond, time.Second }
	return dynamodb.NewTableExistsWaiter(db, quick).Wait(ctx, &dynamodb.DescribeTableInput{TableName: &table}, time.Minute)
}

// zkLocks share a session.
type zkLocks struct {
	conn *zk.Conn

	mutex   sync.Mutex
	held    int
	expired bool
}

func openZooKeeper(ctx context.Context, t task) (crowd, error) {
	c := &zkLocks{}
	there := make(chan struct{}, 1)
	var err error
	c.conn, _, err = zk.Connect([]string{t.Address}, t.TTL, zk.WithLogInfo(false), zk.WithEventCallback(func(e zk.Event) {
		switch {
		case e.Type != zk.EventSession:
		case e.State == zk.StateHasSession:
			select {
			case there <- struct{}{}:
			default:
			}
		case e.State == zk.StateExpired:
			c.mutex.Lock()
			c.expired = true
			c.mutex.Unlock()
		}
	}))
	if err != nil {
		return nil, err
	}
	select {
	case <-there:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *zkLocks) hold(_ context.Context, name string) error {
	err := zk.NewLock(c.conn, "/"+name, zk.WorldACL(zk.PermAll)).Lock()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err == nil {
		c.held++
	}
	return err
}

func (c *zkLocks) lost() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.expired {
		return c.held
	}
	return 0
}
