package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/chaos/task"
	"github.com/elector-go/elector/internal/proof/child"
)

// A process is a candidate that runs. One goroutine at a time may use it.
type process struct {
	name    string
	cmd     *exec.Cmd
	started time.Duration // on history.BootTime
	tell    func(history.Event)
	exited  chan struct{} // closed when it was waited for and all that it told was read
	order   sync.Mutex    // a signal is told before the end that it makes
	log     *logPipe
	trigger string // the file that makes it stop inside the file backend's lock
}

// startProcess starts a candidate. What it logs goes to a file in dir.
func startProcess(program, dir string, t task.Task, environment []string, tell func(history.Event)) (*process, error) {
	p := &process{name: t.Candidate, tell: tell, exited: make(chan struct{})}
	path := filepath.Join(dir, t.Election+"-"+t.Candidate)
	p.trigger = path + ".stop"
	log, err := newLogPipe(path + ".log")
	if err != nil {
		return nil, err
	}
	p.log = log
	p.cmd = exec.Command(program)
	p.cmd.Env = append(os.Environ(), t.Environment(), inLock+"="+p.trigger)
	p.cmd.Env = append(p.cmd.Env, environment...)
	p.cmd.Stderr = log.theirs
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		log.end()
		return nil, err
	}
	before := history.BootTime()
	if err := child.Start(p.cmd); err != nil {
		log.end()
		return nil, fmt.Errorf("starting candidate %s: %w", p.name, err)
	}
	p.started = before
	p.does(history.Started, before)
	go func() {
		defer close(p.exited)
		readErr := history.Follow(out, tell)
		err := p.cmd.Wait()
		log.end()
		p.order.Lock()
		defer p.order.Unlock()
		e := history.Event{Kind: history.Exited, Candidate: p.name, Before: history.BootTime()}
		if err := errors.Join(readErr, err); err != nil {
			e.Detail = err.Error()
		}
		e.At = history.BootTime()
		tell(e)
	}()
	return p, nil
}

// does tells what was done to the process.
func (p *process) does(kind history.Kind, before time.Duration) {
	p.tell(history.Event{Kind: kind, Candidate: p.name, Before: before, At: history.BootTime()})
}

func (p *process) signal(kind history.Kind, s syscall.Signal) error {
	p.order.Lock()
	defer p.order.Unlock()
	before := history.BootTime()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %v to candidate %s: %w", s, p.name, err)
	}
	p.does(kind, before)
	return nil
}

// kill ends it as a crash would, and waits until it is gone.
func (p *process) kill() error {
	err := p.signal(history.Killed, syscall.SIGKILL)
	<-p.exited
	return err
}

// terminate asks it to end in order, and waits until it has.
func (p *process) terminate(ctx context.Context) error {
	if err := p.signal(history.Terminated, syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.exited:
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("candidate %s was told to end and does not: %w", p.name, context.Cause(ctx)), p.kill())
	}
}

// freeze returns when it stands.
func (p *process) freeze() error {
	before := history.BootTime()
	if err := child.Freeze(p.cmd.Process.Pid); err != nil {
		return err
	}
	p.does(history.Stopped, before)
	return nil
}

// freezeBeforeWrite makes it stop between its next Check and the write that
// follows. The process must lead.
func (p *process) freezeBeforeWrite() error {
	if err := p.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		return err
	}
	return p.awaitFreeze()
}

// awaitFreeze waits until it has stopped itself.
func (p *process) awaitFreeze() error {
	before := history.BootTime()
	if err := child.WaitFrozen(p.cmd.Process.Pid); err != nil {
		return err
	}
	p.does(history.Stopped, before)
	return nil
}

func (p *process) thaw() error {
	before := history.BootTime()
	if err := child.Thaw(p.cmd.Process.Pid); err != nil {
		return err
	}
	p.does(history.Continued, before)
	return nil
}
