//go:build redis

package storms

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/redis"
	"github.com/elector-go/elector/internal/proof/stores"
)

func TestRedis(t *testing.T) {
	s := start(t, stores.Redis)
	client := s.RedisClient()
	t.Cleanup(func() { client.Close() })
	handle := func() backends.Backend {
		b, err := backends.Open(t.Context(), s.URL)
		must(t, err)
		t.Cleanup(func() { must(t, b.Close()) })
		return b
	}
	// The list of an election has the acquisitions, with a minus, and the writes.
	push := func(a backends.Acquisition, sign string) redis.Command {
		return redis.Command{"RPUSH", "data:" + a.Election, sign + strconv.FormatUint(a.Record.Token, 10)}
	}
	storm := func(election string, write func(context.Context, *Attempt, backends.Acquisition) error) Storm {
		return Storm{Handles: []backends.Backend{handle(), handle(), handle()}, Election: election, Every: 25 * time.Millisecond, Pause: 40 * time.Millisecond, Seed: 1,
			Write: func(ctx context.Context, a *Attempt) error {
				is, err := a.Acquisition()
				if err != nil {
					return err
				}
				return write(ctx, a, is)
			},
			Acquired: func(ctx context.Context, h backends.Lease) error {
				is, err := h.Acquisition()
				if err != nil {
					return err
				}
				return client.Do(ctx, push(is, "-")...).Err()
			},
			Order: func(ctx context.Context) (acquisitions, writes []Mark, err error) {
				all, err := client.LRange(ctx, "data:"+election, 0, -1).Result()
				for i, entry := range all {
					digits, acquired := strings.CutPrefix(entry, "-")
					token, err := strconv.ParseUint(digits, 10, 64)
					if err != nil {
						return nil, nil, err
					}
					if acquired {
						acquisitions = append(acquisitions, Mark{token, int64(i)})
					} else {
						writes = append(writes, Mark{token, int64(i)})
					}
				}
				return acquisitions, writes, err
			}}
	}
	// read returns the record, or ErrStale if another acquisition made it.
	read := func(ctx context.Context, a backends.Acquisition) (string, error) {
		content, err := client.Get(ctx, redis.DefaultPrefix+a.Election).Result()
		if err != nil {
			return "", err
		}
		if r, err := backends.Decode(a.Election, []byte(content)); err != nil || r.Token != a.Record.Token || r.Vacant() {
			return "", errors.Join(backends.ErrStale, err)
		}
		return content, nil
	}

	t.Run("guarded", func(t *testing.T) {
		pass(t, storm("guarded-"+run, func(ctx context.Context, a *Attempt, is backends.Acquisition) error {
			a.Pause()
			a.Send()
			_, err := redis.Commit(ctx, a, push(is, ""))
			return err
		}))
	})
	t.Run("a script of its own", func(t *testing.T) {
		pass(t, storm("script-"+run, func(ctx context.Context, a *Attempt, is backends.Acquisition) error {
			key, prefix, err := redis.Guard(a)
			if err != nil {
				return err
			}
			a.Pause()
			a.Send()
			return guardedPush(ctx, client, key, prefix, push(is, ""))
		}))
	})
	t.Run("read, then push", func(t *testing.T) {
		caught(t, storm("read-push-"+run, func(ctx context.Context, a *Attempt, is backends.Acquisition) error {
			if _, err := read(ctx, is); err != nil {
				return err
			}
			a.Pause()
			a.Send()
			return client.Do(ctx, push(is, "")...).Err()
		}), late)
	})
	t.Run("the whole record compared", func(t *testing.T) {
		caught(t, storm("whole-"+run, func(ctx context.Context, a *Attempt, is backends.Acquisition) error {
			content, err := read(ctx, is)
			if err != nil {
				return err
			}
			a.Pause()
			a.Send()
			return guardedPush(ctx, client, redis.DefaultPrefix+a.Election, content, push(is, ""))
		}), falselyRefused)
	})
	t.Run("a lease", func(t *testing.T) { redisLease(t, s, client, handle()) })
}

// documented is the script of redis.Guard's documentation, with a write.
var documented = goredis.NewScript(`
local record = redis.call('GET', KEYS[1])
if string.sub(record or '', 1, #ARGV[1]) ~= ARGV[1] then return redis.error_reply('STALE') end
return redis.call(ARGV[2], KEYS[2], ARGV[3])`)

func guardedPush(ctx context.Context, client *goredis.Client, key, prefix string, push redis.Command) error {
	err := documented.Run(ctx, client, []string{key, push[1].(string)}, prefix, push[0], push[2]).Err()
	if goredis.HasErrorPrefix(err, "STALE") {
		return backends.ErrStale
	}
	return err
}

// One guard is good for as long as a lease lasts, whatever the lease writes meanwhile,
// and no longer. On a server that may lose writes there is none.
func redisLease(t *testing.T, s *stores.Store, client *goredis.Client, b backends.Backend) {
	name := "lease-" + run
	e, lease := lead(t, b, name)
	key, prefix, err := redis.Guard(lease)
	must(t, err)
	passes := func(when string, want error) {
		t.Helper()
		wants(t, "a guard "+when, guardedPush(t.Context(), client, key, prefix, redis.Command{"RPUSH", "data:" + name, "1"}), want)
	}
	passes("after the acquisition", nil)
	must(t, lease.Proclaim(t.Context(), "a value"))
	passes("after a renewal with a value", nil)
	answers, err := redis.Commit(t.Context(), lease, redis.Command{"SET", "data:text", "x"}, redis.Command{"GET", "data:none"}, redis.Command{"GET", "data:text"})
	if err != nil || len(answers) != 3 || answers[1] != nil || answers[2] != "x" {
		t.Errorf("Commit answers %q, %v", answers, err)
	}
	answers, err = redis.Commit(t.Context(), lease, redis.Command{"SET", "data:text", "y"}, redis.Command{"RPUSH", "data:text", "z"}, redis.Command{"SET", "data:text", "z"})
	if err == nil || !strings.Contains(err.Error(), "command 2 of 3") || len(answers) != 1 || client.Get(t.Context(), "data:text").Val() != "y" {
		t.Errorf("Commit with a command that fails answers %q, %v", answers, err)
	}
	must(t, lease.Release(t.Context()))
	passes("after the release", backends.ErrStale)
	_, err = redis.Commit(t.Context(), lease)
	wants(t, "Commit after the release", err, elector.ErrResigned)
	_, err = e.TryCampaign(t.Context())
	must(t, err)
	passes("after another acquisition", backends.ErrStale)

	lossy, err := backends.Open(t.Context(), s.URL+"?durability=lossy")
	must(t, err)
	t.Cleanup(func() { must(t, lossy.Close()) })
	_, lease = lead(t, lossy, "lossy-"+run)
	_, err = redis.Commit(t.Context(), lease)
	wants(t, "Commit on a lossy server", err, elector.ErrMisconfigured)
	_, _, err = redis.Guard(lease)
	wants(t, "Guard on a lossy server", err, elector.ErrMisconfigured)
}
