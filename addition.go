package elector

import (
	"context"
	"fmt"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/rule"
)

// An addition is what a process writes into the record of a leader.
type addition interface {
	Into(x backends.Extensions) (backends.Extensions, error)
}

// extend writes an addition into the record of a leader, and nothing else.
func (e *Elector) extend(ctx context.Context, r backends.Record, a addition) *failure {
	if unknown := rule.Critical(r); unknown != "" {
		return e.heldBy(r)
	}
	next := r
	var err error
	if next.Extensions, err = a.Into(r.Extensions); err != nil {
		return &failure{refused, fmt.Errorf("the record has no room: %w", err)}
	}
	if !e.pace(ctx) {
		return &failure{cancelled, e.ended(ctx, nil)}
	}
	_, f := e.swap(ctx, e.o.RequestTimeout, asking, false, r, next)
	return f
}
