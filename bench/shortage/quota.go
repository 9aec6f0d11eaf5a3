package shortage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A quota is a control group that bounds how much processor one process gets: of version 1,
// or of version 2.
type quota struct{ folder, limit string }

const (
	groups      = "/sys/fs/cgroup"
	groupPrefix = "elector-shortage-" // a process id follows

	// period is the time for which a group has its quota.
	period = 100 * time.Millisecond

	// leastQuota is the least that the system takes.
	leastQuota = time.Millisecond
)

// newQuota puts a process into a control group of its own, without a limit. That needs the
// rights of root.
func newQuota(root string, pid int) (*quota, error) {
	parent, limit := filepath.Join(root, "cpu"), "cpu.cfs_quota_us"
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		parent, limit = root, "cpu.max"
		if err := write(filepath.Join(root, "cgroup.subtree_control"), "+cpu"); err != nil {
			return nil, fmt.Errorf("there is no control group of processors: %w", err)
		}
	}
	sweep(parent)
	q := &quota{filepath.Join(parent, groupPrefix+strconv.Itoa(pid)), limit}
	if err := os.Mkdir(q.folder, 0o755); err != nil {
		return nil, fmt.Errorf("there is no control group of processors: %w", err)
	}
	if err := errors.Join(q.lift(), write(filepath.Join(q.folder, "cgroup.procs"), strconv.Itoa(pid))); err != nil {
		return nil, errors.Join(err, q.close())
	}
	return q, nil
}

// sweep removes the groups of processes that are gone.
func sweep(parent string) {
	left, _ := filepath.Glob(filepath.Join(parent, groupPrefix+"*"))
	for _, folder := range left {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(folder), groupPrefix))
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			os.Remove(folder)
		}
	}
}

// set bounds the process to a share of one core.
func (q *quota) set(share float64) error {
	return q.write(max(leastQuota, time.Duration(share*float64(period))))
}

// lift takes the bound away.
func (q *quota) lift() error { return q.write(-1) }

// write writes the bound, which is below 0 if there is none.
func (q *quota) write(bound time.Duration) error {
	text := strconv.FormatInt(bound.Microseconds(), 10)
	each := strconv.FormatInt(period.Microseconds(), 10)
	if bound < 0 {
		text = "-1"
	}
	if q.limit == "cpu.max" {
		return write(filepath.Join(q.folder, q.limit), strings.Replace(text, "-1", "max", 1)+" "+each)
	}
	return errors.Join(
		write(filepath.Join(q.folder, "cpu.cfs_period_us"), each),
		write(filepath.Join(q.folder, q.limit), text),
	)
}

func write(file, text string) error { return os.WriteFile(file, []byte(text), 0o644) }

// close removes the group of a process that has ended. Its threads may take a moment.
func (q *quota) close() error {
	deadline := time.Now().Add(2 * time.Second)
	for {
		err := os.Remove(q.folder)
		if err == nil || errors.Is(err, fs.ErrNotExist) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}
