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
	return e.depute(ctx, "pause", &mark)
}

// Resume implements operate.Operator.
func (o operator) Resume(ctx context.Context) error {
	return o.e.depute(ctx, "resume", nil)
}
