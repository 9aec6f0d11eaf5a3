package elector

import (
	"context"
	"fmt"

	"github.com/elector-go/elector/internal/annex"
	"github.com/elector-go/elector/operate"
)

// A pause adds no rule of safety. The process that pauses comes to lead as any candidate
// does, and releases the record with a mark, a critical extension of the vacancy, for
// which all candidates wait: see turn. A version that does not know the mark does not lead
// either. The process that resumes comes to lead too, and releases the record as usual.

// Pause implements operate.Operator.
func (o operator) Pause(ctx context.Context, p operate.Pause) error {
	e := o.e
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
		if err := l.Release(context.WithoutCancel(ctx)); err != nil {
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
		return fmt.Errorf("%w: another process has led or resumed since", operate.ErrNotPaused)
	case e.annex.Of(r).Pause == nil:
		return fmt.Errorf("%w: the store took the pause, but the record does not have it: the backend, or another process, drops extensions", ErrMisconfigured)
	}
	return nil
}

// Resume implements operate.Operator.
func (o operator) Resume(ctx context.Context) error {
	return o.e.depute(ctx, "resume", func(ctx context.Context, d *Elector) error {
		r, err := d.look(ctx)
		switch {
		case err != nil:
			return err
		case d.annex.Of(r).Pause == nil:
			return notPaused(r)
		}
		l, err := d.seize(ctx)
		if err != nil {
			return err
		}
		return l.Release(context.WithoutCancel(ctx))
	})
}
