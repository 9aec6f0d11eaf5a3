package conformance

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/elector-go/elector/backends"
)

var extensionMutants = map[string]mutant{
	"extensions are not kept": {caughtBy: "rec/kept", rule: "extensions are read as they were written",
		handle: keeps(func(r *backends.Record) { r.Extensions = "" })},
	"extensions are kept while they are short": {caughtBy: "rec/kept", rule: "extensions are read as they were written", handle: keeps(func(r *backends.Record) {
		if len(r.Extensions) > 4096 {
			r.Extensions = ""
		}
	})},
	"extensions are kept as another writer has them": {caughtBy: "rec/kept", rule: "extensions are read as they were written",
		handle: keeps(func(r *backends.Record) {
			r.Extensions = backends.Extensions(strings.ReplaceAll(string(r.Extensions), `\u003c`, "<"))
		})},
	"extensions are no part of the version": {caughtBy: "rec/kept", rule: "with a new version",
		handle: compares(func(r backends.Record) string { return bare(r).Attempt.String() })},
	"extensions are not compared": {caughtBy: "rec/kept", rule: "must conflict with a Swap from the one before", handle: func(b *broken, _ *state) {
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			return b.Backend.Swap(ctx, name, b.butForExtensions(ctx, name, prev), next)
		}
	}},
	"long records are cut": {caughtBy: "rec/kept", rule: "the longest record is read as it was written", handle: keeps(func(r *backends.Record) {
		if len(backends.Encode("", *r)) > 60<<10 {
			r.Extensions = ""
		}
	})},

	"extensions are added to those there": {caughtBy: "rec/term", rule: "Swap returns the new record", handle: func(b *broken, _ *state) {
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			if next.Extensions == "" {
				next.Extensions = prev.Extensions
			}
			return b.Backend.Swap(ctx, name, prev, next)
		}
	}},
	"extensions outlive the term": {caughtBy: "rec/term", rule: "a Swap writes the extensions that it was given", handle: func(b *broken, _ *state) {
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			given := next.Extensions
			if next.Extensions = prev.Extensions; !prev.Exists() {
				next.Extensions = given
			}
			r, err := b.Backend.Swap(ctx, name, prev, next)
			r.Extensions = given
			return r, err
		}
	}},

	"a critical extension makes a record foreign": {caughtBy: "rec/critical", rule: "Load reads every valid record", handle: func(b *broken, _ *state) {
		b.load = func(ctx context.Context, name string) (backends.Record, error) {
			r, err := b.Backend.Load(ctx, name)
			if what := r.Extensions.Critical(); what != "" {
				return backends.Record{}, backends.Foreign("it has %s", what)
			}
			return r, err
		}
	}},
	"a vacancy has no extensions": {caughtBy: "rec/critical", rule: "a vacant one too", handle: keeps(func(r *backends.Record) {
		if r.Vacant() {
			r.Extensions = ""
		}
	})},
	"a batch writes all but the extensions": {caughtBy: "rec/critical", rule: "a renewal whose outcome has no error was applied", handle: func(b *broken, _ *state) {
		b.batch = func(ctx context.Context, renewals []backends.Change) []backends.Outcome {
			outcomes := make([]backends.Outcome, len(renewals))
			for i, r := range renewals {
				next := r.Next
				next.Extensions = r.Prev.Extensions
				outcomes[i].Record, outcomes[i].Err = b.swap(ctx, r.Name, r.Prev, next)
				outcomes[i].Record.Extensions = r.Next.Extensions
			}
			return outcomes
		}
	}},
	"a batch does not compare extensions": {caughtBy: "rec/critical", rule: "a renewal is applied only to the version that it replaces", handle: func(b *broken, _ *state) {
		b.batch = func(ctx context.Context, renewals []backends.Change) []backends.Outcome {
			outcomes := make([]backends.Outcome, len(renewals))
			for i, r := range renewals {
				outcomes[i].Record, outcomes[i].Err = b.swap(ctx, r.Name, b.butForExtensions(ctx, r.Name, r.Prev), r.Next)
			}
			return outcomes
		}
	}},

	"a further text is ignored": {caughtBy: "rec/bounds", rule: "content that is not a valid record must be ErrForeignRecord", handle: reads(unchecked)},
	"numbers are extensions": {caughtBy: "rec/bounds", rule: "content that is not a valid record must be ErrForeignRecord",
		handle: reads(func(content []byte) (backends.Record, error) {
			if bytes.HasSuffix(content, []byte(`"k_a":1}`)) {
				return unchecked(content)
			}
			return backends.Record{}, backends.Foreign("it is spoilt")
		})},
	"an extension stands anywhere": {caughtBy: "rec/bounds", rule: "content that is not a valid record must be ErrForeignRecord",
		handle: reads(func(content []byte) (backends.Record, error) {
			if extension := []byte(`"k_a":"1","attempt"`); bytes.Contains(content, extension) {
				return unchecked(content)
			}
			return backends.Record{}, backends.Foreign("it is spoilt")
		})},
	"extensions out of bounds are overwritten": {caughtBy: "rec/bounds", rule: "a foreign record must never be overwritten", handle: overwrites},
}

// bare is a record without the extensions and the version.
func bare(r backends.Record) backends.Record {
	r = content(r)
	r.Extensions = ""
	return r
}

// butForExtensions returns what stands there, if it is prev but for extensions.
func (b *broken) butForExtensions(ctx context.Context, name string, prev backends.Record) backends.Record {
	now, err := b.Backend.Load(ctx, name)
	if errors.Is(err, backends.ErrForeignRecord) || bare(now) != bare(prev) {
		return prev
	}
	return now
}
