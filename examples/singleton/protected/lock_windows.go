package protected

import (
	"os"

	"golang.org/x/sys/windows"
)

// lock waits until no other open file has the lock. Closing the file, or the
// death of the process, gives it back.
func lock(file *os.File) error {
	// A lock on Windows keeps others from reading and writing what it covers:
	// it lies behind any content.
	behind := &windows.Overlapped{OffsetHigh: 1 << 30}
	return windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, behind)
}
