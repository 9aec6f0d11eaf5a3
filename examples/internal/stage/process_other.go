//go:build !linux

package stage

import "syscall"

// childAttributes are the default: a child ends when its standard input does,
// and so with the stage.
func childAttributes() *syscall.SysProcAttr { return nil }
