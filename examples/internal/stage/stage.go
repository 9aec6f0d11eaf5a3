// Package stage is what the demos of the examples share: child processes that are
// killed, stopped and continued, what they report, and whether two leases were
// valid at once.
package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/elector-go/elector/internal/clock"
)

// A Stage runs child processes and hands what happens to one goroutine, the one
// that calls Perform. After the first failure, which Err keeps, nothing more is
// done.
type Stage struct {
	Take     func(Event)   // called with each event; Note has entered it
	Patience time.Duration // how long Until waits

	Start   time.Duration // on the shared clock
	History []Event
	Pulse   Pulse
	Err     error

	ctx       context.Context
	events    chan Event
	helpers   sync.WaitGroup
	processes map[string]process
}

type process struct {
	*os.Process
	stdin io.Writer
}

// Perform plays something and ends all children, in whatever state. It ends early
// with ctx. Call it on the goroutine of main.
func (s *Stage) Perform(ctx context.Context, play func()) error {
	if signals == nil {
		return errors.New("the demo stops and continues processes with signals, which " + runtime.GOOS + " does not have")
	}
	// A child dies with the thread that started it, so that thread must stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	playing, cancel := context.WithCancel(ctx)
	s.ctx, s.Start = playing, clock.Shared()
	s.events, s.processes = make(chan Event), map[string]process{}
	s.helpers.Go(func() { s.Pulse.run(playing) })
	play()
	cancel()
	for _, p := range s.processes {
		p.Kill() // fails for those that are gone
	}
	s.helpers.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Launch starts a child. Its standard output are its events.
func (s *Stage) Launch(name string, cmd *exec.Cmd) {
	if s.Err != nil {
		return
	}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = childAttributes()
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if s.Err = errors.Join(err1, err2); s.Err != nil {
		return
	}
	if s.Err = cmd.Start(); s.Err != nil {
		return
	}
	s.processes[name] = process{cmd.Process, stdin}
	s.Note(Event{Process: name, Kind: Started, Boot: clock.Shared(), Detail: fmt.Sprint(cmd.Process.Pid)})
	s.helpers.Go(func() {
		e := Event{Process: name, Kind: Exited}
		err := readEvents(name, stdout, s.send)
		if err != nil {
			cmd.Process.Kill() // its events are not read any more
		}
		if err := errors.Join(err, cmd.Wait()); err != nil {
			e.Detail = err.Error()
		}
		e.Boot = clock.Shared()
		s.send(e)
	})
}

// send hands an event to the goroutine that plays, while there is one.
func (s *Stage) send(e Event) {
	select {
	case s.events <- e:
	case <-s.ctx.Done():
	}
}

// Note enters an event.
func (s *Stage) Note(e Event) {
	s.History = append(s.History, e)
	s.Take(e)
}

// Act does something to a child and returns when.
func (s *Stage) Act(kind, name string) time.Duration {
	if s.Err != nil {
		return 0
	}
	e := Event{Process: name, Kind: kind, Boot: clock.Shared()}
	s.Note(e)
	s.Err = s.processes[name].Signal(signals[kind])
	return e.Boot
}

// Tell writes to a child's standard input. One that is stopped finds it when it is
// continued.
func (s *Stage) Tell(name, text string) {
	if s.Err == nil {
		io.WriteString(s.processes[name].stdin, text) // a child that is gone is noticed elsewhere
	}
}

// Until takes events until something is so. The times at which the machine stood
// still do not count as waiting.
func (s *Stage) Until(what string, so func() bool) {
	begun := clock.Shared()
	watchdog := time.NewTimer(s.Patience)
	defer watchdog.Stop()
	for s.Err == nil && !so() {
		select {
		case e := <-s.events:
			s.Note(e)
		case <-watchdog.C:
			now := clock.Shared()
			still := s.Pulse.Between(begun, now).Total
			if left := s.Patience + still - (now - begun); left > 0 {
				watchdog.Reset(left)
				continue
			}
			s.Err = fmt.Errorf("waited in vain until %s: for %v, and the %.2f s for which the machine stood still", what, s.Patience, still.Seconds())
		case <-s.ctx.Done():
			s.Err = context.Cause(s.ctx)
		}
	}
}
