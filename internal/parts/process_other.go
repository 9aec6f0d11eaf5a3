//go:build !unix

package main

import (
	"os"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr { return nil }

func signalGroup(group int, _ syscall.Signal) {
	if p, err := os.FindProcess(group); err == nil {
		p.Kill()
	}
}
