package guardian

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ReapOrphans reaps the children that this process has adopted, as process 1 of a
// container does, and never returns. It takes only those that have been dead for a
// while: the process's own children are awaited where they were started.
func ReapOrphans() {
	var before map[identity]bool
	for range time.Tick(orphanAge) {
		now := map[identity]bool{}
		if deadChild() {
			now = deadChildren()
		}
		for p := range now {
			if before[p] {
				unix.Wait4(p.pid, nil, unix.WNOHANG, nil)
			}
		}
		before = now
	}
}

// orphanAge is much longer than a child is dead that is awaited.
const orphanAge = 5 * time.Second

// deadChild reports whether a child waits to be reaped.
func deadChild() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0
}

func deadChildren() map[identity]bool {
	found := map[identity]bool{}
	for _, p := range descendants(os.Getpid()) {
		if p.dead && p.parent == os.Getpid() {
			found[p.identity] = true
		}
	}
	return found
}
