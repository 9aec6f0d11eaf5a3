package guardian

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrIsolation is the error of a kernel that refuses a PID namespace.
var ErrIsolation = errors.New("the kernel refuses the command a PID namespace of its own")

// probe is the argument of a guardian that only tries to isolate itself.
const probe = "probe"

// Isolates returns ErrIsolation, with what to do, unless a command can have a PID
// namespace of its own here. It starts this program with the argument, as Start does.
func Isolates(argument string) error {
	path, err := program()
	if err != nil {
		return err
	}
	var said bytes.Buffer
	c := &exec.Cmd{Path: path, Args: []string{"elector", argument, probe}, Stderr: &said, SysProcAttr: &syscall.SysProcAttr{}}
	isolation(c.SysProcAttr)
	if err := c.Run(); err != nil {
		why := strings.TrimSpace(said.String())
		if why == "" {
			why = err.Error()
		}
		return fmt.Errorf("%w: %s; run as root or with CAP_SYS_ADMIN, or allow user namespaces and a private /proc (kernel.unprivileged_userns_clone, user.max_user_namespaces, AppArmor, the container's seccomp profile), or leave out --isolate", ErrIsolation, why)
	}
	return nil
}

// isolation makes the process that is started with the attributes process 1 of a PID
// namespace. When process 1 ends, the kernel kills the whole namespace, and reports the
// end of process 1 only after that of the last one. Without CAP_SYS_ADMIN that takes a
// user namespace, in which the process keeps its user and group.
func isolation(a *syscall.SysProcAttr) {
	a.Cloneflags |= unix.CLONE_NEWPID | unix.CLONE_NEWNS
	if capable() {
		return
	}
	a.Cloneflags |= unix.CLONE_NEWUSER
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN} // for isolate
}

// capable reports whether this process may make namespaces.
func capable() bool {
	var caps [2]unix.CapUserData
	err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &caps[0])
	return err == nil && caps[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// isolate gives process 1 a /proc of its namespace. The calling thread, which starts the
// command, then passes no capability on.
func isolate() error {
	if os.Getpid() != 1 {
		return errors.New("the guardian is not process 1")
	}
	// What is mounted on the machine later is seen here too, and nothing the other way.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("making the mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting a /proc of its own: %w", err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	err := unix.Capget(&header, &caps[0])
	if err == nil {
		caps[0].Inheritable, caps[1].Inheritable = 0, 0
		err = unix.Capset(&header, &caps[0])
	}
	if err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	return nil
}

// killNamespace kills all of this PID namespace but process 1, in one step: no fork
// escapes it.
func killNamespace() (live []process) {
	if os.Getpid() != 1 {
		panic("elector: this would kill all processes of the machine")
	}
	for _, p := range descendants(os.Getpid()) {
		if !p.dead {
			live = append(live, p)
		}
	}
	syscall.Kill(-1, syscall.SIGKILL)
	return live
}

// outside returns the id that this process sees of a descendant of the guardian, of which
// the guardian's namespace has another one; 0 if it has ended.
func outside(guardian, inside int) int {
	for _, p := range descendants(guardian) {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(status)) {
			if ids, found := strings.CutPrefix(line, "NSpid:"); found {
				if fields := strings.Fields(ids); len(fields) > 0 && fields[len(fields)-1] == fmt.Sprint(inside) {
					return p.pid
				}
			}
		}
	}
	return 0
}
