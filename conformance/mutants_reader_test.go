package conformance

import (
	"context"

	"github.com/elector-go/elector/backends"
)

var readerMutants = map[string]mutant{
	"a reader that does not say so": {caughtBy: "auth/reader", rule: "has ReadOnly set",
		reader: described(func(d *backends.Description) { d.ReadOnly = false })},
	"a reader that shows nothing": {caughtBy: "auth/reader", rule: "a handle that only reads shows every record",
		reader: keeps(func(r *backends.Record) { *r = backends.Record{} })},
	"a reader that lists nothing": {caughtBy: "auth/reader", rule: "a handle that only reads shows every record",
		reader: lists(func(*broken, []string) []string { return nil })},
	"a reader that is denied": {caughtBy: "auth/reader", rule: "a write through a handle that only reads is ErrReadOnly",
		reader: func(b *broken, _ *state) {
			b.swap = func(context.Context, string, backends.Record, backends.Record) (backends.Record, error) {
				return backends.Record{}, backends.ErrDenied
			}
		}},
	"a reader that writes":  {caughtBy: "auth/reader", rule: "a handle that only reads writes and creates nothing", reader: swapsAnyway(true)},
	"a reader that creates": {caughtBy: "auth/reader", rule: "a handle that only reads writes and creates nothing", reader: swapsAnyway(false)},
}

// swapsAnyway makes a reader that reports a refusal and writes over records that exist,
// or those that do not.
func swapsAnyway(exist bool) func(*broken, *state) {
	return func(b *broken, _ *state) {
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			if prev.Exists() == exist {
				b.store.Handle().Swap(ctx, name, prev, next)
			}
			return backends.Record{}, backends.ErrReadOnly
		}
	}
}
