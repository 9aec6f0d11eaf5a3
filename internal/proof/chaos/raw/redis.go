package raw

import (
	"context"
	"errors"
	"net/url"

	goredis "github.com/redis/go-redis/v9"

	"github.com/elector-go/elector/backends/redis"
)

// A redisRecords has a key for each record.
type redisRecords struct {
	JSON
	client *goredis.Client
}

func openRedis(_ context.Context, u *url.URL) (Records, func() error, error) {
	c := goredis.NewClient(&goredis.Options{Addr: u.Host, Protocol: 2, MaxRetries: -1, ContextTimeoutEnabled: true})
	return redisRecords{client: c}, c.Close, nil
}

func (r redisRecords) Get(ctx context.Context, election string) ([]byte, error) {
	content, err := r.client.Get(ctx, redis.DefaultPrefix+election).Bytes()
	if errors.Is(err, goredis.Nil) {
		return nil, nil
	}
	return content, err
}

func (r redisRecords) Put(ctx context.Context, election string, content []byte) error {
	return r.client.Set(ctx, redis.DefaultPrefix+election, content, 0).Err()
}

var replaceRedis = goredis.NewScript(`if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1`)

func (r redisRecords) Replace(ctx context.Context, election string, old, content []byte) (bool, error) {
	n, err := replaceRedis.Run(ctx, r.client, []string{redis.DefaultPrefix + election}, old, content).Int()
	return n == 1, err
}

func (r redisRecords) Delete(ctx context.Context, election string) error {
	return r.client.Del(ctx, redis.DefaultPrefix+election).Err()
}
