package conformance

import (
	"context"
	"errors"
	"slices"

	"github.com/elector-go/elector/backends"
)

var loadMutants = map[string]mutant{
	"a BatchLoader takes no names": {caughtBy: "load/each", rule: "a BatchLoader sets Description.MaxLoads",
		handle: described(func(d *backends.Description) { d.MaxLoads = 0 })},
	"reads in another order": {caughtBy: "load/each", rule: "LoadMany returns for each name, at its place, what Load would return",
		handle: loadAnswers(func(_ []string, outcomes []backends.Outcome) []backends.Outcome {
			slices.Reverse(outcomes)
			return outcomes
		})},
	"missing records are left out": {caughtBy: "load/each", rule: "LoadMany returns an Outcome for each name",
		handle: loadAnswers(func(_ []string, outcomes []backends.Outcome) []backends.Outcome {
			return slices.DeleteFunc(outcomes, func(o backends.Outcome) bool { return o.Err == nil && !o.Record.Exists() })
		})},
	"a missing record is an error": {caughtBy: "load/each", rule: "LoadMany reads every valid record",
		handle: loadAnswers(func(_ []string, outcomes []backends.Outcome) []backends.Outcome {
			for i, o := range outcomes {
				if !o.Record.Exists() {
					outcomes[i].Err = backends.ErrUnavailable
				}
			}
			return outcomes
		})},
	"fewer names than promised": {caughtBy: "load/each", rule: "LoadMany takes as many names as Description.MaxLoads",
		handle: loadAnswers(func(names []string, outcomes []backends.Outcome) []backends.Outcome {
			if len(names) == 100 {
				outcomes[0].Record = backends.Record{}
			}
			return outcomes
		})},
	"a name that repeats is read once": {caughtBy: "load/each", rule: "names may repeat",
		handle: loadAnswers(func(names []string, outcomes []backends.Outcome) []backends.Outcome {
			for i, name := range names {
				if slices.Contains(names[:i], name) {
					outcomes[i] = backends.Outcome{}
				}
			}
			return outcomes
		})},
	"many are read from a cache": {caughtBy: "load/each", rule: "LoadMany reflects every Swap that was acknowledged before it was called",
		handle: func(b *broken, s *state) {
			b.loads = func(ctx context.Context, names []string) []backends.Outcome {
				outcomes := b.oneLoadByOne(ctx, names)
				for i, name := range names {
					if outcomes[i].Record.Exists() {
						old, _ := s.past.LoadOrStore(name, outcomes[i].Record)
						outcomes[i].Record = old.(backends.Record)
					}
				}
				return outcomes
			}
		}},
	"names in LoadMany are not checked": {caughtBy: "load/each", rule: "LoadMany refuses a name that no election can have",
		handle: func(b *broken, _ *state) {
			b.loads = func(ctx context.Context, names []string) []backends.Outcome {
				outcomes := b.oneLoadByOne(ctx, names)
				for i, name := range names {
					if backends.CheckName(name) != nil {
						outcomes[i] = backends.Outcome{}
					}
				}
				return outcomes
			}
		}},
	"a foreign record read with others is none": {caughtBy: "load/each", rule: "a foreign record is ErrForeignRecord for its name",
		handle: loadAnswers(func(_ []string, outcomes []backends.Outcome) []backends.Outcome {
			for i, o := range outcomes {
				if errors.Is(o.Err, backends.ErrForeignRecord) {
					outcomes[i] = backends.Outcome{}
				}
			}
			return outcomes
		})},
	"a foreign record spoils the others": {caughtBy: "load/each", rule: "a foreign record is an error for its name alone",
		handle: loadAnswers(func(_ []string, outcomes []backends.Outcome) []backends.Outcome {
			for _, o := range outcomes {
				if o.Err != nil {
					return backends.Outcomes(len(outcomes), o.Err)
				}
			}
			return outcomes
		})},

	"LoadMany does not end with its context": {caughtBy: "load/cancel", rule: "LoadMany returns when its context ends", waits: true,
		handle: loadEnded(func([]string, context.Context) []backends.Outcome {
			select {} // as if the store did not answer
		})},
	"what was not read in time is absent": {caughtBy: "load/cancel", rule: "a name that was not read is an error, never an empty record",
		handle: loadEnded(func(names []string, _ context.Context) []backends.Outcome {
			return make([]backends.Outcome, len(names))
		})},
	"a LoadMany whose context ended is refused": {caughtBy: "load/cancel", rule: "an ended context must not be reported as a permanent error",
		handle: loadEnded(func(names []string, _ context.Context) []backends.Outcome {
			return backends.Outcomes(len(names), backends.ErrDenied)
		})},
	"a LoadMany whose context ended has no outcomes": {caughtBy: "load/cancel", rule: "LoadMany returns an Outcome for each name",
		handle: loadEnded(func([]string, context.Context) []backends.Outcome { return nil })},
	"LoadMany works after Close": {caughtBy: "close/idempotent", rule: "after Close every call returns an error", handle: func(b *broken, _ *state) {
		b.loads = b.store.Handle().LoadMany
	}},
}

// loadAnswers makes a store that returns other outcomes of a LoadMany than the real ones.
func loadAnswers(change func([]string, []backends.Outcome) []backends.Outcome) func(*broken, *state) {
	return func(b *broken, _ *state) {
		b.loads = func(ctx context.Context, names []string) []backends.Outcome {
			outcomes := b.oneLoadByOne(ctx, names)
			if slices.ContainsFunc(outcomes, func(o backends.Outcome) bool { return o.Err != nil && !backends.Permanent(o.Err) }) {
				return outcomes
			}
			return change(names, outcomes)
		}
	}
}

// loadEnded makes a store that answers a LoadMany whose context has ended in some
// way.
func loadEnded(answer func([]string, context.Context) []backends.Outcome) func(*broken, *state) {
	return func(b *broken, _ *state) {
		b.loads = func(ctx context.Context, names []string) []backends.Outcome {
			if ctx.Err() != nil {
				return answer(names, ctx)
			}
			return b.oneLoadByOne(ctx, names)
		}
	}
}
