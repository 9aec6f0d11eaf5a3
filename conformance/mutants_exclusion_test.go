package conformance

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
)

var exclusionMutants = map[string]mutant{
	"a version without the attempt": {caughtBy: "mx/attempt", rule: "a Swap that changes the attempt alone makes a new version",
		handle: compares(func(r backends.Record) string { r.Attempt = backends.Attempt{}; return string(backends.Encode("", r)) })},
	"a version without the nonce": {caughtBy: "mx/attempt", rule: "a Swap that changes the attempt alone makes a new version",
		handle: compares(func(r backends.Record) string { r.Attempt.Nonce = ""; return string(backends.Encode("", r)) })},
	"a replica lags under load": {caughtBy: "part/read-after-write", rule: "a Load reflects every Swap that was acknowledged", handle: func(b *broken, s *state) {
		// A Load that finds five others under way is answered from the past.
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			r, err := b.Backend.Swap(ctx, name, prev, next)
			if err == nil {
				s.past.Store(name, prev)
			}
			return r, err
		}
		b.load = func(ctx context.Context, name string) (backends.Record, error) {
			r, err := b.Backend.Load(ctx, name)
			defer s.loads.Add(-1)
			if past, ok := s.past.Load(name); s.loads.Add(1) > 5 && ok {
				return past.(backends.Record), nil
			}
			time.Sleep(time.Millisecond)
			return r, err
		}
	}},
	"a replica lags": {caughtBy: "part/read-after-write", rule: "a Load reflects every Swap that was acknowledged", handle: func(b *broken, s *state) {
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			r, err := b.Backend.Swap(ctx, name, prev, next)
			if err == nil {
				s.past.Store(name, prev)
			}
			return r, err
		}
		b.load = func(ctx context.Context, name string) (backends.Record, error) {
			if past, ok := s.past.LoadAndDelete(name); ok {
				return past.(backends.Record), nil // once after each Swap
			}
			return b.Backend.Load(ctx, name)
		}
	}},
	"Swap succeeds before it commits": {caughtBy: "part/read-after-write", rule: "a Swap is acknowledged only when it has been applied", handle: func(b *broken, _ *state) {
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			now, err := b.Backend.Load(ctx, name)
			if err != nil {
				return now, err
			}
			if now.Version != prev.Version {
				return backends.Record{}, backends.ErrConflict
			}
			time.AfterFunc(time.Millisecond, func() { b.Backend.Swap(context.Background(), name, prev, next) })
			next.Version = "soon"
			return next, nil
		}
	}},
	"Swap ignores prev": {caughtBy: "mx/race", rule: "of many Swaps from one version exactly one is applied", handle: func(b *broken, _ *state) {
		b.swap = func(ctx context.Context, name string, _, next backends.Record) (backends.Record, error) {
			return b.current(ctx, name, next)
		}
	}},
	"Swap compares, then writes": {caughtBy: "mx/race", rule: "of many Swaps from one version exactly one is applied", handle: func(b *broken, _ *state) {
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			if r, err := b.Backend.Load(ctx, name); err != nil || r.Version != prev.Version {
				return backends.Record{}, backends.ErrConflict
			}
			time.Sleep(time.Millisecond)
			return b.current(ctx, name, next)
		}
	}},
	"Swap says yes to all": {caughtBy: "mx/race", rule: "of many Swaps from one version exactly one is applied", handle: func(b *broken, _ *state) {
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			if r, err := b.Backend.Swap(ctx, name, prev, next); err == nil {
				return r, nil
			}
			next.Version = "mine"
			return next, nil
		}
	}},
	"Swap says conflict in its own words": {caughtBy: "mx/race", rule: "a Swap that comes too late is ErrConflict", handle: func(b *broken, _ *state) {
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			r, err := b.Backend.Swap(ctx, name, prev, next)
			if err != nil {
				err = backends.ErrUnavailable
			}
			return r, err
		}
	}},
	"Swap compares the holder": {caughtBy: "mx/same-id", rule: "with a new version",
		handle: compares(func(r backends.Record) string { return r.Holder })},
	"Swap lets one's own ID in": {caughtBy: "mx/same-id", rule: "of two candidates with one ID exactly one becomes leader", handle: func(b *broken, _ *state) {
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			if r, err := b.Backend.Load(ctx, name); err == nil && r.Holder == next.Holder && next.Attempt.Sequence == 1 && r.Version != prev.Version {
				return b.current(ctx, name, next)
			}
			return b.Backend.Swap(ctx, name, prev, next)
		}
	}},
	"Swap compares holder and token": {caughtBy: "mx/same-id", rule: "with a new version",
		handle: compares(func(r backends.Record) string { return r.Holder + strconv.FormatUint(r.Token, 10) })},
	"Swap without prev replaces one's own": {caughtBy: "mx/same-id", rule: "a Swap that expects no record must not replace one of the same ID", handle: func(b *broken, _ *state) {
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			if r, err := b.Backend.Load(ctx, name); err == nil && !prev.Exists() && r.Holder == next.Holder && next.Attempt.Sequence > 1 {
				return b.current(ctx, name, next)
			}
			return b.Backend.Swap(ctx, name, prev, next)
		}
	}},
	"versions restart": {caughtBy: "mx/aba", rule: "a version is never used again",
		handle: compares(func(r backends.Record) string { return strconv.FormatUint(r.Attempt.Sequence, 10) })},
	"versions start again after a deletion": {caughtBy: "mx/aba", rule: "a version is never used again", handle: func(b *broken, s *state) {
		read := func(ctx context.Context, name string) (backends.Record, error) {
			r, err := b.Backend.Load(ctx, name)
			if !r.Exists() && err == nil {
				s.past.Delete(name)
			} else if n, ok := s.past.Load(name); ok {
				r.Version = backends.Version(strconv.Itoa(n.(int)))
			}
			return r, err
		}
		b.load = func(ctx context.Context, name string) (backends.Record, error) {
			s.mutex.Lock()
			defer s.mutex.Unlock()
			return read(ctx, name)
		}
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			s.mutex.Lock()
			defer s.mutex.Unlock()
			if now, err := read(ctx, name); err != nil {
				return now, err
			} else if now.Version != prev.Version {
				return backends.Record{}, backends.ErrConflict
			}
			r, err := b.current(ctx, name, next)
			if err == nil {
				n, _ := strconv.Atoi(string(prev.Version))
				s.past.Store(name, n+1)
				r.Version = backends.Version(strconv.Itoa(n + 1))
			}
			return r, err
		}
	}},
	"Swap brings back": {caughtBy: "mx/aba", rule: "a Swap from a version must conflict when the record is gone", handle: func(b *broken, _ *state) {
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			if r, err := b.Backend.Load(ctx, name); err == nil && !r.Exists() {
				prev = r
			}
			return b.Backend.Swap(ctx, name, prev, next)
		}
	}},
	"a release is unconditional": {caughtBy: "res/foreign", rule: "a late release or renewal must not change a successor's record", handle: func(b *broken, _ *state) {
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			if next.Vacant() {
				return b.current(ctx, name, next)
			}
			return b.Backend.Swap(ctx, name, prev, next)
		}
	}},
	"a conflict's release is applied": {caughtBy: "res/foreign", rule: "a late release or renewal must not change a successor's record", handle: func(b *broken, _ *state) {
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			r, err := b.Backend.Swap(ctx, name, prev, next)
			if err != nil && next.Vacant() {
				b.current(ctx, name, next)
			}
			return r, err
		}
	}},
	"each handle reads its own cache": {caughtBy: "part/stale-read", rule: "a Load reflects every Swap that was acknowledged", handle: func(b *broken, _ *state) {
		var mutex sync.Mutex
		var cached backends.Record
		b.load = func(ctx context.Context, name string) (backends.Record, error) {
			mutex.Lock()
			defer mutex.Unlock()
			if cached.Exists() {
				return cached, nil
			}
			r, err := b.Backend.Load(ctx, name)
			cached = r
			return r, err
		}
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			r, err := b.Backend.Swap(ctx, name, prev, next)
			if err == nil {
				mutex.Lock()
				defer mutex.Unlock()
				cached = r
			}
			return r, err
		}
	}},
	"a replica lags now and then": {caughtBy: "part/stale-read", rule: "a Load reflects every Swap that was acknowledged", handle: func(b *broken, s *state) {
		reads := 0
		b.load = func(ctx context.Context, name string) (backends.Record, error) {
			r, err := b.Backend.Load(ctx, name)
			s.mutex.Lock()
			defer s.mutex.Unlock()
			if reads++; reads%10 == 0 {
				return s.record, err
			}
			s.record = r
			return r, err
		}
	}},
}
