package elector

import (
	"context"
	"fmt"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/annex"
	"github.com/elector-go/elector/internal/inject"
	"github.com/elector-go/elector/internal/rule"
	"github.com/elector-go/elector/internal/store"
	"github.com/elector-go/elector/operate"
)

// depute lets another candidate of the election pause it, or resume it if pause is nil: this
// one may lead or campaign meanwhile.
func (e *Elector) depute(ctx context.Context, op string, pause *annex.Pause) error {
	if err := e.beginWriting(ctx); err != nil {
		return e.fail(op, err)
	}
	defer e.active.Done()
	o := e.o
	o.ID = op + " by " + annex.Legible(e.o.ID)
	o.Healthy, o.Trace, o.Value, o.Priority, o.StallTimeout = nil, nil, "", 0, 0
	d, err := New(inject.Backend{Backend: e.backend, Clock: e.clock, Random: e.draw}, e.name, &o)
	if err != nil {
		return err
	}
	defer d.Close()
	defer context.AfterFunc(e.life, d.kill)()
	ctx, cancel := d.joined(ctx)
	defer cancel()
	d.resumes = pause == nil
	return e.fail(op, d.leadBriefly(ctx, pause))
}

// leadBriefly makes this deputy lead, and releases the record with the pause, or without one.
// What cannot succeed it refuses before it writes anything.
func (e *Elector) leadBriefly(ctx context.Context, pause *annex.Pause) error {
	r, err := e.look(ctx)
	switch {
	case err != nil:
		return err
	case pause == nil && e.annex.Of(r).Pause == nil:
		return notPaused(r)
	case pause != nil && !r.Exists():
		return fmt.Errorf("%w: no election of this name has ever had a leader here; is the name right, and the store?", ErrNotLeader)
	case pause != nil:
		if _, err := annex.Pauses(r, *pause); err != nil {
			return noRoom(err)
		}
	}
	l, err := e.seize(ctx)
	if err != nil {
		return err
	}
	if pause != nil {
		if _, err := annex.Pauses(l.won, *pause); err != nil { // another process has filled it since
			return noRoom(err)
		}
	}
	l.release.pause.Store(pause)
	err = l.Release(context.WithoutCancel(ctx))
	switch {
	case pause == nil:
		return err
	case err != nil:
		return fmt.Errorf("the pause may not stand; see who leads, and pause again: %w", err)
	}
	return e.confirm(context.WithoutCancel(ctx), l)
}

func noRoom(err error) error {
	return fmt.Errorf("%w: the record has no room for a pause: %w", ErrInvalid, err)
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
		return fmt.Errorf("%w: another process has led or resumed since", operate.ErrNotPaused)
	case e.annex.Of(r).Pause == nil:
		return fmt.Errorf("%w: the store took the pause, but the record does not have it: the backend, or another process, drops extensions", ErrMisconfigured)
	}
	return nil
}

// seize makes this deputy lead: it requests each leader to resign, or, if it resumes, ends
// the pause. Campaign would wait for a leader.
func (e *Elector) seize(ctx context.Context) (*Lease, error) {
	backoff := e.newBackoff("campaign")
	defer backoff.close()
	for {
		var f *failure
		l, err := e.exclusive(ctx, func(ctx context.Context) (l *Lease, _ error) {
			l, f = e.attempt(ctx, e.o.RequestTimeout, backoff)
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

// notPaused returns the error of a record that has no pause.
func notPaused(r backends.Record) error {
	switch {
	case !r.Exists():
		return fmt.Errorf("%w: no election of this name has ever had a leader here", operate.ErrNotPaused)
	case r.Vacant():
		return fmt.Errorf("%w: it is vacant", operate.ErrNotPaused)
	}
	return fmt.Errorf("%w: %q leads with token %d", operate.ErrNotPaused, r.Holder, r.Token)
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
	err := operator{e}.RequestResign(ctx, operate.ResignRequest{To: e.o.ID})
	if requestedBefore(err) {
		err = operator{e}.RequestResign(ctx, operate.ResignRequest{}) // waits for the outcome
	}
	if noLeader(err) {
		return nil
	}
	return err
}
