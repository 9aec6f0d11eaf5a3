package fenced

import (
	"context"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/redis"
)

func redises(ctx context.Context, t *target) ([]pair, error) {
	b, err := backends.Open(ctx, t.url)
	if err != nil {
		return nil, err
	}
	t.closers = append(t.closers, func() { b.Close() })
	client := t.store.RedisClient()
	client.Options().Addr = t.address
	t.closers = append(t.closers, func() { client.Close() })
	return []pair{{"redis.Commit", func(ctx context.Context, n int) error {
		return client.Set(ctx, "fenced", n, 0).Err()
	}, func(ctx context.Context, n int) error {
		_, err := redis.Commit(ctx, through{t.lease, b}, redis.Command{"SET", "fenced", n})
		return err
	}}}, nil
}
