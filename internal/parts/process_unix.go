//go:build unix

package main

import "syscall"

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func signalGroup(group int, signal syscall.Signal) { syscall.Kill(-group, signal) }
