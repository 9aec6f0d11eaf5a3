package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/elector-go/elector/backends"
)

// failed says which store it was, what it was doing, and what to do.
func (h *Handle) failed(doing string, err error) error {
	kind, advice := classify(err)
	if kind == backends.ErrForeignRecord {
		return err // says it all
	}
	return fmt.Errorf("%w: %s: %s: %w; %s", kind, h.store, doing, err, advice)
}

func classify(err error) (kind error, advice string) {
	is := func(targets ...error) bool {
		for _, t := range targets {
			if errors.Is(err, t) {
				return true
			}
		}
		return false
	}
	switch {
	case is(backends.ErrForeignRecord):
		return backends.ErrForeignRecord, ""
	case is(syscall.EROFS):
		return backends.ErrReadOnly, "mount its file system writable, or name another directory"
	case is(fs.ErrPermission):
		return backends.ErrDenied, fmt.Sprintf("let user %d read, write and search the directory, and run all candidates as one user", os.Getuid())
	case is(syscall.ENOSPC, syscall.EDQUOT):
		return backends.ErrUnavailable, "free space and inodes there, or raise the quota"
	case is(syscall.EMFILE, syscall.ENFILE):
		return backends.ErrUnavailable, "raise the limit of open files (ulimit -n)"
	case is(syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP):
		return backends.ErrMisconfigured, "something else is in the place of the directory or a lock file: move it away"
	case is(syscall.ENAMETOOLONG):
		return backends.ErrMisconfigured, "name a directory with a shorter path, on a file system that takes names of 133 bytes"
	case is(syscall.ENOTSUP, syscall.ENOSYS, syscall.ENOLCK):
		return backends.ErrMisconfigured, "its file system cannot lock or sync: name a directory on a local disk"
	case is(fs.ErrNotExist):
		return backends.ErrUnavailable, "the directory, or a file of ours in it, was removed or unmounted: bring it back"
	}
	return backends.ErrUnavailable, "the system's log may say more about this disk"
}
