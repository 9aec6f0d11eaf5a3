package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

const handovers = 10

// handover kills the command ten times, under elector run and under etcdctl lock,
// both with their default TTLs on etcd.
func (d *demo) handover(ctx context.Context) error {
	etcdctl, err := buildEtcdctl(ctx, d.dir)
	if err != nil {
		return err
	}
	fmt.Printf("\nHandover after the command was killed, %d times on etcd:\n", handovers)
	ours, err := newLane(d.places[0], d.program, d.self, d.dir, 200)
	if err != nil {
		return err
	}
	ours.flags = []string{"--ttl", "15s"}
	theirs, err := newLane(d.places[0], etcdctl, d.self, d.dir, 201)
	if err != nil {
		return err
	}
	for _, x := range []struct {
		name      string
		l         *lane
		start     func() (*wrapper, error)
		challenge time.Duration
	}{
		{"elector run, TTL 15 s", ours, func() (*wrapper, error) { return ours.start(ctx) }, 16500 * time.Millisecond},
		{"etcdctl lock, TTL 10 s", theirs, func() (*wrapper, error) {
			c := exec.CommandContext(ctx, etcdctl, "--endpoints", d.etcd.Address, "lock", theirs.election, d.self, memberArgument, theirs.journal.path, "command")
			c.Stdout, c.Stderr = theirs.log, theirs.log
			return watched(c)
		}, 10 * time.Second},
	} {
		took, n, longest, err := x.l.handovers(ctx, x.start)
		x.l.end()
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", x.name, err, x.l.tail())
		}
		slices.Sort(took)
		median := (took[handovers/2-1] + took[handovers/2]) / 2
		fmt.Printf("  %-24s median %3d ms, most %3d ms, %.4f of a takeover after a crash; %d pairs of terms alive at once, up to %v\n", x.name,
			median.Milliseconds(), took[handovers-1].Milliseconds(), median.Seconds()/x.challenge.Seconds(), n, longest.Round(time.Millisecond))
		if x.l == ours && n > 0 {
			d.broken = append(d.broken, fmt.Sprintf("%d handovers after a killed command overlap", n))
		}
	}
	return nil
}

// handovers kills the command of the latest term, and returns how long it took until
// the next term's command ran.
func (l *lane) handovers(ctx context.Context, start func() (*wrapper, error)) (took []time.Duration, n int, longest time.Duration, err error) {
	var last uint64
	for len(took) <= handovers {
		for i, w := range l.wrappers {
			if w == nil || w.gone() {
				if l.wrappers[i], err = start(); err != nil {
					return nil, 0, 0, err
				}
			}
		}
		t, err := l.after(ctx, last)
		if err != nil {
			return nil, 0, 0, err
		}
		sleepUntil(ctx, clock.Shared()+500*time.Millisecond) // the other one waits
		killed := clock.Shared()
		for _, pid := range t.pids {
			if isMember(pid, "command") {
				err = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if err != nil {
			return nil, 0, 0, err
		}
		next, err := l.after(ctx, t.token)
		if err != nil {
			return nil, 0, 0, err
		}
		took = append(took, next.first-killed)
		last = t.token
	}
	terms, err := l.journal.read()
	n, longest = overlaps(terms)
	return took[1:], n, longest, err
}

// after waits for a term above a token with a whole family.
func (l *lane) after(ctx context.Context, token uint64) (term, error) {
	patience := time.Now().Add(enough)
	for ctx.Err() == nil && time.Now().Before(patience) {
		terms, err := l.journal.read()
		if err != nil {
			return term{}, err
		}
		if len(terms) > 0 && terms[len(terms)-1].token > token && len(terms[len(terms)-1].pids) == 3 {
			return terms[len(terms)-1], nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return term{}, errors.Join(fmt.Errorf("no next term within %v", enough), context.Cause(ctx))
}

// buildEtcdctl builds it from its Go module, as cmd/fetch builds the server.
func buildEtcdctl(ctx context.Context, dir string) (string, error) {
	module := filepath.Join(dir, "etcdctl-module")
	if err := os.Mkdir(module, 0o700); err != nil {
		return "", err
	}
	content := fmt.Sprintf("module build\n\ngo 1.25.0\n\nrequire go.etcd.io/etcd/etcdctl/v3 v%s\n", binaries.EtcdVersion)
	if err := os.WriteFile(filepath.Join(module, "go.mod"), []byte(content), 0o600); err != nil {
		return "", err
	}
	program := filepath.Join(dir, "etcdctl")
	c := exec.CommandContext(ctx, "go", "build", "-mod=mod", "-o", program, "go.etcd.io/etcd/etcdctl/v3")
	c.Dir = module
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building etcdctl from its Go module: %w\n%s", err, strings.TrimSpace(string(out)))
	}
	return program, nil
}
