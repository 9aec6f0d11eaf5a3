package stores

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// StartRedis starts a Redis, as a process, that keeps its data in memory only, unless
// the settings, as --appendonly yes, are others. It is no store of elections: Redis
// loses acknowledged writes in a failover, see internal/proof/redis. See Start.
func StartRedis(ctx context.Context, settings ...string) (*Store, error) {
	return startRedis(ctx, recipe{
		name: "Redis",
		arguments: func(s *server) []string {
			return append([]string{"--bind", "127.0.0.1", "--port", strconv.Itoa(s.port), "--dir", s.dir, "--save", "", "--appendonly", "no"}, settings...)
		},
	})
}

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
	return &Store{
		Kind: "redis", How: "local process " + program,
		URL: "redis://" + s.address(), Address: s.address(), PID: s.pid, server: s,
	}, nil
}

// redisReady asks for the process id, which no other server has.
func redisReady(ctx context.Context, address string, pid int) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(conn, "INFO server\r\n"); err != nil {
		return err
	}
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if is, found := strings.CutPrefix(lines.Text(), "process_id:"); found {
			if is != strconv.Itoa(pid) {
				return errors.New("another Redis answers on its port")
			}
			return nil
		}
	}
	return errors.New("what answers on its port is no Redis")
}
