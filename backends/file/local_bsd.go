//go:build darwin || freebsd

package file

import (
	"strings"

	"golang.org/x/sys/unix"
)

// remoteFileSystem returns the kind of the directory's file system if it must
// not be used, "" otherwise. FUSE volumes may call themselves local.
func remoteFileSystem(dir string) (string, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "", err
	}
	kind := unix.ByteSliceToString(s.Fstypename[:])
	if s.Flags&unix.MNT_LOCAL != 0 && !strings.Contains(kind, "fuse") {
		return "", nil
	}
	return kind, nil
}
