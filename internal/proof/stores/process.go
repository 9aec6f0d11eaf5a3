package stores

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
	"time"
)

// A processState is one line of the system's table of processes.
type processState struct {
	pid, parent int
	state       byte // T stands, Z is dead and not waited for
}

// signal sends to processes, and to process groups if negative. Those that are
// gone are not an error.
func signal(sig syscall.Signal, pids ...int) error {
	for _, pid := range pids {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("sending %v to process %d: %w", sig, pid, err)
		}
	}
	return nil
}

func children(pid int) ([]int, error) {
	all, err := processes()
	var found []int
	for _, p := range all {
		if p.parent == pid {
			found = append(found, p.pid)
		}
	}
	return found, err
}

// freeze sends SIGSTOP and waits until the processes stand: the signal arrives
// some time after it was sent.
func freeze(pids ...int) error {
	if err := signal(syscall.SIGSTOP, pids...); err != nil {
		return err
	}
	return waitAll(pids, "stand still", func(state byte) bool { return state == 'T' || state == 'Z' })
}

func waitGone(pids []int) error {
	return waitAll(pids, "end", func(state byte) bool { return state == 'Z' })
}

// waitAll waits until each of the processes is gone or in a state that will do.
func waitAll(pids []int, what string, done func(state byte) bool) error {
	if len(pids) == 0 {
		return nil
	}
	deadline := time.Now().Add(gone)
	for {
		all, err := processes()
		if err != nil {
			return err
		}
		waiting := 0
		for _, p := range all {
			for _, pid := range pids {
				if p.pid == pid && !done(p.state) {
					waiting = pid
				}
			}
		}
		if waiting == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d does not %s within %v", waiting, what, gone)
		}
		time.Sleep(time.Millisecond)
	}
}

// unprivileged returns somebody else to run a server as that refuses root, or
// nil if we are not root.
func unprivileged() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("it refuses to run as root, and this machine has neither a user postgres nor nobody to run it as; run the tests as another user")
}
