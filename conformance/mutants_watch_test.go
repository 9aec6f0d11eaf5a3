package conformance

import (
	"context"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
)

var watchMutants = map[string]mutant{
	"Watch reads, then subscribes": {caughtBy: "watch/subscribe", rule: "Watch loses no change between", waits: true, handle: func(b *broken, _ *state) {
		b.watch = func(ctx context.Context, name string, changed func(backends.Record)) error {
			r, err := b.Backend.Load(ctx, name)
			if err != nil {
				return err
			}
			changed(r)
			time.Sleep(10 * time.Millisecond)
			first := true
			return b.Backend.Watch(ctx, name, func(r backends.Record) {
				if !first {
					changed(r)
				}
				first = false
			})
		}
	}},
	"Watch says nothing at first": {caughtBy: "watch/end", rule: "Watch reports the present record first", waits: true,
		handle: watches(func(report func(backends.Record)) func(backends.Record) {
			first := true
			return func(r backends.Record) {
				if !first {
					report(r)
				}
				first = false
			}
		})},
	"Watch sees new leaders only": {caughtBy: "watch/subscribe", rule: "Watch reports the last state after every change", waits: true,
		handle: watches(func(report func(backends.Record)) func(backends.Record) {
			last := backends.Record{TTL: 1}
			return func(r backends.Record) {
				if r.Token != last.Token || r.TTL != last.TTL {
					report(r)
				}
				last = r
			}
		})},
	"Watch sees no extension": {caughtBy: "watch/subscribe", rule: "Watch reports the last state after every change", waits: true,
		handle: watches(func(report func(backends.Record)) func(backends.Record) {
			last := backends.Record{TTL: 1}
			return func(r backends.Record) {
				if r.Attempt != last.Attempt || r.TTL != last.TTL {
					report(r)
				}
				last = r
			}
		})},
	"Watch goes back": {caughtBy: "watch/subscribe", rule: "Watch never reports an older state after a newer one",
		handle: watches(func(report func(backends.Record)) func(backends.Record) {
			var last backends.Record
			return func(r backends.Record) {
				report(r)
				report(last)
				last = r
			}
		})},
	"Watch reports from many goroutines": {caughtBy: "watch/subscribe", rule: "Watch calls changed from one goroutine at a time",
		handle: watches(func(report func(backends.Record)) func(backends.Record) {
			return func(r backends.Record) {
				var all sync.WaitGroup
				for range 8 {
					all.Go(func() { report(r) })
				}
				all.Wait()
			}
		})},
	"Watch misses deletions": {caughtBy: "watch/subscribe", rule: "reports a deletion", waits: true,
		handle: watches(func(report func(backends.Record)) func(backends.Record) {
			there := false
			return func(r backends.Record) {
				if there = there || r.Exists(); there == r.Exists() {
					report(r)
				}
			}
		})},
	"Watch passes over garbage": {caughtBy: "watch/subscribe", rule: "Watch ends with ErrForeignRecord", waits: true, handle: func(b *broken, _ *state) {
		b.watch = func(ctx context.Context, name string, changed func(backends.Record)) error {
			err := b.Backend.Watch(ctx, name, changed)
			if ctx.Err() == nil {
				<-ctx.Done()
			}
			return err
		}
	}},
	"Watch reports other elections": {caughtBy: "watch/many", rule: "a Watch reports no other election's record", handle: func(b *broken, s *state) {
		b.watch = func(ctx context.Context, name string, changed func(backends.Record)) error {
			changed(s.exchange(backends.Record{Holder: name, Version: "1"}))
			return b.Backend.Watch(ctx, name, changed)
		}
	}},
	"the end of a Watch ends others": {caughtBy: "watch/many", rule: "Watch runs until its context ends", handle: func(b *broken, _ *state) {
		b.watch = func(ctx context.Context, name string, changed func(backends.Record)) error {
			defer b.Backend.Close()
			return b.Backend.Watch(ctx, name, changed)
		}
	}},
	"Watch leaves a goroutine": {caughtBy: "watch/end", rule: "a Watch that has returned leaves nothing behind: after", waits: true, handle: func(b *broken, _ *state) {
		b.watch = func(ctx context.Context, name string, changed func(backends.Record)) error {
			go func() { select {} }()
			return b.Backend.Watch(ctx, name, changed)
		}
	}},
	"Watch reports when it has returned": {caughtBy: "watch/end", rule: "a Watch that has returned leaves nothing behind: it reported", handle: func(b *broken, _ *state) {
		b.watch = func(ctx context.Context, name string, changed func(backends.Record)) error {
			defer time.AfterFunc(time.Millisecond, func() { changed(backends.Record{}) })
			return b.Backend.Watch(ctx, name, changed)
		}
	}},
	"Watch does not end": {caughtBy: "watch/end", rule: "Watch returns when its context ends", waits: true, handle: func(b *broken, _ *state) {
		b.watch = func(ctx context.Context, name string, changed func(backends.Record)) error {
			return b.Backend.Watch(context.WithoutCancel(ctx), name, changed)
		}
	}},
	"Watch does not end with the handle": {caughtBy: "watch/end", rule: "Watch returns an error when its handle is closed", waits: true, handle: func(b *broken, _ *state) {
		b.watch = b.store.Handle().Watch
	}},
}
