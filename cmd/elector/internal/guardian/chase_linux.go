package guardian

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// chase kills the children of this process until it sees none or the same ones twice.
// It is for processes that fork and end faster than all of /proc is read: this process
// adopts each child of theirs. A kernel without lists of children has no chase.
func chase() {
	own := unix.Getpgrp()
	var before []int
	for range 1000 {
		now := children(os.Getpid())
		if len(now) == 0 || slices.Equal(now, before) {
			return
		}
		before = now
		for _, pid := range now {
			if spared(pid) {
				continue
			}
			// The system gives a number again only after all others, so this is still
			// the same process. A group is its leader's, and no process leaves one by
			// forking.
			if group, err := unix.Getpgid(pid); err == nil && group != own && group == pid {
				syscall.Kill(-group, syscall.SIGKILL)
			}
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// children returns the children of a process.
func children(of int) (all []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", of))
	for _, list := range lists {
		content, _ := os.ReadFile(list)
		for _, field := range bytes.Fields(content) {
			if pid, err := strconv.Atoi(string(field)); err == nil {
				all = append(all, pid)
			}
		}
	}
	return all
}
