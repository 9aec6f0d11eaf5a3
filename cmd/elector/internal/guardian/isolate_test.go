//go:build linux

package guardian

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// nobody is a user without rights.
const nobody = 65534

// In a PID namespace of its own the family dies with the guardian, whatever happens to
// the wrapper.
func TestIsolated(t *testing.T) {
	if err := Isolates("guardian"); err != nil {
		if !errors.Is(err, ErrIsolation) || !strings.Contains(err.Error(), "--isolate") {
			t.Fatal(err)
		}
		t.Log("not shown here: ", err)
		return
	}
	users := []uint32{0}
	if os.Getuid() == 0 {
		users = append(users, nobody)
	}
	for _, c := range []struct {
		name string
		run  func(*testing.T, *crib)
	}{
		{"wrapper stopped, guardian killed", func(t *testing.T, c *crib) {
			wrapper, guardian := c.wrapper(Now().Add(farAway), "")
			signalTo(t, wrapper.Pid, syscall.SIGSTOP)
			signalTo(t, guardian, syscall.SIGKILL)
			c.gone()
		}},
		{"wrapper and guardian killed", func(t *testing.T, c *crib) {
			wrapper, guardian := c.wrapper(Now().Add(farAway), "")
			wrapper.Kill()
			signalTo(t, guardian, syscall.SIGKILL)
			c.gone()
		}},
		{"wrapper stopped", func(t *testing.T, c *crib) {
			deadline := inTime()
			wrapper, _ := c.wrapper(deadline, "")
			signalTo(t, wrapper.Pid, syscall.SIGSTOP)
			if at := c.gone(); at >= deadline {
				t.Errorf("the last one died %v after the deadline", time.Duration(at-deadline))
			}
		}},
		{"wrapper killed", func(t *testing.T, c *crib) {
			wrapper, _ := c.wrapper(Now().Add(farAway), "")
			wrapper.Kill()
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
	} {
		for _, user := range users {
			t.Run(c.name+map[bool]string{true: ", as nobody"}[user == nobody], func(t *testing.T) {
				b := newCrib(t)
				b.isolate, b.as = true, user
				open(t, b.fifo)
				c.run(t, b)
			})
		}
	}
	t.Run("what a command leaves dies before it is done", func(t *testing.T) {
		c, g := isolated(t, "parent", family)
		if p, err := look(g.PID()); err != nil || p.parent != g.process.Process.Pid {
			t.Errorf("the command is %+v, %v; want a child of the guardian", p, err)
		}
		g.Signal(syscall.SIGUSR1)
		await(t, g)
		c.goneNow()
		if s, ok := g.Exit(); !ok || s.ExitCode() != 7 || g.Overdue() {
			t.Errorf("it ended with %v, %v, overdue %v; want 7", s, ok, g.Overdue())
		}
	})
	t.Run("processes that fork and end all the time", func(t *testing.T) {
		for _, name := range []string{"comet", "deserter", "comets"} {
			c, g := isolated(t, name, name)
			g.Stop(0)
			await(t, g)
			c.goneNow()
		}
	})
	t.Run("guardian killed: done when all are dead", func(t *testing.T) {
		c, g := isolated(t, "parent", family)
		g.process.Process.Kill()
		await(t, g)
		c.goneNow()
		if _, known := g.Exit(); known || len(g.Survivors()) > 0 {
			t.Errorf("it is known how it ended: %v; survivors %q", known, g.Survivors())
		}
	})
}

// isolated starts a command in a PID namespace of its own, and waits for its processes.
func isolated(t *testing.T, name, processes string) (*crib, *Guarded) {
	c := newCrib(t)
	c.isolate = true
	o := command(c.fifo, name, Now().Add(farAway))
	o.Isolate = true
	g := c.guarded(o)
	c.born(processes)
	return c, g
}

// open lets every user write to the fifo.
func open(t *testing.T, fifo string) {
	t.Helper()
	for path, mode := range map[string]os.FileMode{fifo: 0o666, filepath.Dir(fifo): 0o755, filepath.Dir(filepath.Dir(fifo)): 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
}
