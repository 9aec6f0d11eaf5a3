//go:build unix && !linux

package guardian

import (
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the time since boot. Whether it counts suspends is up to the system.
func Now() Moment {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic("elector: CLOCK_MONOTONIC: " + err.Error())
	}
	return Moment(t.Nano())
}

// An alarm rings at a Moment.
type alarm struct {
	timer *time.Timer
	rings chan struct{}
}

func newAlarm() (*alarm, error) {
	a := &alarm{rings: make(chan struct{}, 1)}
	a.timer = time.AfterFunc(time.Hour, func() {
		select {
		case a.rings <- struct{}{}:
		default:
		}
	})
	return a, nil
}

func (a *alarm) set(m Moment) { a.timer.Reset(m.Until()) }

// wake rings now.
func (a *alarm) wake() {
	select {
	case a.rings <- struct{}{}:
	default:
	}
}

func (a *alarm) close() { a.timer.Stop() }

func adopt() error { return nil }

func program() (string, error) { return os.Executable() }

func rename() {}

// attributes give the command a process group of its own, which is killed as a
// whole.
func attributes(int) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// A process is one that cannot be looked at here.
type process struct{ identity }

type identity struct{ pid int }

func (p process) String() string { return strconv.Itoa(p.pid) }

// killAll kills the process group of the command.
func killAll(command int) []process {
	if !alive(0, command) {
		return nil
	}
	syscall.Kill(-command, syscall.SIGKILL)
	return []process{{identity{command}}}
}

// alive reports whether the process group of the command has a process.
func alive(_, command int) bool { return command > 0 && syscall.Kill(-command, 0) != syscall.ESRCH }

// ReapOrphans returns: no orphans are adopted here.
func ReapOrphans() {}
