//go:build !unix

package stage

import "os"

// signals is nil: a process cannot be stopped and continued here.
var signals map[string]os.Signal
