package stores

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// StartRedis starts a Redis, as a process, that keeps its data in memory only. It is
// no store of elections: Redis loses acknowledged writes in a failover. See Start.
func StartRedis(ctx context.Context) (*Store, error) {
	program, libraries, err := binaries.Redis()
	if err != nil {
		return nil, fmt.Errorf("no Redis to test with: %w; run make stores, or install Redis", err)
	}
	s, err := newServer(ctx, recipe{
		name:    "Redis",
		program: "/usr/bin/env", // becomes the server
		arguments: func(s *server) []string {
			return []string{
				"LD_LIBRARY_PATH=" + libraries, program, "--bind", "127.0.0.1", "--port", strconv.Itoa(s.port),
				"--dir", s.dir, "--save", "", "--appendonly", "no",
			}
		},
		ready: func(ctx context.Context, s *server) error { return redisReady(ctx, s.address(), s.pid) },
		quit:  syscall.SIGTERM,
	})
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
