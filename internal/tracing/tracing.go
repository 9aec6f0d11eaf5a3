// Package tracing combines sets of callbacks.
package tracing

import "context"

// Multi returns a callback that calls one of each Trace in their order, nil if none has
// it. of returns the callback of a Trace.
func Multi[Trace, Info any](traces []*Trace, of func(*Trace) func(context.Context, Info)) func(context.Context, Info) {
	var all []func(context.Context, Info)
	for _, t := range traces {
		if t != nil && of(t) != nil {
			all = append(all, of(t))
		}
	}
	if all == nil {
		return nil
	}
	return func(ctx context.Context, info Info) {
		for _, callback := range all {
			callback(ctx, info)
		}
	}
}
