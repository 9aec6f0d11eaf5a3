package stores

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	goredis "github.com/redis/go-redis/v9"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// RedisDurable are the settings with which one server keeps what it acknowledged.
var RedisDurable = []string{"--appendonly", "yes", "--appendfsync", "always"}

// startRedisStore starts a Redis that is a store of elections.
func startRedisStore(ctx context.Context) (*Store, error) { return StartRedis(ctx, RedisDurable...) }

// StartRedis starts a Redis, as a process, that keeps its data in memory only, unless
// the settings, as --appendonly yes, are others. See Start.
func StartRedis(ctx context.Context, settings ...string) (*Store, error) {
	return startRedis(ctx, recipe{
		name: "Redis",
		prepare: func(_ context.Context, s *server) error { // or it would forget its users when it ends
			return os.WriteFile(filepath.Join(s.dir, "users.acl"), nil, 0o600)
		},
		arguments: func(s *server) []string {
			return append([]string{"--bind", "127.0.0.1", "--port", strconv.Itoa(s.port), "--dir", s.dir, "--aclfile", filepath.Join(s.dir, "users.acl"),
				"--save", "", "--appendonly", "no"}, settings...)
		},
	})
}

// RedisClient connects as the default user, who may do everything.
func (s *Store) RedisClient() *goredis.Client { return redisClient(s.Address) }

func redisClient(address string) *goredis.Client {
	return goredis.NewClient(&goredis.Options{Addr: address, Protocol: 2, MaxRetries: -1, ContextTimeoutEnabled: true})
}

// RedisDo sends a command as the default user.
func (s *Store) RedisDo(ctx context.Context, words ...any) error {
	c := s.RedisClient()
	defer c.Close()
	return c.Do(ctx, words...).Err()
}

// RedisUser makes a user who has the rights, and nothing else.
func (s *Store) RedisUser(ctx context.Context, l Login, rights ...string) error {
	words := []any{"ACL", "SETUSER", l.User, "reset", "on", ">" + l.Password}
	for _, right := range rights {
		words = append(words, right)
	}
	return errors.Join(s.RedisDo(ctx, words...), s.RedisDo(ctx, "ACL", "SAVE"))
}

// What docs/rights.md says.
var (
	RedisCandidate = []string{"~elector:*", "&elector:", "+get", "+set", "+eval", "+evalsha", "+publish", "+subscribe", "+scan", "+ping", "+info", "+config|get"}
	RedisReader    = []string{"%R~elector:*", "&elector:", "+get", "+scan", "+subscribe", "+ping"}
)

// StartSentinel starts a Redis Sentinel, as a process, that watches a primary by the
// name "primary". Two of its kind decide that it is down, when it has been silent for
// a second.
func StartSentinel(ctx context.Context, primary string) (*Store, error) {
	host, port, err := net.SplitHostPort(primary)
	if err != nil {
		return nil, err
	}
	config := func(s *server) string { return filepath.Join(s.dir, "sentinel.conf") } // it keeps there what it learns
	return startRedis(ctx, recipe{
		name: "Redis Sentinel",
		before: func(s *server) error {
			return os.WriteFile(config(s), fmt.Appendf(nil, `bind 127.0.0.1
port %d
dir %s
sentinel monitor primary %s %s 2
sentinel down-after-milliseconds primary 1000
sentinel failover-timeout primary 10000
`, s.port, s.dir, host, port), 0o600)
		},
		arguments: func(s *server) []string { return []string{config(s), "--sentinel"} },
	})
}

// startRedis starts the program in one of its parts.
func startRedis(ctx context.Context, r recipe) (*Store, error) {
	program, libraries, err := binaries.Redis()
	if err != nil {
		return nil, fmt.Errorf("no Redis to test with: %w; run make stores, or install Redis", err)
	}
	arguments := r.arguments
	r.program, r.quit = "/usr/bin/env", syscall.SIGTERM // becomes the server
	r.arguments = func(s *server) []string {
		return append([]string{"LD_LIBRARY_PATH=" + libraries, program}, arguments(s)...)
	}
	r.ready = func(ctx context.Context, s *server) error { return redisReady(ctx, s.address(), s.pid) }
	s, err := newServer(ctx, r)
	if err != nil {
		return nil, err
	}
	started := &Store{Kind: Redis, URL: "redis://" + s.address(), Address: s.address(), PID: s.pid, server: s}
	version, err := redisVersion(ctx, started)
	if err != nil {
		return nil, errors.Join(err, started.Stop())
	}
	started.How = fmt.Sprintf("local process %s %s (%s)", r.name, version, program)
	return started, nil
}

// redisVersion asks the server.
func redisVersion(ctx context.Context, s *Store) (string, error) {
	c := s.RedisClient()
	defer c.Close()
	info, err := c.Info(ctx, "server").Result()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(info) {
		if version, found := strings.CutPrefix(line, "redis_version:"); found {
			return strings.TrimSpace(version), nil
		}
	}
	return "", errors.New("the server does not tell its version")
}

// redisReady asks for the process id, which no other server has, and whether the data
// are loaded. A Sentinel has none.
func redisReady(ctx context.Context, address string, pid int) error {
	c := redisClient(address)
	defer c.Close()
	info, err := c.Info(ctx).Result()
	switch {
	case err != nil:
		return err
	case !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", pid)):
		return errors.New("another Redis answers on its port")
	case strings.Contains(info, "loading:1\r\n"):
		return errors.New("it is loading its data")
	}
	return nil
}
