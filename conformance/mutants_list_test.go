package conformance

import (
	"context"
	"slices"

	"github.com/elector-go/elector/backends"
)

var listMutants = map[string]mutant{
	"lists what was only read": {caughtBy: "list/names", rule: "an election without a record is not listed",
		handle: func(b *broken, s *state) {
			load := b.load
			b.load = func(ctx context.Context, name string) (backends.Record, error) {
				s.past.Store(name, true)
				return load(ctx, name)
			}
			b.list = withPast(b, s)
		}},
	"lists what was deleted": {caughtBy: "list/names", rule: "a record that was deleted is not listed",
		handle: func(b *broken, s *state) {
			swap := b.swap
			b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
				s.past.Store(name, true)
				return swap(ctx, name, prev, next)
			}
			b.list = withPast(b, s)
		}},
	"does not list the vacant": {caughtBy: "list/names", rule: "an election that is vacant still has a record",
		handle: lists(func(b *broken, names []string) []string {
			return slices.DeleteFunc(names, func(name string) bool {
				r, err := b.Backend.Load(context.Background(), name)
				return err == nil && r.Vacant()
			})
		})},
	"lists the first page": {caughtBy: "list/names", rule: "List shows every record",
		handle: lists(func(_ *broken, names []string) []string { return names[:min(len(names), 3)] })},
	"lists in the order of writing": {caughtBy: "list/names", rule: "List returns each name once, in order",
		handle: lists(func(_ *broken, names []string) []string { slices.Reverse(names); return names })},
	"lists other keys": {caughtBy: "list/names", rule: "List returns names of elections",
		handle: lists(func(_ *broken, names []string) []string { return append([]string{"%lock"}, names...) })},
	"lists although nobody waits": {caughtBy: "list/names", rule: "List with a context that has ended",
		handle: func(b *broken, _ *state) {
			b.list = func(context.Context) ([]string, error) { return b.Backend.List(context.Background()) }
		}},
}

// lists makes a store whose List returns other names.
func lists(change func(b *broken, names []string) []string) func(*broken, *state) {
	return func(b *broken, _ *state) {
		b.list = func(ctx context.Context) ([]string, error) {
			names, err := b.Backend.List(ctx)
			return change(b, names), err
		}
	}
}

// withPast is a List of a store that never forgets a name.
func withPast(b *broken, s *state) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		names, err := b.Backend.List(ctx)
		s.past.Range(func(name, _ any) bool { names = append(names, name.(string)); return true })
		slices.Sort(names)
		return slices.Compact(names), err
	}
}
