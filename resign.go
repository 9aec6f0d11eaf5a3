package elector

import (
	"context"
	"fmt"
)

// ResignTo is Resign, and names the candidate that should lead next, by its
// Options.ID. That candidate tries to lead as soon as it sees the vacancy, and the
// others let it have a head start; if it does not come in time, any of them may
// lead: see Options.Priority. ResignTo returns ErrInvalid if the ID is empty, is
// this candidate's own, is longer than 256 bytes, or is not UTF-8 without NUL; the
// lease then goes on, and a later Resign names no candidate. If ctx ends first, the release
// that goes on names the candidate.
func (e *Elector) ResignTo(ctx context.Context, id string) error {
	err := checkSuccessor(id)
	if err == nil && id == e.o.ID {
		err = fmt.Errorf("%w: %q cannot name itself", ErrInvalid, id)
	}
	if err != nil {
		return e.fail("resign", err)
	}
	l := e.current.Load()
	if l == nil {
		return e.Resign(ctx)
	}
	l.release.named.Store(&id)
	if err = e.Resign(ctx); err != nil && l.status.Load().phase == held {
		l.release.named.CompareAndSwap(&id, nil)
	}
	return err
}
