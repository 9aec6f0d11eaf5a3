// Package fencing has what the guards and the fences of several backends have in
// common.
package fencing

import (
	"fmt"
	"strconv"

	"github.com/elector-go/elector/backends"
)

// Acquisition returns the acquisition of a lease and the backend through which it was
// made. If that is not a B, which keeps elections in the store, a guard has nothing to
// compare with, and if the store may lose the record of a later acquisition, a guard
// that compares with it promises nothing: both are ErrMisconfigured.
func Acquisition[B backends.Backend](lease backends.Lease, store string) (a backends.Acquisition, b B, err error) {
	if a, err = lease.Acquisition(); err != nil {
		return a, b, err
	}
	b, ok := backends.As[B](a.Backend)
	switch lossy := a.Backend.Describe().Lossy; {
	case lossy != "":
		err = fmt.Errorf("%w: election %s is on %s, where no guard finds every later leader: %s", backends.ErrMisconfigured, a.Election, a.Backend.Describe().Store, lossy)
	case !ok:
		err = fmt.Errorf("%w: election %s is on %s; its lease cannot guard a write to %s; fence the write with its token", backends.ErrMisconfigured, a.Election, a.Backend.Describe().Store, store)
	}
	return a, b, err
}

// Admit returns why an object must not be written under an acquisition, nil if it may.
// The metadata has, under these names, the token and the election that it was written
// under last.
func Admit(metadata map[string]string, tokenName, electionName string, a backends.Acquisition) error {
	digits, fenced := metadata[tokenName]
	if !fenced {
		return nil
	}
	if election := metadata[electionName]; election != a.Election {
		return fmt.Errorf("%w: its %s is %.140q, not this election, so tokens cannot be compared; only one election can fence it", backends.ErrMisconfigured, electionName, election)
	}
	token, err := strconv.ParseUint(digits, 10, 64)
	switch {
	case err != nil:
		return fmt.Errorf("%w: its %s is %.40q, which is not a token; stop the writers and remove that", backends.ErrMisconfigured, tokenName, digits)
	case token > a.Record.Token:
		return fmt.Errorf("%w: it has token %d, and the lease has %d; the worker must stop", backends.ErrStale, token, a.Record.Token)
	}
	return nil
}
