// Package inject brings a machine's clock and random numbers to what is made with a
// backend, so that tests and simulations can bring their own.
package inject

import (
	"crypto/rand"
	"encoding/binary"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/internal/rule"
)

// A Backend is a backend as it is used from a machine. elector.New and partition.New take it
// apart, so it must not be wrapped in another one.
type Backend struct {
	backends.Backend
	Clock  clock.Clock     // nil for this machine's
	Random func() uint64   // nil for this machine's
	Report func(rule.Step) // gets each step of an Elector: see rule.View; may be nil
}

// Of returns b with its clock and random numbers, which are this machine's unless b is a
// Backend that brings others.
func Of(b backends.Backend) Backend {
	m, ok := b.(Backend)
	if !ok {
		m.Backend = b
	}
	if m.Clock == nil {
		m.Clock = clock.System{}
	}
	if m.Random == nil {
		m.Random = systemRandom
	}
	return m
}

// systemRandom asks the kernel each time: a generator in memory would repeat
// itself in a copy of a virtual machine.
func systemRandom() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.NativeEndian.Uint64(b[:])
}
