//go:build !linux

package main

import "syscall"

// endsWithUs is never asked: only Linux runs the engine as a process.
func endsWithUs() *syscall.SysProcAttr { return nil }
