package conformance

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
)

var batchMutants = map[string]mutant{
	"a BatchSwapper takes no batches": {caughtBy: "batch/each", rule: "a BatchSwapper sets Description.MaxSwaps",
		handle: described(func(d *backends.Description) { d.MaxSwaps = 0 })},
	"outcomes in another order": {caughtBy: "batch/each", rule: "outcomes are in the order of the renewals", handle: answers(func(_ []backends.Change, outcomes []backends.Outcome) []backends.Outcome {
		slices.Reverse(outcomes)
		return outcomes
	})},
	"conflicts are left out": {caughtBy: "batch/each", rule: "SwapMany returns an Outcome for each renewal", handle: answers(func(_ []backends.Change, outcomes []backends.Outcome) []backends.Outcome {
		return slices.DeleteFunc(outcomes, func(o backends.Outcome) bool { return o.Err != nil })
	})},
	"a conflict is reported as applied": {caughtBy: "batch/each", rule: "a renewal whose outcome has no error was applied", handle: answers(func(renewals []backends.Change, outcomes []backends.Outcome) []backends.Outcome {
		for i, r := range renewals {
			if outcomes[i].Err != nil {
				outcomes[i] = backends.Outcome{Record: r.Next}
				outcomes[i].Record.Version = "mine"
			}
		}
		return outcomes
	})},
	"an applied renewal is reported as not tried": {caughtBy: "batch/each", rule: "a renewal that was refused is not applied", handle: answers(func(_ []backends.Change, outcomes []backends.Outcome) []backends.Outcome {
		if slices.ContainsFunc(outcomes, func(o backends.Outcome) bool { return o.Err != nil }) {
			// As if the store had applied all or nothing.
			return slices.Repeat([]backends.Outcome{{Err: backends.ErrNotTried}}, len(outcomes))
		}
		return outcomes
	})},
	"a batch answers with the records as they were": {caughtBy: "batch/each", rule: "each is what Swap would have returned", handle: answers(func(renewals []backends.Change, outcomes []backends.Outcome) []backends.Outcome {
		for i, r := range renewals {
			outcomes[i].Record = r.Prev
		}
		return outcomes
	})},
	"a batch returns no versions": {caughtBy: "batch/each", rule: "with a new version", handle: answers(func(_ []backends.Change, outcomes []backends.Outcome) []backends.Outcome {
		for i := range outcomes {
			outcomes[i].Record.Version = ""
		}
		return outcomes
	})},
	"all or nothing, and all in conflict": {caughtBy: "batch/each", rule: "each of the others is applied, or ErrNotTried",
		handle: atomically(backends.ErrConflict, func(b *broken, r backends.Change) bool {
			now, err := b.Backend.Load(context.Background(), r.Name)
			return err == nil && now.Version == r.Prev.Version
		})},
	"nothing is ever tried": {caughtBy: "batch/each", rule: "renewals without a conflict are applied together",
		handle: atomically(backends.ErrNotTried, func(*broken, backends.Change) bool { return false })},
	"a batch replaces whatever is there": {caughtBy: "batch/each", rule: "a renewal is applied only to the version that it replaces", handle: renewsFrom(func(now, _ backends.Record) backends.Record { return now })},
	"a batch brings back": {caughtBy: "batch/each", rule: "a renewal is applied only to the version that it replaces", handle: renewsFrom(func(now, prev backends.Record) backends.Record {
		if now.Exists() {
			return prev
		}
		return now
	})},
	"a batch compares the token": {caughtBy: "batch/each", rule: "a renewal is applied only to the version that it replaces", handle: renewsFrom(func(now, prev backends.Record) backends.Record {
		if now.Token == prev.Token && now.Holder == prev.Holder {
			return now
		}
		return prev
	})},
	"a batch replaces what was put back": {caughtBy: "batch/each", rule: "one was put back to what it was before", handle: renewsFrom(func(now, prev backends.Record) backends.Record {
		if now.Attempt.Nonce == prev.Attempt.Nonce && !now.Vacant() && now.Attempt.Sequence < prev.Attempt.Sequence {
			return now
		}
		return prev
	})},
	"a conflict in a batch is some error": {caughtBy: "batch/each", rule: "the outcome of a renewal is no error, ErrConflict, ErrNotTried or ErrDeposed while the store works", handle: answers(func(_ []backends.Change, outcomes []backends.Outcome) []backends.Outcome {
		for i := range outcomes {
			if outcomes[i].Err != nil {
				outcomes[i].Err = backends.ErrUnavailable
			}
		}
		return outcomes
	})},
	"a large batch fails": {caughtBy: "batch/each", rule: "the outcome of a renewal is no error, ErrConflict, ErrNotTried or ErrDeposed while the store works", handle: func(b *broken, _ *state) {
		b.batch = func(ctx context.Context, renewals []backends.Change) []backends.Outcome {
			bytes := 0
			for _, r := range renewals {
				bytes += len(r.Next.Value)
			}
			if bytes < 60<<10 {
				return b.oneByOne(ctx, renewals)
			}
			return slices.Repeat([]backends.Outcome{{Err: backends.ErrUnavailable}}, len(renewals))
		}
	}},
	"a batch writes all but the values": {caughtBy: "batch/each", rule: "a renewal whose outcome has no error was applied", handle: func(b *broken, _ *state) {
		b.batch = func(ctx context.Context, renewals []backends.Change) []backends.Outcome {
			outcomes := make([]backends.Outcome, len(renewals))
			for i, r := range renewals {
				next := r.Next
				next.Value = r.Prev.Value
				outcomes[i].Record, outcomes[i].Err = b.swap(ctx, r.Name, r.Prev, next)
				outcomes[i].Record.Value = r.Next.Value
			}
			return outcomes
		}
	}},

	"a batch compares, then writes": {caughtBy: "batch/race", rule: "of many renewals from one version at most one is applied", handle: func(b *broken, _ *state) {
		b.batch = func(ctx context.Context, renewals []backends.Change) []backends.Outcome {
			same := make([]bool, len(renewals))
			for i, r := range renewals {
				now, err := b.Backend.Load(ctx, r.Name)
				same[i] = err == nil && now.Version == r.Prev.Version
			}
			time.Sleep(time.Millisecond)
			outcomes := make([]backends.Outcome, len(renewals))
			for i, r := range renewals {
				outcomes[i].Err = backends.ErrConflict
				if same[i] {
					outcomes[i].Record, outcomes[i].Err = b.current(ctx, r.Name, r.Next)
				}
			}
			return outcomes
		}
	}},
	"batches wait for each other's records": {caughtBy: "batch/race", rule: "batches of the same elections in opposite orders return", waits: true, handle: func(b *broken, s *state) {
		b.batch = func(ctx context.Context, renewals []backends.Change) []backends.Outcome {
			for _, r := range renewals {
				lock, _ := s.locks.LoadOrStore(r.Name, &sync.Mutex{})
				lock.(*sync.Mutex).Lock()
				defer lock.(*sync.Mutex).Unlock()
				time.Sleep(time.Millisecond)
			}
			return b.oneByOne(ctx, renewals)
		}
	}},
	"a batch that comes too late is refused permanently": {caughtBy: "batch/race", rule: "a renewal that comes too late is ErrConflict, or ErrNotTried in a batch", handle: answers(func(_ []backends.Change, outcomes []backends.Outcome) []backends.Outcome {
		for i := range outcomes {
			if outcomes[i].Err != nil {
				outcomes[i].Err = backends.ErrDenied
			}
		}
		return outcomes
	})},
	"the loser of a race of batches writes too": {caughtBy: "batch/race", rule: "after a race of batches the record is the winner's", handle: func(b *broken, _ *state) {
		b.batch = func(ctx context.Context, renewals []backends.Change) []backends.Outcome {
			outcomes := b.oneByOne(ctx, renewals)
			for i, r := range renewals {
				if outcomes[i].Err != nil {
					b.current(ctx, r.Name, r.Next)
				}
			}
			return outcomes
		}
	}},

	"a creation in a batch replaces what is there": {caughtBy: "batch/mixed", rule: "a change is applied only to the version that it replaces", handle: renewsFrom(func(now, prev backends.Record) backends.Record {
		if !prev.Exists() {
			return now
		}
		return prev
	})},
	"a conflict in a batch is one of all": {caughtBy: "batch/mixed", rule: "each is applied, or ErrNotTried, unless it conflicts",
		handle: atomically(backends.ErrConflict, func(b *broken, c backends.Change) bool {
			now, err := b.Backend.Load(context.Background(), c.Name)
			return err == nil && now.Version == c.Prev.Version
		})},
	"batches only renew": {caughtBy: "batch/mixed", rule: "changes of several kinds without a conflict are applied together",
		handle: atomically(backends.ErrNotTried, func(_ *broken, c backends.Change) bool { return c.Prev.Attempt.Nonce == c.Next.Attempt.Nonce })},
	"an acquisition in a batch makes no mark": {caughtBy: "batch/mixed", rule: "in a batch leaves what a Swap leaves", handle: func(b *broken, s *state) {
		b.batch = func(ctx context.Context, changes []backends.Change) []backends.Outcome {
			outcomes := b.oneByOne(ctx, changes)
			for i, c := range changes {
				if outcomes[i].Err == nil && !c.Next.Vacant() && c.Prev.Attempt.Nonce != c.Next.Attempt.Nonce {
					b.store.Depose(c.Name)
				}
			}
			return outcomes
		}
	}},
	"two creations of a record are applied": {caughtBy: "batch/creations", rule: "of many creations of a record at most one is applied", handle: renewsFrom(func(now, prev backends.Record) backends.Record {
		if !prev.Exists() {
			return now
		}
		return prev
	})},
	"batches that create wait for each other": {caughtBy: "batch/creations", rule: "batches that create the same records in opposite orders return", waits: true, handle: func(b *broken, s *state) {
		b.batch = func(ctx context.Context, changes []backends.Change) []backends.Outcome {
			for _, c := range changes {
				lock, _ := s.locks.LoadOrStore(c.Name, &sync.Mutex{})
				lock.(*sync.Mutex).Lock()
				defer lock.(*sync.Mutex).Unlock()
				time.Sleep(time.Millisecond)
			}
			return b.oneByOne(ctx, changes)
		}
	}},

	"a deposed holder is renewed in a batch": {caughtBy: "batch/presence", rule: "a deposed holder is not renewed in a batch", handle: func(b *broken, _ *state) {
		b.batch = func(ctx context.Context, renewals []backends.Change) []backends.Outcome {
			outcomes := b.oneByOne(ctx, renewals)
			for i, r := range renewals {
				if errors.Is(outcomes[i].Err, backends.ErrDeposed) {
					// The memory backend takes it for an acquisition.
					was := r.Prev
					was.Attempt.Nonce = ""
					outcomes[i].Record, outcomes[i].Err = b.Backend.Swap(ctx, r.Name, was, r.Next)
				}
			}
			return outcomes
		}
	}},
	"a deposed holder is in conflict": {caughtBy: "batch/presence", rule: "the outcome must be ErrDeposed or ErrNotTried", handle: answers(func(_ []backends.Change, outcomes []backends.Outcome) []backends.Outcome {
		for i := range outcomes {
			if errors.Is(outcomes[i].Err, backends.ErrDeposed) {
				outcomes[i].Err = backends.ErrConflict
			}
		}
		return outcomes
	})},
	"all are deposed with one": {caughtBy: "batch/presence", rule: "a holder that was not deposed is renewed, or ErrNotTried",
		handle: atomically(backends.ErrDeposed, func(b *broken, r backends.Change) bool { return b.attended(r) })},
	"all are hindered by one that was deposed before": {caughtBy: "batch/presence", rule: "renewals without a conflict are applied together", handle: func(b *broken, s *state) {
		refuse := atomically(backends.ErrNotTried, func(b *broken, r backends.Change) bool {
			if !b.attended(r) {
				s.exchange(backends.Record{Version: "spoilt"})
			}
			return !s.exchange(backends.Record{}).Exists()
		})
		refuse(b, s)
	}},

	"a batch does not end with its context": {caughtBy: "batch/cancel", rule: "a batch returns when its context ends", waits: true, handle: batchEnded(func(*broken, []backends.Change) []backends.Outcome {
		select {} // as if the store did not answer
	})},
	"a batch whose context ended is applied": {caughtBy: "batch/cancel", rule: "a renewal whose outcome has no error was applied, even if the context has ended", handle: batchEnded(func(_ *broken, renewals []backends.Change) []backends.Outcome {
		outcomes := make([]backends.Outcome, len(renewals))
		for i, r := range renewals {
			outcomes[i].Record = r.Next
		}
		return outcomes
	})},
	"a batch whose context ended was not tried": {caughtBy: "batch/cancel", rule: "a renewal that was refused is not applied, then or later", handle: batchEnded(func(b *broken, renewals []backends.Change) []backends.Outcome {
		outcomes := b.oneByOne(context.Background(), renewals)
		for i := range outcomes {
			outcomes[i] = backends.Outcome{Err: backends.ErrNotTried}
		}
		return outcomes
	})},
	"a batch whose context ended is in conflict": {caughtBy: "batch/cancel", rule: "ErrConflict means that the store holds another version", handle: batchEnded(func(_ *broken, renewals []backends.Change) []backends.Outcome {
		return slices.Repeat([]backends.Outcome{{Err: backends.ErrConflict}}, len(renewals))
	})},
	"a batch whose context ended is refused": {caughtBy: "batch/cancel", rule: "an ended context must not be reported as a permanent error", handle: batchEnded(func(_ *broken, renewals []backends.Change) []backends.Outcome {
		return slices.Repeat([]backends.Outcome{{Err: backends.ErrDenied}}, len(renewals))
	})},
	"a batch whose context ended has no outcomes": {caughtBy: "batch/cancel", rule: "SwapMany returns an Outcome for each renewal",
		handle: batchEnded(func(*broken, []backends.Change) []backends.Outcome { return nil })},
	"a batch whose context ended breaks the handle": {caughtBy: "batch/cancel", rule: "a handle works until it is closed", handle: batchEnded(func(b *broken, renewals []backends.Change) []backends.Outcome {
		b.Backend.Close()
		return slices.Repeat([]backends.Outcome{{Err: context.Canceled}}, len(renewals))
	})},
	"batches work after Close": {caughtBy: "close/idempotent", rule: "after Close every call returns an error", handle: func(b *broken, _ *state) {
		b.batch = b.store.Handle().SwapMany
	}},
}

// answers makes a store that returns other outcomes of a batch than the real
// ones.
func answers(change func([]backends.Change, []backends.Outcome) []backends.Outcome) func(*broken, *state) {
	return func(b *broken, _ *state) {
		b.batch = func(ctx context.Context, renewals []backends.Change) []backends.Outcome {
			return change(renewals, b.oneByOne(ctx, renewals))
		}
	}
}

// atomically makes a store that applies a batch only if each may be, and has
// the same error for all otherwise.
func atomically(refusal error, may func(*broken, backends.Change) bool) func(*broken, *state) {
	return func(b *broken, _ *state) {
		b.batch = func(ctx context.Context, renewals []backends.Change) []backends.Outcome {
			for _, r := range renewals {
				if !may(b, r) {
					return slices.Repeat([]backends.Outcome{{Err: refusal}}, len(renewals))
				}
			}
			return b.oneByOne(ctx, renewals)
		}
	}
}

// attended reports whether the mark of the renewing holder exists.
func (b *broken) attended(r backends.Change) bool {
	_, deposed := b.shared.deposed.Load(r.Name)
	return !deposed
}

// renewsFrom makes a store whose batches replace another state than prev.
func renewsFrom(from func(now, prev backends.Record) backends.Record) func(*broken, *state) {
	return func(b *broken, _ *state) {
		b.batch = func(ctx context.Context, renewals []backends.Change) []backends.Outcome {
			outcomes := make([]backends.Outcome, len(renewals))
			for i, r := range renewals {
				now, _ := b.Backend.Load(ctx, r.Name)
				prev := from(now, r.Prev)
				if prev.Version != r.Prev.Version {
					prev.Attempt.Nonce = "" // a holder that was replaced has no mark
				}
				outcomes[i].Record, outcomes[i].Err = b.swap(ctx, r.Name, prev, r.Next)
			}
			return outcomes
		}
	}
}

// batchEnded makes a store that answers a batch whose context has ended in some
// way.
func batchEnded(answer func(*broken, []backends.Change) []backends.Outcome) func(*broken, *state) {
	return func(b *broken, _ *state) {
		b.batch = func(ctx context.Context, renewals []backends.Change) []backends.Outcome {
			if ctx.Err() != nil {
				return answer(b, renewals)
			}
			return b.oneByOne(ctx, renewals)
		}
	}
}
