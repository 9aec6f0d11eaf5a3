// Package operate is the operator's half of an election: what a person or a tool does to it
// from outside, such as a pause for maintenance. The method Operator of elector.Elector
// returns an Operator:
//
//	e, err := elector.Open(ctx, os.Getenv("ELECTOR_URL"), "invoices", nil)
//	...
//	defer e.Close()
//	err = e.Operator().Pause(ctx, operate.Pause{Reason: "migration 42", For: time.Hour})
//
// The process need not be a candidate: an Elector that does not campaign never leads, except
// for a moment in Pause and Resume. The errors that this package names as elector.Err… are
// those of package elector, and a returned error is an *elector.Error.
package operate

import (
	"context"
	"errors"
)

// ErrNotPaused: the election is not paused.
var ErrNotPaused = errors.New("the election is not paused")

// An Operator operates one election. Many goroutines may use it at the same time, also while
// its Elector campaigns or leads. Later versions may add methods: a type of yours that
// implements Operator should embed one.
type Operator interface {
	// Pause ends the leader's term in an orderly way, and then no candidate leads until
	// Resume, or until p.For is over: for maintenance, for example. Each candidate counts p.For
	// on its own clock, from when it has first seen the pause, and so does one that starts
	// later: a process that runs for less than p.For, as a cron job does, leads only after
	// Resume, or after another candidate has led. p.For is at most 366 days, and is cut to
	// milliseconds. Campaigns wait meanwhile, and TryCampaign returns elector.ErrPaused.
	//
	// Pause first requests the leader to resign, as RequestResign does, or waits until the
	// lease of a dead leader has lapsed, and then leads for a moment itself, as another
	// candidate of the election. It blocks until the pause stands in the store, or until ctx
	// ends; then it returns the cause, and a request may stay. Once it leads it goes on after
	// the end of ctx, for at most twice ReleaseTimeout. Any process may call it, the
	// leader and those that campaign included; but a worker that calls it delays its own end.
	// Pause returns
	//
	//   - elector.ErrPaused if the election is paused already;
	//   - elector.ErrNotLeader if the election never had a leader, in this store: a wrong name;
	//   - elector.ErrInvalid if the reason or p.For is too long, or the record has no room;
	//   - elector.ErrLost if this process was stopped while it led, so that another one may lead;
	//   - ErrNotPaused if the pause stood, and another process has ended it at once;
	//   - and the errors of RequestResign and Campaign.
	//
	// A version of this library that does not know pauses leads no paused election, and cannot
	// resume one; docs/upgrade.md names an exception.
	Pause(ctx context.Context, p Pause) error

	// Resume ends a pause, also one whose time is over and after which no candidate has led.
	// It blocks until the candidates may lead again, or until ctx ends, and then returns the
	// cause. It returns ErrNotPaused if the election is not paused, and the errors of Campaign.
	Resume(ctx context.Context) error

	// RequestResign asks the leader, in whatever process it runs, to resign: to drain its
	// worker as for Elector.Resign, to release the election, and to let another candidate lead.
	// A request never ends a lease by itself: the leader reads it at its next renewal, so that
	// its worker must stop up to one of its renewal intervals later. Run then campaigns
	// again, but waits until another candidate has led, for at most TTL*(1+ClockDrift).
	//
	// RequestResign blocks until the record shows a vacancy or another leader, and
	// then returns nil; or until ctx ends, and then returns the cause and what the
	// leader was seen to do. The request stays in that case. It returns
	//
	//   - elector.ErrNotLeader if the leader with that token leads no more, or the election
	//     has no leader;
	//   - elector.ErrLost if the leader has not renewed for TTL*(1+ClockDrift): it is gone, and
	//     a candidate that has watched it for as long takes over without a request;
	//   - elector.ErrRequested if To is not empty and another request for this token is
	//     pending that names another candidate, or none. Otherwise RequestResign waits for the
	//     outcome of that request;
	//   - elector.ErrInvalid for an ID that ResignTo refuses or that is the leader's, and for a
	//     token above elector.MaxToken;
	//   - and the store's errors: elector.ErrDenied, ErrMisconfigured and ErrForeignRecord at
	//     once.
	//
	// A request costs one read and one write, and the leader two requests. A process that
	// names itself, on a store that pushes no vacancies, reads four times in each of the
	// leader's renewal intervals, and every 7.5 s if those are longer than 30 s. The process
	// that calls RequestResign need not be a candidate.
	RequestResign(ctx context.Context, r ResignRequest) error

	// History reads the record once and returns the latest terms, the oldest first: at
	// most eight, and fewer if IDs are long. Every acquisition and release records
	// its term with the same write. A version of this library that keeps no history leaves
	// gaps: of the terms that it has led only the last one is shown, without an end and
	// perhaps without an ID, and the leader that it replaced ended for an unknown reason.
	// The history is lost with the record. History blocks as Elector.Leader does.
	History(ctx context.Context) ([]Term, error)
}

// A ResignRequest says which leader should resign, and who should lead next.
type ResignRequest struct {
	Token uint64 // of the leader, an elector.Token; 0 means the candidate that leads now
	To    string // ID of the candidate that should lead next, as for Elector.ResignTo; may be empty
}
