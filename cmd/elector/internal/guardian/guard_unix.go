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
	rename()
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE} {
		// Notify and not Ignore: the command inherits what is ignored.
		if !signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	if len(os.Args) == 3 && os.Args[2] == probe {
		if err := isolate(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	g := &guard{
		in: json.NewDecoder(os.NewFile(orders, "orders")), out: json.NewEncoder(os.NewFile(reports, "reports")),
		orders: make(chan order), ended: make(chan Status, 1), killAt: never,
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
	ended  chan Status // of the command; closed when no child is left
	alarm  *alarm

	command  Command
	pid      int           // of the command
	running  bool          // the command has not ended
	stopping bool          // SIGTERM was sent
	killAt   Moment        // once stopping
	grace    time.Duration // of killAt
	killing  bool
	hunt     hunt
}

func (g *guard) run() error {
	var first order
	if err := g.in.Decode(&first); err != nil || first.Start == nil || len(os.Args) < 4 {
		return fmt.Errorf("no command: %w", err)
	}
	g.command = *first.Start
	g.command.Path, g.command.Argv, g.command.Env = os.Args[2], os.Args[3:], os.Environ()
	var err error
	if g.alarm, err = newAlarm(); err != nil {
		return g.failed(err, 0)
	}
	if g.command.Isolate {
		g.hunt.namespace = true
		if err := isolate(); err != nil {
			return g.failed(err, 0)
		}
	}
	if err := adopt(); err != nil {
		return g.failed(err, 0)
	}
	if Now() >= g.termAt() {
		g.tell(report{Overdue: true})
		return g.failed(errors.New("the lease was not renewed in time to start the command"), 0)
	}
	if g.pid, err = g.start(); err != nil {
		var errno syscall.Errno
		errors.As(err, &errno)
		return g.failed(err, errno)
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
		case s, more := <-g.ended:
			if !more {
				g.tell(report{Empty: true})
				return nil
			}
			g.running, g.killing = false, true
			g.tell(report{Exit: &s})
		case <-g.alarm.rings:
		}
		g.act()
	}
}

// start runs the command with the descriptors 0 to 2 of this process.
func (g *guard) start() (int, error) {
	a := attributes(g.command.Group)
	if g.command.Isolate && g.command.Group != 0 {
		// The namespace does not see the group. This process is in it, and so is what
		// it starts.
		a.Setpgid = false
	}
	return syscall.ForkExec(g.command.Path, g.command.Argv, &syscall.ProcAttr{
		Env: g.command.Env, Files: []uintptr{0, 1, 2}, Sys: a,
	})
}

func (g *guard) failed(err error, errno syscall.Errno) error {
	g.tell(report{Failed: err.Error(), Errno: errno})
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
				g.tell(report{Event: "the guardian cannot read an order: " + err.Error()})
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
		switch pid, err := syscall.Wait4(-1, &status, 0, nil); {
		case err == syscall.EINTR:
		case err != nil: // ECHILD
			return
		case pid != g.pid:
		case status.Signaled():
			g.ended <- Status{Signal: status.Signal()}
		default:
			g.ended <- Status{Code: status.ExitStatus()}
		}
	}
}

func (g *guard) obey(o order, more bool) {
	switch {
	case !more:
		g.orders = nil
		g.stop(g.command.Grace)
	case o.Deadline != 0:
		g.command.Deadline = o.Deadline
	case o.Signal != 0 && g.running:
		syscall.Kill(g.pid, o.Signal)
	case o.Stop != nil:
		g.stop(*o.Stop)
	}
}

// stop sends SIGTERM once, and may bring the end closer.
func (g *guard) stop(grace time.Duration) {
	if !g.stopping {
		g.stopping = true
		if g.running {
			syscall.Kill(g.pid, syscall.SIGTERM)
			syscall.Kill(g.pid, syscall.SIGCONT) // a stopped command learns of it too
		}
	}
	if at := Now().Add(grace); at < g.killAt {
		g.killAt, g.grace = at, grace
	}
}

// killBy is when all are killed at the latest.
func (g *guard) killBy() Moment { return g.command.Deadline.Add(-g.command.Kill) }

// termAt is when the command gets SIGTERM at the latest.
func (g *guard) termAt() Moment { return g.killBy().Add(-g.command.Grace) }

// next returns when there is something to do.
func (g *guard) next() Moment {
	switch {
	case g.killing:
		return g.hunt.next
	case g.stopping:
		return min(g.killBy(), g.killAt)
	}
	return g.termAt()
}

// why returns why all are killed.
func (g *guard) why(now Moment) string {
	switch {
	case now >= g.killBy():
		return "the lease ends, and the command has not ended upon SIGTERM"
	case g.grace == 0:
		return "the command must end at once"
	}
	return fmt.Sprintf("the command has not ended within %v of SIGTERM", g.grace)
}

// act does what is due.
func (g *guard) act() {
	now := Now()
	if !g.stopping && !g.killing && now >= g.termAt() {
		g.tell(report{Overdue: true, Event: "the lease was not renewed in time: SIGTERM to the command"})
		g.stop(g.command.Grace)
	}
	if !g.killing && g.stopping && now >= min(g.killBy(), g.killAt) {
		g.killing = true
		g.tell(report{Overdue: now >= g.killBy(), Event: g.why(now) + ": SIGKILL to it and all its descendants"})
	}
	if g.killing && now >= g.hunt.next {
		g.hunt.again(g.pid)
	}
}
