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
	process *exec.Cmd
	pipe    *os.File
	events  func(string)
	alarm   *alarm
	done    chan struct{} // closed when the guardian and all its descendants are gone

	mutex    sync.Mutex
	deadline Moment
	pid      int
	exit     *Status
}

// An Error is why the command could not be started, as the system has it.
type Error struct {
	Text  string
	Errno syscall.Errno
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the system's error.
func (e *Error) Unwrap() error { return e.Errno }

// Start starts a guardian, by running this program with the arguments, and in it the
// command. It returns when the command runs, or an *Error if it could not be started.
// events is called with what people should know, from a goroutine.
//
// A process has one guardian at a time.
func Start(c Command, arguments []string, events func(string)) (*Guarded, error) {
	if err := adopt(); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ordersOut, ordersIn, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer ordersOut.Close()
	reportsOut, reportsIn, err := os.Pipe()
	if err != nil {
		ordersIn.Close()
		return nil, err
	}
	defer reportsIn.Close()
	g := &Guarded{pipe: ordersIn, events: events, done: make(chan struct{}), deadline: c.Deadline}
	if g.alarm, err = newAlarm(); err != nil {
		ordersIn.Close()
		reportsOut.Close()
		return nil, err
	}
	g.process = exec.Command(self, arguments...)
	g.process.Stdin, g.process.Stdout, g.process.Stderr = os.Stdin, os.Stdout, os.Stderr
	g.process.ExtraFiles = []*os.File{ordersOut, reportsIn}
	// A group of its own: what stops this process from the terminal does not stop
	// the guardian.
	g.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := g.process.Start(); err != nil {
		ordersIn.Close()
		reportsOut.Close()
		g.alarm.close()
		return nil, fmt.Errorf("starting the guardian: %w", err)
	}
	g.send(order{Start: &c, Group: syscall.Getpgrp()})
	in := json.NewDecoder(reportsOut)
	var first report
	err = in.Decode(&first)
	switch {
	case err != nil:
		err = fmt.Errorf("the guardian ended before the command began: %w", err)
	case first.Failed != "":
		err = &Error{first.Failed, syscall.Errno(first.Errno)}
	}
	if err != nil {
		ordersIn.Close()
		reportsOut.Close()
		g.alarm.close()
		g.process.Process.Kill()
		g.process.Wait()
		return nil, err
	}
	g.pid = first.Started
	go g.follow(in, reportsOut, c.Kill)
	return g, nil
}

// PID returns the command's process id.
func (g *Guarded) PID() int { return g.pid }

// Extend tells the guardian a new deadline.
func (g *Guarded) Extend(deadline Moment) {
	g.mutex.Lock()
	g.deadline = deadline
	g.mutex.Unlock()
	g.alarm.wake()
	g.send(order{Deadline: deadline})
}

// Signal sends a signal to the command.
func (g *Guarded) Signal(s syscall.Signal) { g.send(order{Signal: s}) }

// Stop ends the command: SIGTERM to it, and SIGKILL to all its descendants after
// the grace. A later Stop may bring the SIGKILL closer. Meanwhile Extend still
// counts.
func (g *Guarded) Stop(grace time.Duration) { g.send(order{Stop: &grace}) }

// Done is closed when the command and all its descendants are gone.
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

// send gives up on a guardian that does not read: it is stopped, and this process
// does its work.
func (g *Guarded) send(o order) {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	g.pipe.SetWriteDeadline(time.Now().Add(time.Second))
	g.pipe.Write(append(text, '\n'))
}

// follow reads the reports until the last one, and stands in for a guardian that is
// killed or stopped.
func (g *Guarded) follow(in *json.Decoder, out *os.File, kill time.Duration) {
	defer close(g.done)
	defer g.alarm.close()
	defer g.pipe.Close()
	defer out.Close()
	reports := make(chan report)
	go func() {
		defer close(reports)
		for {
			var r report
			if err := in.Decode(&r); err != nil {
				return
			}
			reports <- r
		}
	}()
	overdue, empty := false, false
	for {
		g.mutex.Lock()
		due := g.deadline.Add(-kill / 2)
		g.mutex.Unlock()
		if overdue {
			due = Now().Add(retry)
		}
		g.alarm.set(due)
		select {
		case r, more := <-reports:
			if !more {
				g.bury(empty)
				return
			}
			empty = empty || r.Empty
			if r.Event != "" {
				g.events(r.Event)
			}
			if r.Exit != nil {
				g.mutex.Lock()
				g.exit = r.Exit
				g.mutex.Unlock()
			}
		case <-g.alarm.rings:
			g.mutex.Lock()
			passed := Now() >= g.deadline.Add(-kill/2)
			g.mutex.Unlock()
			if passed && !overdue {
				overdue = true
				g.events("the guardian does not act: SIGKILL to all")
			}
			if overdue {
				killAll(g.pid)
			}
		}
	}
}

// bury reaps the guardian, and everything that it has left if it was killed.
func (g *Guarded) bury(empty bool) {
	g.process.Wait()
	if empty {
		return
	}
	g.events("the guardian was killed: SIGKILL to the command and all its descendants")
	killAll(g.pid)
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.ECHILD):
			return
		case pid == 0:
			time.Sleep(retry)
			killAll(g.pid)
		}
	}
}
