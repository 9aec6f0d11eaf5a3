//go:build unix && !linux

package guardian

import (
	"errors"
	"syscall"
)

// ErrIsolation is the error of a system without PID namespaces.
var ErrIsolation = errors.New("only Linux has PID namespaces; leave out --isolate")

const probe = "probe"

// Isolates returns ErrIsolation.
func Isolates(string) error { return ErrIsolation }

func isolation(*syscall.SysProcAttr) {}

func isolate() error { return ErrIsolation }

func killNamespace() []process { return nil }

func outside(_, inside int) int { return inside }
