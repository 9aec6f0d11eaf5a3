package guardian

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// A process is what /proc shows of one.
type process struct {
	identity
	parent, group int
	zombie        bool // at least its first thread has ended
	dead          bool
	name          string
}

// An identity is the name that a process alone has.
type identity struct {
	pid   int
	start string // since boot
}

func (p process) String() string { return fmt.Sprintf("%d (%s)", p.pid, p.name) }

func look(pid int) (process, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, err
	}
	// The name may have spaces and brackets.
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return process{}, fmt.Errorf("/proc/%d/stat is %.80q", pid, stat)
	}
	fields := bytes.Fields(stat[end+1:])
	if len(fields) < 20 {
		return process{}, fmt.Errorf("/proc/%d/stat is %.80q", pid, stat)
	}
	numbers := make([]int, 3)
	for i, at := range []int{1, 2, 17} {
		if numbers[i], err = strconv.Atoi(string(fields[at])); err != nil {
			return process{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
	}
	// A process whose first thread has ended looks like a zombie while others run.
	zombie := fields[0][0] == 'Z' || fields[0][0] == 'X'
	dead := zombie && numbers[2] <= 1
	return process{identity{pid, string(fields[19])}, numbers[0], numbers[1], zombie, dead, string(stat[open+1 : end])}, nil
}

// descendants returns the descendants of a process, zombies included. One that is
// forked meanwhile may be missing; only wait(2) knows when there is none.
func descendants(of int) (found []process) {
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
	todo := []int{of}
	for len(todo) > 0 {
		pid := todo[0]
		todo = todo[1:]
		for _, child := range children[pid] {
			todo = append(todo, child.pid)
			found = append(found, child)
		}
	}
	return found
}

// killAll sends SIGKILL to the descendants of this process that it finds, and
// returns those that were alive. One that is forked meanwhile is found the next time.
func killAll(command int) (live []process) {
	chase()
	found := descendants(os.Getpid())
	leads := map[int]bool{command: true}
	for _, p := range found {
		leads[p.pid] = true
		if !p.dead {
			live = append(live, p)
		}
	}
	// First whole groups, which no process leaves by forking. Only those that a
	// descendant has made: other groups have other processes too.
	killed := map[int]bool{unix.Getpgrp(): true}
	for _, p := range live {
		if leads[p.group] && !killed[p.group] && !spared(p.pid) {
			killed[p.group] = true
			syscall.Kill(-p.group, syscall.SIGKILL)
		}
	}
	for _, p := range live {
		if !spared(p.pid) {
			p.kill()
		}
	}
	return live
}

// kill does not hit another process that has got the same id meanwhile.
func (p process) kill() {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err == unix.ESRCH {
		return
	}
	if err == nil {
		defer unix.Close(fd)
	}
	if now, looked := look(p.pid); looked != nil || now.identity != p.identity {
		return
	}
	if err != nil { // before Linux 5.3, or forbidden
		syscall.Kill(p.pid, syscall.SIGKILL)
		return
	}
	unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
}

// alive reports whether the guardian has live descendants. It adopts them, so one is
// its child.
func alive(guardian, _ int) bool {
	for _, pid := range children(guardian) {
		if p, err := look(pid); err == nil && !p.dead {
			return true
		}
	}
	return slices.ContainsFunc(descendants(guardian), func(p process) bool { return !p.dead })
}
