package stores

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/elector-go/elector/internal/proof/child"
)

// stop ends the server and its guard and removes its folder.
func (s *server) stop() error {
	if s.stopped {
		return nil
	}
	s.stopped = true
	var err error
	switch {
	case !s.hasExited():
		err = s.end(s.quit)
	case !s.told:
		// Its other processes follow the first one, but not while they stand.
		err = errors.Join(s.died(), child.Signal(syscall.SIGKILL, s.frozen...), child.WaitGone(s.frozen...))
	}
	return errors.Join(err, os.RemoveAll(s.dir), s.guard.dismiss())
}

// pause stops the first process, so that it makes no more, and then the
// others. PostgreSQL puts each process into a group of its own.
func (s *server) pause() error {
	if s.hasExited() {
		return s.notRunning()
	}
	if err := child.Freeze(s.pid); err != nil {
		return err
	}
	others, err := child.Of(s.pid)
	if err != nil {
		return err
	}
	s.frozen = append([]int{s.pid}, others...)
	s.guard.watch(append([]int{-s.pid}, others...)...)
	return child.Freeze(others...)
}

func (s *server) resume() error {
	if s.hasExited() {
		return s.notRunning()
	}
	err := child.Thaw(s.frozen...)
	s.frozen = nil
	s.guard.watch(-s.pid)
	return err
}

func (s *server) kill() error {
	if s.hasExited() {
		return s.notRunning()
	}
	if s.saves {
		return s.end(s.quit)
	}
	return s.end(syscall.SIGKILL)
}

func (s *server) restart(ctx context.Context) error {
	if s.stopped || (s.hasExited() && !s.told) {
		return s.notRunning()
	}
	if !s.hasExited() {
		if err := s.end(s.quit); err != nil {
			return err
		}
	}
	var err error
	for range portTries {
		if err = s.launch(ctx); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return fmt.Errorf("%s cannot have port %d again: %w", s.name, s.port, err)
}

// end ends the running server by the signal and returns when all of its
// processes are gone. One that does not heed the signal is killed.
func (s *server) end(by syscall.Signal) error {
	if by != syscall.SIGKILL {
		if err := s.resume(); err != nil && !s.hasExited() {
			return err
		}
		s.told = true
		if err := child.Signal(by, -s.pid); err != nil {
			return err
		}
		select {
		case <-s.exited:
			s.guard.watch()
			return nil
		case <-time.After(gone):
		}
	}
	// Paused, it can make no process that we do not know of.
	if err := s.pause(); err != nil && !s.hasExited() {
		return err
	}
	s.told = true
	all := s.frozen
	s.frozen = nil
	if err := child.Signal(syscall.SIGKILL, append([]int{-s.pid}, all...)...); err != nil {
		return err
	}
	<-s.exited
	s.guard.watch()
	return child.WaitGone(all...)
}

func (s *server) notRunning() error {
	switch {
	case s.stopped:
		return fmt.Errorf("%s was stopped", s.name)
	case s.told:
		return fmt.Errorf("%s does not run; Restart it", s.name)
	}
	return s.died()
}
