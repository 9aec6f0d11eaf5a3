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
	var o orphans
	for range time.Tick(orphanAge) {
		o.reap()
	}
}

// orphans are the children that were dead at the last look.
type orphans map[identity]bool

func (o *orphans) reap() {
	now := orphans{}
	if deadChild() {
		now = deadChildren()
	}
	for p := range now {
		if (*o)[p] {
			unix.Wait4(p.pid, nil, unix.WNOHANG, nil)
		}
	}
	*o = now
}

// orphanAge is much longer than a child is dead that is awaited.
const orphanAge = 5 * time.Second

// deadChild reports whether a child waits to be reaped.
func deadChild() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0
}

func deadChildren() orphans {
	found := orphans{}
	for _, p := range descendants(os.Getpid()) {
		if p.dead && p.parent == os.Getpid() {
			found[p.identity] = true
		}
	}
	return found
}
