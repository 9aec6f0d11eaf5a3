package peers

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/bsm/redislock"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/elector-go/elector/internal/proof/stores"
)

var redises = []Library{
	electorOn(stores.Redis),
	{
		Name:   "redislock",
		Module: "github.com/bsm/redislock",
		Store:  stores.Redis,
		Belief: "Lock.TTL, which asks the server, returns more than 0: the library has no signal of a loss",
		Settings: "the lock's TTL is the TTL; the library does not refresh by itself, so its user does here, every third of the TTL; " +
			"LinearBackoff of 100 ms, as in its examples, without a limit; go-redis's defaults",
		// The server counts from when the refresh came, so a late answer changes
		// nothing until the next one is due.
		Slowest: refreshEvery,
		Remote:  true,
		Open:    openRedisLock,
	},
	{
		Name:   "rueidislock",
		Module: "github.com/redis/rueidis",
		Store:  stores.Redis,
		Belief: "the context that WithContext gives has not ended",
		Settings: "KeyValidity is the TTL, extended every half of it, the default; KeyMajority 1 and NoLoopTracking, as its README has it for one server; " +
			"TryNextAfter, which bounds a try, 1 s instead of 20 ms: with the default a waiter did not lead within a minute of a release, on a machine where a synced write took longer",
		// A time limit of the validity from when the extension was sent.
		Slowest: func(ttl time.Duration) time.Duration { return ttl },
		Open:    openRueidisLock,
	},
}

// refreshEvery is how often the user of redislock refreshes: the library's
// documentation does not say.
func refreshEvery(ttl time.Duration) time.Duration { return ttl / 3 }

// RefreshRedisLock refreshes a lock as its user has to, until ctx ends or another
// process has the lock.
func RefreshRedisLock(ctx context.Context, l *redislock.Lock, ttl time.Duration) {
	for tick := time.NewTicker(refreshEvery(ttl)); ; {
		select {
		case <-tick.C:
			if err := l.Refresh(ctx, ttl, nil); errors.Is(err, redislock.ErrNotObtained) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// ObtainRedisLock waits for a lock as long as ctx, or for a day.
func ObtainRedisLock(ctx context.Context, client *redislock.Client, name string, ttl time.Duration) (*redislock.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, 24*time.Hour) // without a deadline it would wait for one TTL
	defer cancel()
	return client.Obtain(ctx, name, ttl, &redislock.Options{RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond)})
}

type redisLockCandidate struct {
	client     *goredis.Client
	name       string
	ttl        time.Duration
	life       context.Context
	end        context.CancelFunc
	refreshing chan struct{} // closed when the refreshing, if it began, is over
	lock       atomic.Pointer[redislock.Lock]
}

func openRedisLock(ctx context.Context, c Config) (Candidate, error) {
	r := &redisLockCandidate{client: goredis.NewClient(&goredis.Options{Addr: c.Address}), name: c.Name, ttl: c.TTL, refreshing: make(chan struct{})}
	r.life, r.end = context.WithCancel(context.Background())
	if err := r.client.Ping(ctx).Err(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *redisLockCandidate) Campaign(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.life, cancel)()
	l, err := ObtainRedisLock(ctx, redislock.New(r.client), r.name, r.ttl)
	if err != nil {
		return err
	}
	r.lock.Store(l)
	go func() { defer close(r.refreshing); RefreshRedisLock(r.life, l, r.ttl) }()
	return nil
}

// Leads is a request.
func (r *redisLockCandidate) Leads() bool {
	l := r.lock.Load()
	if l == nil {
		return false
	}
	left, err := l.TTL(r.life)
	return err == nil && left > 0
}

// Renewal is the lock's value and the TTL as arguments of the script: that of TTL
// does not have the second.
func (r *redisLockCandidate) Renewal() []byte {
	l, ttl := r.lock.Load(), fmt.Sprint(r.ttl.Milliseconds())
	return fmt.Appendf(nil, "%s%s\r\n$%d\r\n%s\r\n", l.Token(), l.Metadata(), len(ttl), ttl)
}

func (r *redisLockCandidate) Resign(ctx context.Context) error {
	l := r.lock.Swap(nil)
	r.end()
	<-r.refreshing
	return l.Release(ctx)
}

func (r *redisLockCandidate) Close() error {
	r.end()
	return r.client.Close()
}

// RueidisLocker makes what all locks of a process can share.
func RueidisLocker(address string, ttl time.Duration) (rueidislock.Locker, error) {
	return rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{address}},
		KeyValidity:    ttl,
		KeyMajority:    1,
		NoLoopTracking: true,
		TryNextAfter:   time.Second,
	})
}

type rueidisLockCandidate struct {
	locker  rueidislock.Locker
	name    string
	life    context.Context
	end     context.CancelFunc
	leading atomic.Pointer[context.Context]
	release context.CancelFunc
}

func openRueidisLock(_ context.Context, c Config) (Candidate, error) {
	locker, err := RueidisLocker(c.Address, c.TTL)
	if err != nil {
		return nil, err
	}
	r := &rueidisLockCandidate{locker: locker, name: c.Name}
	r.life, r.end = context.WithCancel(context.Background())
	return r, nil
}

// Campaign ends the candidate if ctx ends first: the context of the lock is one of
// the context of the campaign, and so of the candidate's life here.
func (r *rueidisLockCandidate) Campaign(ctx context.Context) error {
	defer context.AfterFunc(ctx, r.end)()
	leading, release, err := r.locker.WithContext(r.life, r.name)
	if err != nil {
		return err
	}
	r.release = release
	r.leading.Store(&leading)
	return nil
}

func (r *rueidisLockCandidate) Leads() bool {
	leading := r.leading.Load()
	return leading != nil && (*leading).Err() == nil
}

// Renewal is the key, which nothing else names once the lock is held.
func (r *rueidisLockCandidate) Renewal() []byte { return []byte(":0:" + r.name) }

func (r *rueidisLockCandidate) Resign(ctx context.Context) error {
	r.leading.Store(nil)
	return within(ctx, r.release)
}

// Close releases the lock if it is held, as the end of its context does.
func (r *rueidisLockCandidate) Close() error {
	r.end()
	ctx, cancel := context.WithTimeout(context.Background(), closingTime)
	defer cancel()
	return within(ctx, r.locker.Close)
}

// within calls f, which cannot be interrupted, and waits for it as long as ctx.
func within(ctx context.Context, f func()) error {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
