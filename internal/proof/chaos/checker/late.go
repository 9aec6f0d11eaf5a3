package checker

import (
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// lateCreations returns the creations of a candidate's record that were not answered, and
// that may be applied when the record has been removed: after all that is known of them. At
// most one follows each removal.
func (e *election) lateCreations(holder string, r request, from, until time.Duration) (ops []porcupine.Operation) {
	c := e.candidates[holder]
	if c == nil || !c.unanswered(from, until) {
		return nil
	}
	for _, x := range e.tampering {
		if x.Kind == history.Removed && x.At >= from && e.seenSince(x, r) {
			ops = append(ops, operation(request{create, r.holder, r.token}, max(from, x.Before), forever))
		}
	}
	return ops
}

// unanswered reports whether a write of the candidate failed, between two moments, with an
// error that leaves open whether it was applied.
func (c *candidate) unanswered(from, until time.Duration) bool {
	for _, v := range c.events {
		if v.Kind.IsFailure() && v.At >= from && v.At <= until && strings.HasPrefix(v.Detail, "swap: ") && !strings.Contains(v.Detail, backends.ErrConflict.Error()) {
			return true
		}
	}
	return false
}

// seenSince reports whether the record was read as the request leaves it, after x.
func (e *election) seenSince(x history.Event, r request) bool {
	for _, v := range e.events {
		if v.Kind == history.Observed && v.Holder == r.holder && v.Token == r.token && v.At >= x.Before {
			return true
		}
	}
	return false
}
