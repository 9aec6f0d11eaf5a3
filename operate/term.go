package operate

import "time"

// A Term is the time for which one candidate led an election, or a part of it that
// is known. The times are times of day of the processes that recorded them: they
// are for people, and decide nothing.
type Term struct {
	ID    string    // of the leader, at most 64 bytes of it, with "?" for what cannot be printed; empty if it is not known
	Token uint64    // of its acquisition, an elector.Token
	Start time.Time // often that in the token; zero if it is not known
	End   time.Time // zero while the term goes on, or if it is not known

	// Reason is why the term ended: "resigned", "requested" (see RequestResign),
	// "unhealthy", "lost" (the work took too long to stop, and then the record was released), "deposed",
	// "cancelled" (a campaign that won after it was cancelled, and never led),
	// "expired" (a candidate took over at End, perhaps the same one), "paused" (by this process: see
	// Operator.Pause), or "unknown". It is empty while the term goes on.
	Reason string
}
