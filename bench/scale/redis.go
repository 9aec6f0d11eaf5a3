package scale

import (
	"context"
	"sync"

	"github.com/bsm/redislock"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis/rueidislock"

	"github.com/elector-go/elector/bench/peers"
)

// redisLocks share a client. Each is refreshed by a goroutine of its user.
type redisLocks struct {
	client *redislock.Client
	task   task

	mutex sync.Mutex
	held  []*redislock.Lock
}

func openRedisLock(t task) crowd {
	return &redisLocks{client: redislock.New(goredis.NewClient(&goredis.Options{Addr: t.Address})), task: t}
}

func (c *redisLocks) hold(ctx context.Context, name string) error {
	l, err := peers.ObtainRedisLock(ctx, c.client, name, c.task.TTL)
	if err != nil {
		return err
	}
	go peers.RefreshRedisLock(context.Background(), l, c.task.TTL)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.held = append(c.held, l)
	return nil
}

// lost asks the server about each lock.
func (c *redisLocks) lost() (n int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, l := range c.held {
		if left, err := l.TTL(context.Background()); err != nil || left <= 0 {
			n++
		}
	}
	return n
}

// rueidisLocks share a locker.
type rueidisLocks struct {
	locker rueidislock.Locker

	mutex sync.Mutex
	held  []context.Context // each ends with its lock
}

func openRueidisLock(t task) (crowd, error) {
	locker, err := peers.RueidisLocker(t.Address, t.TTL)
	return &rueidisLocks{locker: locker}, err
}

func (c *rueidisLocks) hold(_ context.Context, name string) error {
	leading, _, err := c.locker.WithContext(context.Background(), name)
	if err != nil {
		return err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.held = append(c.held, leading)
	return nil
}

func (c *rueidisLocks) lost() (n int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, leading := range c.held {
		if leading.Err() != nil {
			n++
		}
	}
	return n
}
