package chaos

import (
	"os"

	"golang.org/x/sys/unix"
)

// shorten makes a pipe hold a page.
func shorten(pipe *os.File) { unix.FcntlInt(pipe.Fd(), unix.F_SETPIPE_SZ, page) }
