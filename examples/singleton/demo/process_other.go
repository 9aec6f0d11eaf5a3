//go:build !linux

package demo

import "syscall"

// childAttributes are the default: a child ends when its standard input does,
// and so with the demo.
func childAttributes() *syscall.SysProcAttr { return nil }
