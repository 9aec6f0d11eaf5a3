package elector

import (
	"context"
	"time"

	"github.com/elector-go/elector/internal/annex"
)

// A Term is the time for which one candidate led an election, or a part of it that
// is known. The times are times of day of the processes that recorded them: they
// are for people, and decide nothing.
type Term struct {
	ID    string    // of the leader, at most 64 bytes of it, with "?" for what cannot be printed; empty if it is not known
	Token Token     // of its acquisition
	Start time.Time // often that in the token; zero if it is not known
	End   time.Time // zero while the term goes on, or if it is not known

	// Reason is why the term ended: "resigned", "requested" (see RequestResign),
	// "unhealthy", "lost" (the work took too long to stop, and then the record was released), "deposed",
	// "cancelled" (a campaign that won after it was cancelled, and never led),
	// "expired" (a candidate took over at End, perhaps the same one), "paused" (by this process: see
	// Elector.Pause), or "unknown". It is empty while the term goes on.
	Reason string
}

// History reads the record once and returns the latest terms, the oldest first: at
// most eight, and fewer if IDs are long. Every acquisition and release records
// its term with the same write. A version of this library that keeps no history leaves
// gaps: of the terms that it has led only the last one is shown, without an end and
// perhaps without an ID, and the leader that it replaced ended for an unknown reason.
// The history is lost with the record. History blocks as Leader does.
func (e *Elector) History(ctx context.Context) ([]Term, error) {
	if err := e.begin(ctx); err != nil {
		return nil, e.fail("read", err)
	}
	defer e.active.Done()
	r, f := e.loadOnce(ctx)
	if f != nil {
		return nil, e.fail("read", f.err)
	}
	var terms []Term
	for _, t := range annex.HistoryOf(r) {
		terms = append(terms, Term{t.ID, Token(t.Token), t.Start, t.End, t.Reason.String()})
	}
	return terms, nil
}
