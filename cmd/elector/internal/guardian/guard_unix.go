//go:build unix

package guardian

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// The guardian's descriptors.
const (
	orders  = 3
	reports = 4
)

// Main is the guardian: a program that [Start] has started calls it first. It
// does not return.
func Main() {
	// The command gets a signal when the thread ends that started it.
	runtime.LockOSThread()
	syscall.CloseOnExec(orders)
	syscall.CloseOnExec(reports)
	// Notify and not Ignore: an ignored signal would be ignored in the command too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE)
	g := &guard{
		in: json.NewDecoder(os.NewFile(orders, "orders")), out: json.NewEncoder(os.NewFile(reports, "reports")),
		orders: make(chan order), ended: make(chan ending),
	}
	if err := g.run(); err != nil {
		fmt.Fprintln(os.Stderr, "elector: the guardian:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A guard is the state of the guardian. One goroutine owns it.
type guard struct {
	in  *json.Decoder
	out *json.Encoder

	orders chan order  // closed when the wrapper is gone
	ended  chan ending // closed when no child is left
	alarm  *alarm

	command  Command
	group    int
	pid      int    // of the command
	running  bool   // the command has not ended
	stopping bool   // SIGTERM was sent
	killAt   Moment // once stopping
	killing  bool
}

// An ending is a child that has ended.
type ending struct {
	pid    int
	status syscall.WaitStatus
}

func (g *guard) run() error {
	var first order
	if err := g.in.Decode(&first); err != nil || first.Start == nil {
		return fmt.Errorf("no command: %w", err)
	}
	g.command, g.group = *first.Start, first.Group
	var err error
	if g.alarm, err = newAlarm(); err != nil {
		return g.failed(err)
	}
	if err := adopt(); err != nil {
		return g.failed(err)
	}
	if g.pid, err = g.start(); err != nil {
		return g.failed(err)
	}
	g.running = true
	g.tell(report{Started: g.pid})
	go g.read()
	go g.reap()
	for {
		g.alarm.set(g.next())
		select {
		case o, more := <-g.orders:
			g.obey(o, more)
		case e, more := <-g.ended:
			if !more {
				g.tell(report{Empty: true})
				return nil
			}
			g.note(e)
		case <-g.alarm.rings:
		}
		g.act()
	}
}

// start runs the command with the descriptors 0 to 2 of this process.
func (g *guard) start() (int, error) {
	return syscall.ForkExec(g.command.Path, g.command.Argv, &syscall.ProcAttr{
		Env: g.command.Env, Files: []uintptr{0, 1, 2}, Sys: attributes(g.group),
	})
}

func (g *guard) failed(err error) error {
	r := report{Failed: err.Error()}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		r.Errno = int(errno)
	}
	g.tell(r)
	return nil
}

// tell ignores that the wrapper may be gone.
func (g *guard) tell(r report) { g.out.Encode(r) }

// read passes orders on until the wrapper is gone.
func (g *guard) read() {
	defer close(g.orders)
	for {
		var o order
		if err := g.in.Decode(&o); err != nil {
			if !errors.Is(err, io.EOF) {
				g.tell(report{Event: "an order that cannot be read: " + err.Error()})
			}
			return
		}
		g.orders <- o
	}
}

// reap waits for every child, the adopted ones included, until none is left.
func (g *guard) reap() {
	defer close(g.ended)
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil: // ECHILD
			return
		default:
			g.ended <- ending{pid, status}
		}
	}
}

func (g *guard) obey(o order, more bool) {
	switch {
	case !more:
		g.orders = nil
		g.stop("the wrapper is gone", g.command.Grace)
	case o.Deadline != 0:
		g.command.Deadline = o.Deadline
	case o.Signal != 0 && g.running:
		syscall.Kill(g.pid, o.Signal)
	case o.Stop != nil:
		g.stop("", *o.Stop)
	}
}

// note is called for each child that has ended.
func (g *guard) note(e ending) {
	if e.pid != g.pid {
		return
	}
	g.running = false
	s := Status{Code: e.status.ExitStatus()}
	if e.status.Signaled() {
		s = Status{Signal: e.status.Signal()}
	}
	g.tell(report{Exit: &s})
	g.killing = true
}

// stop sends SIGTERM once, and may bring the end closer.
func (g *guard) stop(why string, grace time.Duration) {
	at := Now().Add(grace)
	if !g.stopping {
		g.stopping, g.killAt = true, at
		if g.running {
			syscall.Kill(g.pid, syscall.SIGTERM)
		}
		if why != "" {
			g.tell(report{Event: why + ": SIGTERM to the command"})
		}
	}
	g.killAt = min(g.killAt, at)
}

// retry is the time between two looks for descendants that are to die.
const retry = 2 * time.Millisecond

// next returns when there is something to do.
func (g *guard) next() Moment {
	end := g.command.Deadline.Add(-g.command.Kill)
	switch {
	case g.killing:
		return Now().Add(retry)
	case g.stopping:
		return min(end, g.killAt)
	}
	return end.Add(-g.command.Grace)
}

// act does what is due.
func (g *guard) act() {
	now, end := Now(), g.command.Deadline.Add(-g.command.Kill)
	if !g.stopping && !g.killing && now >= end.Add(-g.command.Grace) {
		g.stop("the lease was not renewed in time", g.command.Grace)
	}
	if g.stopping && !g.killing && now >= min(end, g.killAt) {
		g.killing = true
		g.tell(report{Event: "time is up: SIGKILL to the command and all its descendants"})
	}
	if g.killing {
		killAll(g.pid)
	}
}
