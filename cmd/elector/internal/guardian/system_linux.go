package guardian

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
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
func attributes(group int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: group, Pdeathsig: syscall.SIGKILL}
}

// A process is what /proc shows of one.
type process struct {
	pid, parent int
	dead        bool   // a zombie
	start       string // since boot; with the pid it names a process
}

func look(pid int) (process, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, err
	}
	// The name may have spaces and brackets.
	_, rest, found := bytes.Cut(stat[bytes.LastIndexByte(stat, ')'):], []byte(" "))
	fields := bytes.Fields(rest)
	if !found || len(fields) < 20 {
		return process{}, fmt.Errorf("/proc/%d/stat is %.80q", pid, stat)
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return process{pid, parent, fields[0][0] == 'Z' || fields[0][0] == 'X', string(fields[19])}, err
}

// descendants returns the live descendants of this process.
func descendants() (found []process) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	children := map[int][]process{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, err := look(pid); err == nil {
			children[p.parent] = append(children[p.parent], p)
		}
	}
	todo := []int{os.Getpid()}
	for len(todo) > 0 {
		pid := todo[0]
		todo = todo[1:]
		for _, child := range children[pid] {
			if todo = append(todo, child.pid); !child.dead {
				found = append(found, child)
			}
		}
	}
	return found
}

// killAll sends SIGKILL to all descendants that it finds. One that is forked
// meanwhile is found the next time.
func killAll(int) {
	for _, p := range descendants() {
		p.kill()
	}
}

// kill does not hit another process that has got the same id meanwhile.
func (p process) kill() {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err == unix.ENOSYS { // before Linux 5.3
		syscall.Kill(p.pid, syscall.SIGKILL)
		return
	}
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if now, err := look(p.pid); err == nil && now.start == p.start {
		unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}
