package data

import (
	"context"
	"net/url"

	goredis "github.com/redis/go-redis/v9"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/redis"
)

// A redisData has a list of writes for each election.
type redisData struct{ client *goredis.Client }

// RedisRights are what writing and reading the data takes.
var RedisRights = []string{"~data:*", "+rpush", "+lrange"}

func openRedis(u *url.URL) Data {
	password, _ := u.User.Password()
	return redisData{goredis.NewClient(&goredis.Options{Addr: u.Host, Username: u.User.Username(), Password: password, Protocol: 2, MaxRetries: -1, ContextTimeoutEnabled: true, DisableIdentity: true})}
}

func (d redisData) Write(ctx context.Context, lease backends.Lease, election string, w Write) error {
	_, err := redis.Commit(ctx, lease, redis.Command{"RPUSH", "data:" + election, w.String()})
	return err
}

func (d redisData) Read(ctx context.Context, election string) (all []Write, err error) {
	lines, err := d.client.LRange(ctx, "data:"+election, 0, -1).Result()
	if err != nil {
		return nil, err
	}
	for _, line := range lines {
		w, err := parse(line)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, nil
}

func (d redisData) Close() error { return d.client.Close() }
