package doctor

import (
	"context"
	"fmt"
	"slices"

	"github.com/elector-go/elector/backends"
)

// A fault is what a check has shown to be wrong with the store.
type fault struct{ check, seen, fix string }

// Error implements error.
func (f fault) Error() string { return f.seen }

// Unwrap makes it an ErrMisconfigured.
func (fault) Unwrap() error { return backends.ErrMisconfigured }

// A busy is the error of a check that met another process: it has the record that shows
// that one.
type busy struct{ record backends.Record }

// Error implements error.
func (b busy) Error() string {
	return fmt.Sprintf("another process has written the election %s: %q, with token %d", Election, b.record.Holder, b.record.Token)
}

// two is what is wrong with an address that leads to more than one store.
func two(seen string) fault {
	return fault{"one store", seen,
		"let the address lead to one store: two answer behind it, or a cache beside it, and there can be two leaders"}
}

// older notes a state that was read or written, and reports whether another one was seen
// after it. In a store no state comes back: each has an attempt of its own.
func (d *doctor) older(a backends.Attempt) bool {
	at := slices.Index(d.shown, a)
	if at < 0 {
		d.shown = append(d.shown, a)
		return false
	}
	return at < len(d.shown)-1
}

// wavers reports whether reads go away from a state and to one that was seen before.
func (p *patient) wavers(ctx context.Context, last backends.Attempt) bool {
	for range 8 {
		r, err := p.load(ctx, p.first)
		if older := p.older(r.Attempt); err == nil && older && r.Attempt != last {
			return true
		}
		last = r.Attempt
	}
	return false
}

// refused judges a swap that met a conflict. Only a record that this doctor has not written
// shows another process. If the store still shows the state that was to be replaced, the
// refusal has another cause.
func (p *patient) refused(ctx context.Context, next backends.Record) error {
	r, err := p.load(ctx, p.first)
	older := err == nil && p.older(r.Attempt)
	own := p.record.Exists() && r.Attempt.Nonce == p.record.Attempt.Nonce && len(p.states) > 0
	switch {
	case err != nil:
		return err
	case r.Attempt == next.Attempt:
		return fault{"write", "the store refused a write, and has made it all the same",
			"look for a proxy, or a client library, that sends writes again: the elector reads back after such an answer, but each costs it a request"}
	case (r.Version == p.record.Version || older) && p.wavers(ctx, r.Attempt):
		return two("reads go back to a state that was replaced, and forth again")
	case r.Version == p.record.Version:
		return fault{"write", "the store refuses to replace the very state that it shows, and no other process has written since",
			"look for what swallows writes: a trigger, a rule or a policy on the table, a proxy, or two stores behind one address. No process can lead there"}
	case own && r.Attempt == p.record.Attempt:
		return fault{"compare-and-swap", "the store shows the state that it has acknowledged under another version than it gave",
			"look for what writes the records again: a trigger, a proxy, a copy between two stores. A compare-and-swap then fails, and leases are lost"}
	case own, older, !r.Exists() && p.record.Exists():
		return fault{"write", "the store shows an earlier state than the one that it has acknowledged",
			"look for a cache, a replica, a proxy, or two stores behind one address, and for what restores or deletes records: with lost writes there can be two leaders"}
	}
	return busy{r}
}

// differs judges a read of the second handle that shows neither the state that the first one
// has written nor an earlier one.
func (p *patient) differs(ctx context.Context, r backends.Record) error {
	still, err := p.load(ctx, p.first)
	if err == nil {
		still, err = p.again(ctx, p.first, still, func(r backends.Record) bool { return r.Attempt == p.record.Attempt })
	}
	switch {
	case err != nil:
		return err
	case still.Attempt == p.record.Attempt:
		return two("two connections show two records")
	}
	return busy{r}
}
