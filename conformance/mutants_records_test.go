package conformance

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

var recordMutants = map[string]mutant{
	"Raw.Put does nothing": {caughtBy: "raw/harness", rule: "Raw.Put replaces what the store keeps",
		raw: func(r *Raw) { r.Put = func(testing.TB, string, []byte) {} }},
	"Raw.Delete empties": {caughtBy: "raw/harness", rule: "Raw.Delete removes",
		raw: func(r *Raw) { r.Delete = func(t testing.TB, name string) { r.Put(t, name, nil) } }},
	"tokens of 32 bits": {caughtBy: "tok/strict", rule: "Load returns what Swap wrote", handle: keeps(func(r *backends.Record) { r.Token = uint64(uint32(r.Token)) })},
	"tokens as floats of 32 bits": {caughtBy: "tok/strict", rule: "Load returns what Swap wrote",
		handle: keeps(func(r *backends.Record) { r.Token = uint64(float32(r.Token)) })},
	"times in microseconds": {caughtBy: "tok/strict", rule: "Load returns what Swap wrote", handle: keeps(func(r *backends.Record) { r.TTL = r.TTL.Truncate(time.Microsecond) })},
	"values without spaces": {caughtBy: "tok/strict", rule: "Load returns what Swap wrote", handle: keeps(func(r *backends.Record) { r.Value = strings.TrimSpace(r.Value) })},
	"values cut":            {caughtBy: "tok/strict", rule: "Load returns what Swap wrote", handle: keeps(func(r *backends.Record) { r.Value = r.Value[:min(len(r.Value), 4095)] })},
	"sequences of 63 bits":  {caughtBy: "tok/strict", rule: "Load returns what Swap wrote", handle: keeps(func(r *backends.Record) { r.Attempt.Sequence &= 1<<63 - 1 })},
	"a version for each read": {caughtBy: "tok/strict", rule: "Load returns what Swap wrote", handle: func(b *broken, s *state) {
		keeps(func(r *backends.Record) {
			s.mutex.Lock()
			defer s.mutex.Unlock()
			if s.record.Token++; r.Exists() {
				r.Version += backends.Version(strconv.FormatUint(s.record.Token, 10))
			}
		})(b, s)
	}},
	"Swap returns no version": {caughtBy: "tok/strict", rule: "Swap returns the new record with a new version", handle: func(b *broken, _ *state) {
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			_, err := b.Backend.Swap(ctx, name, prev, next)
			return next, err
		}
	}},
	"no record is an error": {caughtBy: "tok/strict", rule: "an election without a record is the zero Record and no error", handle: func(b *broken, _ *state) {
		b.load = func(ctx context.Context, name string) (backends.Record, error) {
			r, err := b.Backend.Load(ctx, name)
			if err == nil && !r.Exists() {
				err = backends.ErrUnavailable
			}
			return r, err
		}
	}},
	"garbage is a vacancy": {caughtBy: "bad/garbage", rule: "never a vacancy or a leader",
		handle: reads(func([]byte) (backends.Record, error) { return backends.Record{}, nil })},
	"garbage is read leniently": {caughtBy: "bad/garbage", rule: "content that is not a valid record must be ErrForeignRecord", handle: reads(unchecked)},
	"garbage is an unknown error": {caughtBy: "bad/garbage", rule: "content that is not a valid record must be ErrForeignRecord",
		handle: reads(func([]byte) (backends.Record, error) { return backends.Record{}, backends.ErrUnavailable })},
	"garbage is read whole": {caughtBy: "bad/garbage", rule: "a foreign record must be read in bounded memory",
		handle: reads(func(content []byte) (backends.Record, error) {
			var everything any
			json.Unmarshal(content, &everything)
			return backends.Record{}, backends.Foreign("it has %T", everything)
		})},
	"garbage is overwritten": {caughtBy: "bad/garbage", rule: "a foreign record must never be overwritten", handle: overwrites},
	"garbage is repaired": {caughtBy: "bad/garbage", rule: "a foreign record must keep every byte",
		handle: func(b *broken, _ *state) {
			b.load = func(ctx context.Context, name string) (backends.Record, error) {
				r, err := b.Backend.Load(ctx, name)
				if content := b.store.Get(name); err != nil && len(content) > 0 {
					b.store.Put(name, content[1:])
				}
				return r, err
			}
		}},
	"Watch reports garbage": {caughtBy: "bad/garbage", rule: "ends immediately with: foreign record", handle: func(b *broken, _ *state) {
		b.watch = func(ctx context.Context, name string, changed func(backends.Record)) error {
			changed(backends.Record{})
			return b.Backend.Watch(ctx, name, changed)
		}
	}},
	"a TTL is not checked": {caughtBy: "bad/ttl", rule: "content that is not a valid record must be ErrForeignRecord", handle: reads(unchecked)},
	"a TTL is replaced":    {caughtBy: "bad/ttl", rule: "a foreign record must never be overwritten", handle: overwrites},
	"Swap compares the attempt alone": {caughtBy: "bad/ttl", rule: "a foreign record must never be overwritten", handle: func(b *broken, _ *state) {
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			_, err := b.Backend.Load(ctx, name)
			if err != nil && prev.Exists() && strings.Contains(string(b.store.Get(name)), prev.Attempt.String()) {
				b.store.Put(name, backends.Encode(name, next))
				return b.Backend.Load(ctx, name)
			}
			return b.Backend.Swap(ctx, name, prev, next)
		}
	}},
	"a schema is not checked": {caughtBy: "bad/newer", rule: "content that is not a valid record must be ErrForeignRecord",
		handle: reads(func(content []byte) (backends.Record, error) {
			r, err := unchecked(content)
			if r.TTL == 0 {
				err = backends.Foreign("no TTL")
			}
			return r, err
		})},
	"a later schema is replaced": {caughtBy: "bad/newer", rule: "a foreign record must never be overwritten", handle: overwrites},
}
