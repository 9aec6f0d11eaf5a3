package elector

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/annex"
	"github.com/elector-go/elector/internal/rule"
	"github.com/elector-go/elector/internal/store"
)

// A pause adds no rule of safety. The process that pauses comes to lead as any candidate
// does, and releases the record with a mark, a critical extension of the vacancy, for
// which all candidates wait: see turn. A version that does not know the mark does not lead
// either. The process that resumes comes to lead too, and releases the record as usual.

// A Pause describes a pause of an election.
type Pause struct {
	Reason string        // for people; at most 256 bytes
	For    time.Duration // 0 until Resume; see Elector.Pause
	By     string        // ID of the process that has paused, at most 64 bytes of it; Elector.Pause sets it
}

// String describes the pause in an error.
func (p Pause) String() string {
	s := fmt.Sprintf("by %q", p.By)
	if p.For > 0 {
		s += fmt.Sprintf(" for %v", p.For)
	}
	if p.Reason != "" {
		s += ": " + strconv.Quote(p.Reason)
	}
	return s
}

// Pause ends the leader's term in an orderly way, and then no candidate leads until
// Resume, or until p.For is over: for maintenance, for example. Each candidate counts p.For
// on its own clock, from when it has first seen the pause, and so does one that starts
// later: a process that runs for less than p.For, as a cron job does, leads only after
// Resume, or after another candidate has led. p.For is at most 366 days, and is cut to
// milliseconds. Campaigns wait meanwhile, and TryCampaign returns ErrPaused.
//
// Pause first requests the leader to resign, as RequestResign does, or waits until the
// lease of a dead leader has lapsed, and then leads for a moment itself, as another
// candidate of the election. It blocks until the pause stands in the store, or until ctx
// ends; then it returns the cause, and a request may stay. Once it leads it goes on after
// the end of ctx, for at most twice ReleaseTimeout. Any process may call it, the
// leader and those that campaign included; but a worker that calls it delays its own end.
// Pause returns
//
//   - ErrPaused if the election is paused already;
//   - ErrNotLeader if the election never had a leader, in this store: a wrong name;
//   - ErrInvalid if the reason or p.For is too long, or the record has no room;
//   - ErrLost if this process was stopped while it led, so that another one may lead;
//   - ErrNotPaused if the pause stood, and another process has ended it at once;
//   - and the errors of RequestResign and Campaign.
//
// A version of this library that does not know pauses leads no paused election, and cannot
// resume one; docs/upgrade.md names an exception.
func (e *Elector) Pause(ctx context.Context, p Pause) error {
	mark := annex.Pause{For: p.For, By: e.o.ID, Reason: p.Reason}
	if err := mark.Check(); err != nil {
		return e.fail("pause", fmt.Errorf("%w: %w", ErrInvalid, err))
	}
	return e.depute(ctx, "pause", func(ctx context.Context, d *Elector) error {
		r, err := d.look(ctx)
		switch {
		case err != nil:
			return err
		case !r.Exists():
			return fmt.Errorf("%w: no election of this name has ever had a leader here; is the name right, and the store?", ErrNotLeader)
		}
		l, err := d.seize(ctx)
		if err != nil {
			return err
		}
		if _, err := annex.Pauses(l.won, mark); err != nil {
			return fmt.Errorf("%w: the record has no room for a pause: %w", ErrInvalid, err)
		}
		l.release.pause.Store(&mark)
		if err := l.Resign(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("the pause may not stand; see who leads, and pause again: %w", err)
		}
		return d.confirm(context.WithoutCancel(ctx), l)
	})
}

// confirm returns an error unless the record shows the pause with which l was released.
func (e *Elector) confirm(ctx context.Context, l *Lease) error {
	ctx, cancel := e.clock.WithTimeout(ctx, e.o.ReleaseTimeout)
	defer cancel()
	r, err := e.look(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("the pause was written, and then could not be read: %w", err)
	case r.Attempt.Nonce != l.own.nonce:
		return fmt.Errorf("%w: another process has led or resumed since", ErrNotPaused)
	case annex.PauseOf(r) == nil:
		return fmt.Errorf("%w: the store took the pause, but the record does not have it: the backend, or another process, drops extensions", ErrMisconfigured)
	}
	return nil
}

// Resume ends a pause, also one whose time is over and after which no candidate has led.
// It blocks until the candidates may lead again, or until ctx ends, and then returns the
// cause. It returns ErrNotPaused if the election is not paused, and the errors of Campaign.
func (e *Elector) Resume(ctx context.Context) error {
	return e.depute(ctx, "resume", func(ctx context.Context, d *Elector) error {
		r, err := d.look(ctx)
		switch {
		case err != nil:
			return err
		case annex.PauseOf(r) == nil:
			return notPaused(r)
		}
		l, err := d.seize(ctx)
		if err != nil {
			return err
		}
		return l.Resign(context.WithoutCancel(ctx))
	})
}

func notPaused(r backends.Record) error {
	switch {
	case !r.Exists():
		return fmt.Errorf("%w: no election of this name has ever had a leader here", ErrNotPaused)
	case r.Vacant():
		return fmt.Errorf("%w: it is vacant", ErrNotPaused)
	}
	return fmt.Errorf("%w: %q leads with token %d", ErrNotPaused, r.Holder, r.Token)
}

// depute calls f with another candidate of the election, which does op for this one: this
// one may lead or campaign meanwhile.
func (e *Elector) depute(ctx context.Context, op string, f func(ctx context.Context, deputy *Elector) error) error {
	if err := e.beginWriting(ctx); err != nil {
		return e.fail(op, err)
	}
	defer e.active.Done()
	o := e.o
	o.ID = op + " by " + annex.Legible(e.o.ID)
	o.Healthy, o.Trace, o.Value, o.Priority, o.StallTimeout, o.seat = nil, nil, "", 0, 0, false
	d, err := New(e.backend, e.name, &o)
	if err != nil {
		return err
	}
	defer d.Close()
	defer context.AfterFunc(e.life, d.kill)()
	ctx, cancel := d.joined(ctx)
	defer cancel()
	d.resumes = op == "resume"
	return e.fail(op, f(ctx, d))
}

// seize makes this deputy lead: it requests each leader to resign, or, if it resumes, ends
// the pause. Campaign would wait for a leader.
func (e *Elector) seize(ctx context.Context) (*Lease, error) {
	backoff := e.newBackoff("campaign")
	defer backoff.close()
	for {
		var f *failure
		l, err := e.exclusive(ctx, func(ctx context.Context) (l *Lease, _ error) {
			l, f = e.attempt(ctx, 1, backoff)
			return l, f.shown()
		})
		s := e.view.Snapshot()
		from, _ := e.turn(s)
		switch now := e.now(); {
		case f == nil:
			return l, err
		case f.permanent():
			return nil, f.err
		case ctx.Err() != nil:
			return nil, e.ended(ctx, f)
		case f.kind != holding:
			if !backoff.pause(ctx, f) {
				return nil, e.ended(ctx, f)
			}
			continue
		case e.resumes && !s.Record.Vacant():
			return nil, notPaused(s.Record)
		case !e.resumes && e.leader(s.Record).Pause != nil, s.Free == rule.Never:
			return nil, f.err
		case s.Record.Vacant(), s.Own, now >= s.Lapse: // no leader can resign
			err = e.await(ctx, s.Record.Version, max(s.Free, from, 1))
		default:
			err = e.request(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
}

// look reads the record until that succeeds or cannot succeed.
func (e *Elector) look(ctx context.Context) (backends.Record, error) {
	backoff := e.newBackoff("campaign: reading the record")
	defer backoff.close()
	for {
		r, f := e.loadOnce(ctx)
		switch {
		case f == nil, f.permanent():
			return r, f.shown()
		case !backoff.pause(ctx, f):
			return r, e.ended(ctx, f)
		}
	}
}

// await blocks until the record has another version, until a monotonic time, or until ctx
// ends.
func (e *Elector) await(ctx context.Context, version backends.Version, until time.Duration) error {
	place := e.reading()
	defer place.Leave()
	w := e.watch(ctx, store.Seek, "campaign", place)
	defer w.cancel()
	_, err := w.wait(ctx, version, until)
	return err
}

// request requests the leader, if there is one, to resign in favour of this candidate.
func (e *Elector) request(ctx context.Context) error {
	err := e.RequestResign(ctx, ResignRequest{To: e.o.ID})
	if requestedBefore(err) {
		err = e.RequestResign(ctx, ResignRequest{}) // waits for the outcome
	}
	if noLeader(err) {
		return nil
	}
	return err
}
