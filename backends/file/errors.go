package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/elector-go/elector/backends"
)

// classify is the [backends.Classify] of every backend.
func (b *Backend) classify(err error) (advice string, kind error) {
	is := func(targets ...error) bool {
		for _, t := range targets {
			if errors.Is(err, t) {
				return true
			}
		}
		return false
	}
	switch {
	case is(syscall.EROFS):
		return "mount its file system writable, or name another directory", backends.ErrReadOnly
	case is(fs.ErrPermission) && b.base.ReadOnly():
		return fmt.Sprintf("let user %d read and search the directory; candidates that are started after that write records that the same users can read", os.Getuid()), backends.ErrDenied
	case is(fs.ErrPermission):
		return fmt.Sprintf("let user %d read, write and search the directory, and run all candidates as one user", os.Getuid()), backends.ErrDenied
	case is(syscall.ENOSPC, syscall.EDQUOT):
		return "free space and inodes there, or raise the quota", backends.ErrUnavailable
	case is(syscall.EMFILE, syscall.ENFILE):
		return "raise the limit of open files (ulimit -n)", backends.ErrUnavailable
	case is(syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP):
		return "something else has the name of the directory or of a lock file: move it away", backends.ErrMisconfigured
	case is(syscall.ENAMETOOLONG):
		return "name a directory with a shorter path, on a file system that takes names of 133 bytes", backends.ErrMisconfigured
	case is(syscall.ENOTSUP, syscall.ENOSYS, syscall.ENOLCK):
		return "its file system cannot lock or sync: name a directory on a local disk", backends.ErrMisconfigured
	case is(fs.ErrNotExist):
		return "the directory, or one of its files, was removed or unmounted: restore it", backends.ErrUnavailable
	}
	return "the system's log may say more about this disk", backends.ErrUnavailable
}
