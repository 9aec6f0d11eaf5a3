//go:build linux

package guardian

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var bound = flag.Duration("patience", 20*time.Second, "how long what must happen may take")

const family = "parent grandchild daemon"

// A crib shows which members of a family are alive.
type crib struct {
	t    *testing.T
	fifo string
	file *os.File
	in   *bufio.Reader
	pids map[string]int

	isolate bool // the family has a PID namespace, so that pids are those inside
	as      uint32
}

func newCrib(t *testing.T) *crib {
	c := &crib{t: t, fifo: filepath.Join(t.TempDir(), "fifo"), pids: map[string]int{}}
	if err := syscall.Mkfifo(c.fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Open(c.fifo, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	c.file = os.NewFile(uintptr(fd), "fifo")
	c.in = bufio.NewReader(c.file)
	t.Cleanup(func() { c.file.Close() })
	return c
}

// born waits for members.
func (c *crib) born(names string) {
	c.t.Helper()
	c.file.SetReadDeadline(time.Now().Add(*bound))
	for missing := strings.Fields(names); len(missing) > len(c.pids); {
		text, err := c.in.ReadString('\n')
		var name string
		var pid int
		if _, scanned := fmt.Sscan(text, &name, &pid); scanned == nil {
			c.pids[name] = pid
		} else if err != nil && !strings.HasSuffix(err.Error(), "EOF") {
			c.t.Fatalf("%v were born; want %s: %v", c.pids, names, err)
		} else {
			time.Sleep(time.Millisecond) // the fifo has no writer yet
		}
	}
}

// gone waits until all are dead, and returns when they were.
func (c *crib) gone() Moment {
	c.t.Helper()
	c.file.SetReadDeadline(time.Now().Add(*bound))
	if text, err := c.in.ReadString('\n'); err == nil || !strings.HasSuffix(err.Error(), "EOF") {
		c.kill()
		c.t.Fatalf("some of %v are alive: %q, %v", c.pids, text, err)
	}
	return Now()
}

// goneNow fails unless all are dead at this moment.
func (c *crib) goneNow() {
	c.t.Helper()
	n, err := 1, error(nil)
	for n > 0 { // what members have said
		n, err = syscall.Read(int(c.file.Fd()), make([]byte, 1000))
	}
	if err != nil {
		c.kill()
		c.t.Errorf("descendants are alive once the command is done: %d, %v", n, err)
	}
}

func (c *crib) kill() {
	for _, pid := range c.pids {
		if !c.isolate {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// guarded starts a command under a guardian of this process.
func (c *crib) guarded(command Command) *Guarded {
	c.t.Helper()
	g, err := Start(command, "guardian", func(text string) { c.t.Log(text) })
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { g.process.Process.Kill(); await(c.t, g) })
	return g
}

func await(t *testing.T, g *Guarded) {
	t.Helper()
	select {
	case <-g.Done():
	case <-time.After(*bound):
		t.Fatal("the command is not done")
	}
}

// wrapper starts one, in a process of its own.
func (c *crib) wrapper(deadline Moment, stop string) (wrapper *os.Process, guardian int) {
	c.t.Helper()
	// A subreaper, so that what a broken guardian leaves is found.
	if err := adopt(); err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "wrapper", c.fifo, fmt.Sprint(int64(deadline)), stop, fmt.Sprint(c.isolate))
	if c.as != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: c.as, Gid: c.as}}
	}
	cmd.Stderr = os.Stderr
	tell, err := cmd.StdinPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	c.born(family)
	if found := children(cmd.Process.Pid); len(found) == 1 {
		guardian = found[0]
	} else {
		c.t.Fatalf("the wrapper's children are %v", found)
	}
	if stop != "" {
		fmt.Fprintln(tell)
		bufio.NewReader(said).ReadString('\n')
	}
	return cmd.Process, guardian
}

func signalTo(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(err)
	}
}

// inTime is a deadline that leaves a loaded machine time to start a family, and is not after
// what must happen may take.
func inTime() Moment { return Now().Add(min(12*time.Second, *bound)) }

const farAway = 10 * time.Minute

func TestGuardian(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, *crib)
	}{
		{"what a command leaves dies before it is done", func(t *testing.T, c *crib) {
			g := c.guarded(command(c.fifo, "parent", Now().Add(farAway)))
			c.born(family)
			g.Signal(syscall.SIGUSR1)
			await(t, g)
			c.goneNow()
			if s, ok := g.Exit(); !ok || s.ExitCode() != 7 || g.Overdue() {
				t.Errorf("it ended with %v, %v, overdue %v; want 7", s, ok, g.Overdue())
			}
		}},
		{"nothing outlives a lease that is not renewed", func(t *testing.T, c *crib) {
			deadline := inTime()
			g := c.guarded(command(c.fifo, "parent", deadline))
			c.born(family)
			if at := c.gone(); at >= deadline {
				t.Errorf("the last one died %v after the deadline", time.Duration(at-deadline))
			}
			await(t, g)
			if s, ok := g.Exit(); !ok || s.ExitCode() != 137 || !g.Overdue() {
				t.Errorf("it ended with %v, %v, overdue %v; want 137 and overdue", s, ok, g.Overdue())
			}
		}},
		{"a later deadline counts, also while stopping", func(t *testing.T, c *crib) {
			first := Now().Add(4 * time.Second)
			g := c.guarded(command(c.fifo, "parent", first))
			c.born(family)
			g.Stop(farAway)
			second := Now().Add(5 * time.Second)
			g.Extend(second)
			at := c.gone()
			if at < second.Add(-2*time.Second) || at >= second {
				t.Errorf("the last one died %v before the deadline", time.Duration(second-at))
			}
		}},
		{"wrapper stopped", func(t *testing.T, c *crib) {
			deadline := inTime()
			wrapper, _ := c.wrapper(deadline, "")
			signalTo(t, wrapper.Pid, syscall.SIGSTOP)
			if at := c.gone(); at >= deadline {
				t.Errorf("the last one died %v after the deadline", time.Duration(at-deadline))
			}
		}},
		{"wrapper told to stop, then stopped", func(t *testing.T, c *crib) {
			deadline := inTime()
			wrapper, _ := c.wrapper(deadline, "1h")
			signalTo(t, wrapper.Pid, syscall.SIGSTOP)
			if at := c.gone(); at >= deadline {
				t.Errorf("the last one died %v after the deadline", time.Duration(at-deadline))
			}
		}},
		{"wrapper killed", func(t *testing.T, c *crib) {
			deadline := Now().Add(farAway)
			wrapper, _ := c.wrapper(deadline, "")
			wrapper.Kill()
			c.gone()
		}},
		{"guardian killed", func(t *testing.T, c *crib) {
			deadline := Now().Add(farAway)
			_, guardian := c.wrapper(deadline, "")
			signalTo(t, guardian, syscall.SIGKILL)
			c.gone()
		}},
		{"guardian stopped", func(t *testing.T, c *crib) {
			deadline := inTime()
			_, guardian := c.wrapper(deadline, "")
			signalTo(t, guardian, syscall.SIGSTOP)
			if at := c.gone(); at >= deadline {
				t.Errorf("the last one died %v after the deadline", time.Duration(at-deadline))
			}
		}},
		{"guardian stopped, wrapper told to stop", func(t *testing.T, c *crib) {
			g := c.guarded(command(c.fifo, "parent", Now().Add(farAway)))
			c.born(family)
			signalTo(t, g.process.Process.Pid, syscall.SIGSTOP)
			for range 3000 { // more than the pipe holds
				g.pipe.SetWriteDeadline(time.Now().Add(time.Millisecond))
				if _, err := g.pipe.WriteString(`{"Signal":0}` + "\n"); err != nil {
					break
				}
			}
			g.Extend(Now().Add(farAway))
			g.Stop(0)
			await(t, g)
			c.goneNow()
			if g.Overdue() {
				t.Error("it is overdue, and the deadline is far away")
			}
		}},
		{"nothing is started too late", func(t *testing.T, c *crib) {
			late := command(c.fifo, "parent", Now().Add(1900*time.Millisecond)) // Kill is longer
			if g, err := Start(late, "guardian", func(string) {}); !errors.Is(err, ErrOverdue) {
				t.Errorf("%v; want ErrOverdue", err)
				await(t, g)
			}
			c.goneNow()
		}},
		{"a process whose first thread has ended", func(t *testing.T, c *crib) {
			g := c.guarded(command(c.fifo, "threadless", inTime()))
			c.born("threadless")
			p, err := look(g.PID())
			if err != nil || !p.zombie {
				t.Fatalf("it does not look like a zombie: %+v, %v", p, err)
			}
			g.Stop(0)
			await(t, g)
			c.goneNow()
		}},
		{"what SIGKILL does not end is reported", func(t *testing.T, c *crib) {
			patience = 500 * time.Millisecond
			defer func() { patience = 10 * time.Second }()
			var immortal atomic.Int64
			spared = func(pid int) bool { return int64(pid) == immortal.Load() }
			defer func() { spared = func(int) bool { return false } }()
			g := c.guarded(command(c.fifo, "parent", Now().Add(farAway)))
			c.born(family)
			immortal.Store(int64(c.pids["daemon"]))
			signalTo(t, g.process.Process.Pid, syscall.SIGKILL)
			await(t, g)
			if s := g.Survivors(); len(s) != 1 || !strings.HasPrefix(s[0], fmt.Sprint(c.pids["daemon"])) {
				t.Errorf("survivors %q; want %d", s, c.pids["daemon"])
			}
			signalTo(t, c.pids["daemon"], syscall.SIGKILL)
			c.gone()
			unix.Wait4(c.pids["daemon"], nil, 0, nil)
		}},
		{"processes that fork and end all the time", func(t *testing.T, c *crib) {
			for _, name := range []string{"comet", "deserter", "comets"} {
				g := c.guarded(command(c.fifo, name, Now().Add(farAway)))
				c.born(name)
				told := Now()
				g.Stop(0)
				await(t, g)
				t.Logf("%s: gone after %v", name, time.Duration(Now()-told))
				c.goneNow()
				clear(c.pids)
			}
		}},
		{"a program that does not exist", func(t *testing.T, c *crib) {
			broken := command(c.fifo, "parent", inTime())
			broken.Path = "/nonexistent"
			_, err := Start(broken, "guardian", func(string) {})
			if !errors.As(err, new(*Error)) || !errors.Is(err, syscall.ENOENT) {
				t.Errorf("%v; want ENOENT", err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, newCrib(t)) })
	}
}

func TestOrphansAreReaped(t *testing.T) {
	if err := adopt(); err != nil {
		t.Fatal(err)
	}
	// A shell whose background process outlives it.
	out, err := exec.Command("/bin/sh", "-c", "sleep 0 >/dev/null 2>&1 & echo $!").Output()
	if err != nil {
		t.Fatal(err)
	}
	var orphan int
	if _, err := fmt.Sscan(string(out), &orphan); err != nil {
		t.Fatal(err)
	}
	var o orphans
	for {
		o.reap()
		if _, err := look(orphan); err != nil {
			return
		}
		time.Sleep(time.Millisecond) // it may not have ended
	}
}
