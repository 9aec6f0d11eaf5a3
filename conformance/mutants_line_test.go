package conformance

import (
	"context"
	"sync"

	"github.com/elector-go/elector/backends"
)

var lineMutants = map[string]mutant{
	"a place is set whatever is there": {caughtBy: "line/place", rule: "SwapPlace replaces the place only if it is the one given", handle: func(b *broken, _ *state) {
		b.place = func(ctx context.Context, name, prev, next string) error {
			b.Backend.SwapPlace(ctx, name, prev, next)
			return nil
		}
	}},
	"WatchLine shows no removal": {caughtBy: "line/place", rule: "WatchLine shows each change of the place", waits: true,
		handle: shows(func(place string, show func(string)) {
			if place != "" {
				show(place)
			}
		})},
	"WatchLine cuts places": {caughtBy: "line/place", rule: "WatchLine shows each change of the place", waits: true,
		handle: shows(func(place string, show func(string)) { show(place[:min(len(place), 255)]) })},
	"WatchLine shows the places of all elections": {caughtBy: "line/place", rule: "WatchLine shows no other election's place", handle: func() func(*broken, *state) {
		var mutex sync.Mutex
		var all []func(string)
		return func(b *broken, _ *state) {
			b.line = func(ctx context.Context, name string, changed func(backends.Record), placed func(string)) error {
				mutex.Lock()
				all = append(all, placed)
				mutex.Unlock()
				return b.Backend.WatchLine(ctx, name, changed, func(place string) {
					mutex.Lock()
					defer mutex.Unlock()
					for _, placed := range all {
						placed(place)
					}
				})
			}
		}
	}()},
	"a place is a change of the record": {caughtBy: "line/place", rule: "SwapPlace changes nothing that Load returns", handle: func(b *broken, _ *state) {
		b.place = func(ctx context.Context, name, prev, next string) error {
			if err := b.Backend.SwapPlace(ctx, name, prev, next); err != nil {
				return err
			}
			b.store.Put(name, b.store.Get(name)) // with another version
			return nil
		}
	}},
	"a renewal removes the place": {caughtBy: "line/place", rule: "SwapPlace after a renewal", handle: func(b *broken, s *state) {
		b.place = func(ctx context.Context, name, prev, next string) error {
			err := b.Backend.SwapPlace(ctx, name, prev, next)
			if err == nil {
				s.past.Store(name, next)
			}
			return err
		}
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			if place, ok := s.past.Load(name); ok {
				b.Backend.SwapPlace(ctx, name, place.(string), "")
			}
			return b.Backend.Swap(ctx, name, prev, next)
		}
	}},
	"SwapPlace takes any name": {caughtBy: "line/place", rule: "SwapPlace refuses a name", handle: func(b *broken, _ *state) {
		b.place = func(ctx context.Context, name, prev, next string) error {
			if backends.CheckName(name) != nil {
				return nil
			}
			return b.Backend.SwapPlace(ctx, name, prev, next)
		}
	}},
	"WatchLine misses what changes while it subscribes": {caughtBy: "line/subscribe", rule: "Watch loses no change between", waits: true, handle: func(b *broken, _ *state) {
		b.line = func(ctx context.Context, name string, changed func(backends.Record), _ func(string)) error {
			r, err := b.Backend.Load(ctx, name)
			if err != nil {
				return err
			}
			changed(r)
			<-ctx.Done()
			return ctx.Err()
		}
	}},
	"WatchLine does not end": {caughtBy: "line/end", rule: "Watch returns when its context ends", waits: true, handle: func(b *broken, _ *state) {
		b.line = func(ctx context.Context, name string, changed func(backends.Record), placed func(string)) error {
			return b.Backend.WatchLine(context.WithoutCancel(ctx), name, changed, placed)
		}
	}},
}

// shows makes a store whose WatchLine shows places in another way.
func shows(how func(place string, show func(string))) func(*broken, *state) {
	return func(b *broken, _ *state) {
		b.line = func(ctx context.Context, name string, changed func(backends.Record), placed func(string)) error {
			return b.Backend.WatchLine(ctx, name, changed, func(place string) { how(place, placed) })
		}
	}
}
