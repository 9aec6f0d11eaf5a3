package guardian

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Now returns the time since boot, suspends included.
func Now() Moment {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("elector: CLOCK_BOOTTIME: " + err.Error()) // Linux has it since 2.6.39
	}
	return Moment(t.Nano())
}

// An alarm rings at a Moment.
type alarm struct {
	file  *os.File
	fd    int
	rings chan struct{}
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("making a timer: %w", err)
	}
	a := &alarm{os.NewFile(uintptr(fd), "timer"), fd, make(chan struct{}, 1)}
	go func() {
		for {
			if _, err := a.file.Read(make([]byte, 8)); err != nil {
				return
			}
			select {
			case a.rings <- struct{}{}:
			default:
			}
		}
	}()
	return a, nil
}

// set replaces the Moment.
func (a *alarm) set(m Moment) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(int64(m), 1))}
	if err := unix.TimerfdSettime(a.fd, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		panic("elector: setting a timer: " + err.Error())
	}
}

// wake rings now.
func (a *alarm) wake() {
	select {
	case a.rings <- struct{}{}:
	default:
	}
}

func (a *alarm) close() { a.file.Close() }

// adopt makes this process the parent of descendants whose parent has ended. It
// returns an error if descendants cannot be found here.
func adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming a subreaper: %w", err)
	}
	self, err := look(os.Getpid())
	if err != nil || self.parent != os.Getppid() {
		return errors.Join(errors.New("/proc does not show this process; mount it, or descendants cannot be found"), err)
	}
	return nil
}

// attributes are those of the command. It dies with the thread that starts it.
// Group 0 is a process group of its own.
func attributes(group int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: group, Pdeathsig: syscall.SIGKILL}
}

// program is this very program, even if its file was replaced.
func program() (string, error) { return "/proc/self/exe", nil }

// rename gives this process the name that people know.
func rename() { os.WriteFile("/proc/self/comm", []byte("elector"), 0) }
