//go:build !(linux || darwin || freebsd)

package file

import (
	"errors"
	"os"
)

// Elsewhere New refuses. On Windows a rename over a file that a process reads
// fails, and is not promised to be atomic.
const (
	supported = false
	openFlags = 0
)

func tryLock(string) (*os.File, error) { return nil, errors.ErrUnsupported }

func unlock(*os.File) {}

func remoteFileSystem(string) (string, error) { return "", errors.ErrUnsupported }
