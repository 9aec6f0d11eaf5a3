//go:build unix

package protected

import (
	"os"

	"golang.org/x/sys/unix"
)

// lock waits until no other open file has the lock. Closing the file, or the
// death of the process, gives it back.
func lock(file *os.File) error {
	for {
		if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != unix.EINTR {
			return err
		}
	}
}
