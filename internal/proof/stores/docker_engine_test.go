//go:build containers

package stores

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/elector-go/elector/internal/proof/internal/engine"
)

// These tests need Docker's engine and the images: make test-containers.

// eachContainer runs the test against a container of every kind.
func eachContainer(t *testing.T, test func(t *testing.T, s *Store)) {
	for _, kind := range Kinds {
		if images[kind] == nil {
			continue
		}
		t.Run(kind, func(t *testing.T) { test(t, startContainer(t, kind)) })
	}
}

func startContainer(t *testing.T, kind string) *Store {
	t.Helper()
	begun := time.Now()
	s, err := docker(t.Context(), kind, quick)
	must(t, err)
	t.Logf("%v, ready after %v", s, time.Since(begun).Round(time.Millisecond))
	t.Cleanup(func() { must(t, s.Stop()) })
	return s
}

// labelled returns the containers with the label, running or not.
func labelled(t *testing.T, label string) []string {
	t.Helper()
	p, err := engine.Connect()
	must(t, err)
	defer p.Close()
	// The test's own context ends before clean-ups run.
	list, err := p.Client().ContainerList(context.Background(), client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", label)})
	must(t, err)
	var ids []string
	for _, c := range list.Items {
		ids = append(ids, c.ID)
	}
	return ids
}

func TestDockerStartAndStop(t *testing.T) {
	eachContainer(t, func(t *testing.T, s *Store) {
		l := open(t, s)
		put(t, l, "v")
		expect(t, l, "v")
		c := s.server.(*container)
		if n := len(labelled(t, c.guard.label())); n != 1 {
			t.Errorf("%d containers have its label", n)
		}
		if c.guard.guard == nil {
			t.Fatal("it has no guard process, although docker's command line is there")
		}
		must(t, s.Stop())
		if left := labelled(t, c.guard.label()); left != nil {
			t.Errorf("containers %v are left", left)
		}
		if left := alive(t, []int{c.guard.cmd.Process.Pid}); left != nil {
			t.Errorf("the guard %v is left", left)
		}
		must(t, s.Stop())
		if err := s.Restart(t.Context()); err == nil {
			t.Error("a stopped store can be restarted")
		}
	})
}

// Nothing but 127.0.0.1 has the ports: neither another address of this machine
// nor another port.
func TestDockerPortsAreLocal(t *testing.T) {
	eachContainer(t, func(t *testing.T, s *Store) {
		c := s.server.(*container)
		about, err := c.running.Inspect(t.Context())
		must(t, err)
		published := 0
		for inside, bindings := range about.NetworkSettings.Ports {
			for _, b := range bindings {
				published++
				if b.HostIP.String() != "127.0.0.1" || b.HostPort != strconv.Itoa(c.port) {
					t.Errorf("port %v is published on %v:%s", inside, b.HostIP, b.HostPort)
				}
			}
		}
		if published != 1 {
			t.Errorf("%d ports are published, want 1", published)
		}
		for network := range about.NetworkSettings.Networks {
			if network != "bridge" {
				t.Errorf("it is in the network %s, which no test removes", network)
			}
		}
		// The rest of the loopback network belongs to this machine as well.
		if conn, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.2", strconv.Itoa(c.port)), 5*time.Second); err == nil {
			conn.Close()
			t.Error("it answers on 127.0.0.2 too")
		}
	})
}

func TestDockerPauseAndContinue(t *testing.T) {
	eachContainer(t, func(t *testing.T, s *Store) {
		standing := open(t, s)
		put(t, standing, "v")
		must(t, s.Pause())
		answer := make(chan error, 1)
		go func() {
			_, err := standing.get(t.Context())
			answer <- err
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		<-ctx.Done() // a paused server has no way to answer, however long this is
		select {
		case err := <-answer:
			t.Fatalf("a paused store gave an answer, error %v", err)
		default:
		}
		must(t, s.Continue())
		if err := <-answer; err != nil {
			t.Fatalf("the request under way failed after Continue: %v", err)
		}
		expect(t, standing, "v")
	})
}

func TestDockerStopWhilePaused(t *testing.T) {
	eachContainer(t, func(t *testing.T, s *Store) {
		must(t, s.Pause())
		must(t, s.Stop())
		if left := labelled(t, s.server.(*container).guard.label()); left != nil {
			t.Errorf("containers %v are left", left)
		}
	})
}

func TestDockerKillAndRestart(t *testing.T) {
	eachContainer(t, func(t *testing.T, s *Store) {
		put(t, open(t, s), "v")
		address := s.Address
		must(t, s.Kill())
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			t.Error("something listens on the port of a killed store")
		}
		for name, f := range map[string]func() error{"Kill": s.Kill, "Pause": s.Pause, "Continue": s.Continue} {
			if err := f(); err == nil || !strings.Contains(err.Error(), "Restart") {
				t.Errorf("%s of a killed store says %v", name, err)
			}
		}
		must(t, s.Restart(t.Context()))
		expect(t, open(t, s), "v")

		before := s.PID
		must(t, s.Restart(t.Context())) // one that runs
		if s.PID == before {
			t.Error("Restart of a running store did not restart it")
		}
		expect(t, open(t, s), "v")

		must(t, s.Pause())
		must(t, s.Kill()) // one that stands
		must(t, s.Restart(t.Context()))
		must(t, s.Pause())
		must(t, s.Restart(t.Context())) // one that stands
		must(t, s.Continue())           // it does not stand any more
		expect(t, open(t, s), "v")
		if s.Address != address {
			t.Errorf("the address became %s, was %s", s.Address, address)
		}
	})
}

func TestDockerDeathIsReported(t *testing.T) {
	for _, kind := range Kinds {
		if images[kind] == nil {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			s, err := docker(t.Context(), kind, quick)
			must(t, err)
			c := s.server.(*container)
			_, err = c.provider.Client().ContainerKill(t.Context(), c.running.GetContainerID(), client.ContainerKillOptions{Signal: "KILL"})
			must(t, err)
			gone := c.provider.Client().ContainerWait(t.Context(), c.running.GetContainerID(), client.ContainerWaitOptions{})
			select {
			case <-gone.Result:
			case err := <-gone.Error:
				t.Fatal(err)
			}
			if err := s.Restart(t.Context()); err == nil {
				t.Error("Restart hides the death")
			}
			if err := s.Stop(); err == nil || !strings.Contains(err.Error(), "died by itself: exit status 137") {
				t.Errorf("Stop says %v", err)
			}
			if left := labelled(t, c.guard.label()); left != nil {
				t.Errorf("containers %v are left", left)
			}
		})
	}
}

func TestDockerTakenPort(t *testing.T) {
	defer func() { choosePort = freePort }()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	before := labelled(t, ownerLabel)
	calls := 0
	choosePort = func() (int, error) {
		if calls++; calls == 1 {
			return l.Addr().(*net.TCPAddr).Port, nil
		}
		return freePort()
	}
	s := startContainer(t, Etcd)
	put(t, open(t, s), "v")
	if calls != 2 {
		t.Errorf("%d ports were chosen, want 2", calls)
	}
	if n := len(labelled(t, ownerLabel)) - len(before); n != 1 {
		t.Errorf("%d containers are there, want 1", n)
	}
}

// A server that ends, or never answers, is an error with its log, and leaves
// nothing.
func TestDockerServerEnds(t *testing.T) {
	before := labelled(t, ownerLabel)
	c, err := newContainer(t.Context(), Etcd, image{
		port: "2379",
		command: func(string) []string {
			return []string{"/usr/local/bin/etcd", "--log-level=fatal", "--data-dir=/proc/etcd"}
		},
		ready: func(ctx context.Context, address string) error { return etcdReady(ctx, address, "", Login{}) },
	})
	if err == nil {
		t.Fatal("it started", c.stop())
	}
	if says := err.Error(); !strings.Contains(says, "exit status") || !strings.Contains(says, "/proc/etcd") {
		t.Errorf("it says %v", err)
	}
	if after := labelled(t, ownerLabel); len(after) > len(before) {
		t.Errorf("containers are left: %v, before %v", after, before)
	}
}

func TestDockerCancelledStart(t *testing.T) {
	before := labelled(t, ownerLabel)
	ctx, cancel := context.WithCancel(t.Context())
	c, err := newContainer(ctx, Etcd, image{
		port:    "2379",
		command: func(string) []string { return []string{"/usr/local/bin/etcd"} },
		ready: func(context.Context, string) error {
			cancel()
			return fmt.Errorf("not yet")
		},
	})
	if err == nil {
		t.Fatal("it started", c.stop())
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it says %v", err)
	}
	if after := labelled(t, ownerLabel); len(after) > len(before) {
		t.Errorf("containers are left: %v, before %v", after, before)
	}
}

func TestDockerEtcdWithAuth(t *testing.T) {
	t.Setenv("ELECTOR_TEST_METHOD", "docker")
	s, err := EtcdWithAuth(t.Context(), "mine/")
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	if !strings.HasPrefix(s.How, "Docker image") {
		t.Errorf("it is a %s", s.How)
	}
	must(t, s.Restart(t.Context())) // it knows the new password
	if _, err := etcdClient(t.Context(), s.Address, Login{s.User.User, "wrong"}); err == nil {
		t.Error("a wrong password will do")
	}
}

// dockerHelper makes a child start a container, tell its label and hang.
const dockerHelper = "ELECTOR_DOCKER_HELPER"

func init() {
	if os.Getenv(dockerHelper) == "" {
		return
	}
	s, err := docker(context.Background(), Etcd, quick)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(s.server.(*container).guard.label())
	for { // a select without cases would be a deadlock
		time.Sleep(time.Hour)
	}
}

// killedWithContainer returns the label of a container whose owner was killed.
func killedWithContainer(t *testing.T, env ...string) string {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(append(os.Environ(), dockerHelper+"=1"), env...)
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	line, _ := bufio.NewReader(out).ReadString('\n')
	must(t, child.Process.Kill())
	child.Wait()
	label := strings.TrimSpace(line)
	if !strings.HasPrefix(label, storeLabel+"=") {
		t.Fatalf("the child says %q", line)
	}
	return label
}

func TestDockerNothingOutlivesUs(t *testing.T) {
	label := killedWithContainer(t)
	for deadline := time.Now().Add(time.Minute); labelled(t, label) != nil; {
		if time.Now().After(deadline) {
			t.Fatalf("the container with %s is left", label)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Where there is no command line for the guard, the next start does it.
func TestDockerOrphansAreRemoved(t *testing.T) {
	label := killedWithContainer(t, "PATH="+t.TempDir())
	if labelled(t, label) == nil {
		t.Fatal("something else has removed the container: this test shows nothing")
	}
	ours := startContainer(t, Etcd) // its owner lives
	p, err := engine.Connect()
	must(t, err)
	must(t, lookForOrphans(t.Context(), p))
	if labelled(t, label) != nil {
		t.Error("the container whose owner was killed is left")
	}
	if labelled(t, ours.server.(*container).guard.label()) == nil {
		t.Fatal("our own container was removed too")
	}
	put(t, open(t, ours), "v")
}
