package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/moby/moby/client"

	"github.com/elector-go/elector/internal/proof/child"
)

const (
	engineStarts = time.Minute // much longer than it takes
	engineEnds   = time.Minute
)

// ensureEngine returns when an engine answers. If none does and we may, it
// installs and starts one; end ends that.
func ensureEngine(ctx context.Context) (end func() error, err error) {
	nothing := func() error { return nil }
	if ping(ctx) == nil || runtime.GOOS != "linux" || os.Getenv("DOCKER_HOST") != "" {
		return nothing, nil // the next command that needs it reports what is wrong with it
	}
	if os.Getuid() != 0 {
		return nil, errors.New("no Docker engine answers, and only root may start one; start it, or run this as root")
	}
	dockerd, err := findDockerd(ctx)
	if err != nil {
		return nil, err
	}
	if ping(ctx) == nil { // its package has started it
		return nothing, nil
	}
	// A machine that does not let it set up the firewall needs none: tests
	// reach containers through its own proxy on 127.0.0.1.
	var errs []error
	for _, options := range [][]string{nil, {"--iptables=false", "--ip6tables=false"}} {
		end, err := startDockerd(ctx, dockerd, options...)
		if err == nil {
			return end, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

func ping(ctx context.Context) error {
	c, err := client.New(client.FromEnv)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err = c.Ping(ctx, client.PingOptions{})
	return err
}

// findDockerd returns the engine's program, from Debian's package if it is not
// installed.
func findDockerd(ctx context.Context) (string, error) {
	look := func() (string, error) {
		if path, err := exec.LookPath("dockerd"); err == nil {
			return path, nil
		}
		return exec.LookPath("/usr/sbin/dockerd") // not in everybody's PATH
	}
	if path, err := look(); err == nil {
		return path, nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return "", errors.New("no Docker engine answers and none is installed; install Docker")
	}
	fmt.Println("docker: installing Debian's package docker.io")
	install := func() error { return aptGet(ctx, "install", "--yes", "--no-install-recommends", "docker.io") }
	if err := install(); err != nil {
		if err := errors.Join(aptGet(ctx, "update"), install()); err != nil {
			return "", fmt.Errorf("no Docker engine answers, and Debian's cannot be installed: %w", err)
		}
	}
	return look()
}

// aptGet waits for another process that holds apt's lock, but not for long.
func aptGet(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q", "-o", "DPkg::Lock::Timeout=60"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err, said)
	}
	return nil
}

// startDockerd starts the engine and waits until it answers.
func startDockerd(ctx context.Context, dockerd string, options ...string) (end func() error, err error) {
	dir, err := os.MkdirTemp("", "elector-dockerd-")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "log")
	log, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(dockerd, options...)
	cmd.Stdout, cmd.Stderr = log, log
	begun := time.Now()
	if err := child.StartUntil(cmd, syscall.SIGTERM); err != nil { // so that it ends its containers
		return nil, err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	stop := func() error {
		defer os.RemoveAll(dir)
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		select {
		case <-exited:
			return nil
		case <-time.After(engineEnds):
			return fmt.Errorf("dockerd (process %d) does not end within %v; it is left running", cmd.Process.Pid, engineEnds)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, engineStarts)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		if ping(ctx) == nil {
			fmt.Printf("docker: started %s %s (%.1f s)\n", dockerd, strings.Join(options, " "), time.Since(begun).Seconds())
			return func() error {
				fmt.Println("docker: ending the engine")
				return stop()
			}, nil
		}
		select {
		case err := <-exited:
			exited <- err
			said, _ := os.ReadFile(path)
			return nil, errors.Join(fmt.Errorf("dockerd %s ended: %w\n%s", strings.Join(options, " "), err, tail(string(said))), stop())
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("dockerd does not answer: %w", ctx.Err()), stop())
		case <-again.C:
		}
	}
}

func tail(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}
