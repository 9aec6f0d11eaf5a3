package chaos

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// insideLock is the fault of a process that stands where everybody waits for
// it: no candidate can take over until it goes on or dies, and the file backend says
// so.
const insideLock = "SIGSTOP inside the file lock"

// standsInLock reports whether a process that was just stopped stands inside
// the file backend's lock: it can be renewing at any moment. All others keep the
// lock for fractions of a millisecond, so one that has it for a second is it.
func (r *Round) standsInLock(ctx context.Context) (bool, error) {
	dir, ok := r.place.records.(folder)
	if !ok {
		return false, nil
	}
	names := []string{r.name}
	if r.group != nil {
		names = r.group.records()
	}
	for _, name := range names {
		if inLock, err := isHeld(ctx, filepath.Join(dir.dir, name+".lock")); inLock || err != nil {
			return inLock, err
		}
	}
	return false, nil
}

// isHeld reports whether a lock stays held.
func isHeld(ctx context.Context, path string) (bool, error) {
	lock, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // no process has written the record yet
	}
	if err != nil {
		return false, err
	}
	defer lock.Close() // and with it our lock
	for start := time.Now(); ; {
		if free, err := tryLock(lock); free || err != nil {
			return false, err
		}
		if time.Since(start) > time.Second {
			return true, nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// stands tells, from now on, if a process that was just stopped stands inside
// the lock. What it returns tells that it goes on.
func (r *Round) stands(ctx context.Context) (inLock bool, goesOn func(), err error) {
	inLock, err = r.standsInLock(ctx)
	if !inLock {
		return false, func() {}, err
	}
	return true, r.breaks(insideLock, ""), nil
}
