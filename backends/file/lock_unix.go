//go:build linux || darwin || freebsd

package file

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

const (
	supported = true
	openFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK
)

// tryLock takes the lock, or returns nil if another open file has it. Each call
// opens the file anew: flock excludes open files, not processes, so goroutines
// and handles of one process exclude each other too.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE|openFlags, 0o600)
	if err != nil {
		return nil, err
	}
	if taken, err := take(f); !taken {
		f.Close()
		return nil, err
	}
	return f, nil
}

func take(f *os.File) (taken bool, err error) {
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return false, nil
	}
	if err != nil {
		return false, &os.PathError{Op: "flock", Path: f.Name(), Err: err}
	}
	// The file may have been removed since it was opened: a lock on it excludes no
	// process that comes later.
	mine, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Lstat(f.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, there), err
}

// unlock lets go of the lock by name, not by closing the file only: a child
// process that is being started may hold a copy of the descriptor for a moment.
func unlock(f *os.File) {
	unix.Flock(int(f.Fd()), unix.LOCK_UN)
	f.Close()
}
