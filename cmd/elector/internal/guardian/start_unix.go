//go:build unix

package guardian

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// A Guarded is a command that runs under a guardian. Its methods may be called at
// the same time.
type Guarded struct {
	process  *exec.Cmd
	pipe     *os.File // orders
	in       *os.File // reports
	events   func(string)
	kill     time.Duration
	isolated bool
	alarm    *alarm
	began    chan struct{} // closed when the command has begun, or will not
	done     chan struct{} // closed when nothing of the command is left, or cannot be killed
	stoodIn  bool          // owned by follow

	mutex     sync.Mutex
	deadline  Moment
	killAt    Moment // when the guardian is to have killed all
	pid       int    // 0 also if the command has ended before it was seen
	started   bool
	overdue   bool
	failure   error
	exit      *Status
	survivors []process
}

// An Error is why the system refused to start the command.
type Error struct {
	Text  string
	Errno syscall.Errno
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the system's error.
func (e *Error) Unwrap() error { return e.Errno }

// ErrOverdue is returned by Start if the deadline is too near.
var ErrOverdue = errors.New("the lease was not renewed in time to start the command")

// Start starts a guardian, by running this program with the argument and the command
// after it; the guardian starts the command. It blocks until the command runs, at most until its deadline. It returns
// an *Error if the system refuses the command, and ErrOverdue if the deadline is too
// near. events is called with what people should know; it must not block.
//
// A process has one guardian at a time. If that is killed, all children of this
// process are killed and reaped, because its descendants are among them.
func Start(c Command, argument string, events func(string)) (*Guarded, error) {
	g := &Guarded{
		events: events, kill: c.Kill, began: make(chan struct{}), done: make(chan struct{}),
		deadline: c.Deadline, killAt: never, isolated: c.Isolate,
	}
	if err := g.launch(c, argument); err != nil {
		return nil, fmt.Errorf("starting the guardian: %w", err)
	}
	go g.follow()
	g.send(order{Start: &c})
	<-g.began
	g.mutex.Lock()
	defer g.mutex.Unlock()
	switch {
	case g.started:
		return g, nil
	case g.overdue:
		return nil, ErrOverdue
	case g.failure != nil:
		return nil, g.failure
	}
	return nil, errors.New("the guardian ended before the command began")
}

func (g *Guarded) launch(c Command, argument string) error {
	if err := adopt(); err != nil {
		return err
	}
	path, err := program()
	if err != nil {
		return err
	}
	ordersOut, ordersIn, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ordersOut.Close()
	reportsOut, reportsIn, err := os.Pipe()
	if err != nil {
		ordersIn.Close()
		return err
	}
	defer reportsIn.Close()
	g.pipe, g.in = ordersIn, reportsOut
	g.process = &exec.Cmd{
		Path: path, Args: append([]string{"elector", argument, c.Path}, c.Argv...), Env: c.Env,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		ExtraFiles: []*os.File{ordersOut, reportsIn},
		// A group of its own: what stops this process from the terminal does not
		// stop the guardian.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if c.Isolate {
		isolation(g.process.SysProcAttr)
		// A terminal does not stop process 1, which is in the command's group.
		g.process.SysProcAttr.Setpgid = c.Group == 0
	}
	if g.alarm, err = newAlarm(); err == nil {
		if err = g.process.Start(); err == nil {
			return nil
		}
		g.alarm.close()
	}
	ordersIn.Close()
	reportsOut.Close()
	return err
}

// PID returns the command's process id.
func (g *Guarded) PID() int { return g.pid }

// Extend tells the guardian a new deadline.
func (g *Guarded) Extend(deadline Moment) {
	g.mutex.Lock()
	g.deadline = deadline
	g.mutex.Unlock()
	g.send(order{Deadline: deadline})
}

// Signal sends a signal to the command.
func (g *Guarded) Signal(s syscall.Signal) { g.send(order{Signal: s}) }

// Stop ends the command: SIGTERM to it, and SIGKILL to all its descendants after
// the grace. A later Stop may bring the SIGKILL closer. Meanwhile Extend still
// counts.
func (g *Guarded) Stop(grace time.Duration) {
	g.killBy(Now().Add(grace))
	g.send(order{Stop: &grace})
}

// Done is closed when the command and all its descendants are gone, or Survivors
// cannot be killed.
func (g *Guarded) Done() <-chan struct{} { return g.done }

// Exit returns how the command ended; ok is false while it runs, and if the
// guardian was killed, so that this is not known.
func (g *Guarded) Exit() (s Status, ok bool) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.exit == nil {
		return Status{}, false
	}
	return *g.exit, true
}

// Overdue reports whether the command was ended because its deadline was near.
func (g *Guarded) Overdue() bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.overdue
}

// Survivors returns descendants, as ids with names, that were alive long after
// SIGKILL.
func (g *Guarded) Survivors() []string {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	var names []string
	for _, p := range g.survivors {
		names = append(names, p.String())
	}
	return names
}

// send drops an order if the guardian does not read, as when it is stopped: this
// process then does its work.
func (g *Guarded) send(o order) {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	// An order is shorter than PIPE_BUF, so it is written as a whole or not at all.
	g.pipe.SetWriteDeadline(time.Now().Add(5 * time.Millisecond))
	g.pipe.Write(append(text, '\n'))
}

// killBy records when the guardian will kill all.
func (g *Guarded) killBy(m Moment) {
	g.mutex.Lock()
	g.killAt = min(g.killAt, m)
	g.mutex.Unlock()
	g.alarm.wake()
}
