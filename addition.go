package elector

import (
	"context"
	"fmt"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/rule"
	"github.com/elector-go/elector/internal/store"
)

// extend writes into the record of a leader what into adds to its extensions, and nothing
// else.
func (e *Elector) extend(ctx context.Context, r backends.Record, into func(backends.Extensions) (backends.Extensions, error)) *failure {
	if unknown := rule.Critical(r); unknown != "" {
		return e.heldBy(r)
	}
	next := r
	var err error
	if next.Extensions, err = into(r.Extensions); err != nil {
		return &failure{refused, fmt.Errorf("the record has no room: %w", err)}
	}
	if !e.pace(ctx) {
		return &failure{cancelled, e.ended(ctx, nil)}
	}
	a := e.asks(swapping, store.Look).within(e.o.RequestTimeout)
	_, f, _ := e.swap(ctx, a, &swap{prev: r, size: store.Size(r) + store.Size(next),
		may: func() bool { return true }, next: func() backends.Record { return next }})
	return f
}
