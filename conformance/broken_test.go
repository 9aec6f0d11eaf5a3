package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

// state is what all handles on a broken store share.
type state struct {
	mutex   sync.Mutex
	record  backends.Record
	locks   sync.Map // mutexes by the name of the election
	past    sync.Map // something about the states before, by the name of the election
	deposed sync.Map // the names of elections whose holder was deposed
	loads   atomic.Int32
}

// exchange keeps a record, if it exists, and returns the one that was kept before.
func (s *state) exchange(r backends.Record) backends.Record {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	before := s.record
	if r.Exists() {
		s.record = r
	}
	return before
}

// broken is a handle whose methods can be replaced. By default they are those of
// the memory backend.
type broken struct {
	*memory.Backend
	store    *memory.Store
	shared   *state
	fault    atomic.Int32 // a Fault, of what load and swap do by default
	load     func(ctx context.Context, name string) (backends.Record, error)
	swap     func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error)
	watch    func(ctx context.Context, name string, changed func(backends.Record)) error
	attend   func(ctx context.Context, name string, held backends.Record) error
	describe func() backends.Description
	close    func() error
	batch    func(ctx context.Context, renewals []backends.Change) []backends.Outcome
	loads    func(ctx context.Context, names []string) []backends.Outcome
	list     func(ctx context.Context) ([]string, error)
}

func (b *broken) Load(ctx context.Context, name string) (backends.Record, error) {
	return b.load(ctx, name)
}

func (b *broken) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	return b.swap(ctx, name, prev, next)
}

func (b *broken) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	return b.watch(ctx, name, changed)
}

func (b *broken) WatchPresence(ctx context.Context, name string, held backends.Record) error {
	return b.attend(ctx, name, held)
}

func (b *broken) SwapMany(ctx context.Context, renewals []backends.Change) []backends.Outcome {
	return b.batch(ctx, renewals)
}

func (b *broken) LoadMany(ctx context.Context, names []string) []backends.Outcome {
	return b.loads(ctx, names)
}

func (b *broken) List(ctx context.Context) ([]string, error) { return b.list(ctx) }

func (b *broken) Describe() backends.Description { return b.describe() }

func (b *broken) Close() error { return b.close() }

func (m mutant) harness() Harness {
	store, shared := memory.NewStore(), &state{}
	raw := &Raw{
		Get:    func(_ testing.TB, name string) []byte { return store.Get(name) },
		Put:    func(_ testing.TB, name string, content []byte) { store.Put(name, content) },
		Delete: func(_ testing.TB, name string) { store.Delete(name) },
		Depose: func(_ testing.TB, name string) { shared.deposed.Store(name, true); store.Depose(name) },
	}
	if m.raw != nil {
		m.raw(raw)
	}
	open := func(h *memory.Backend) *broken {
		b := &broken{Backend: h, store: store, shared: shared, watch: h.Watch, attend: h.WatchPresence,
			describe: h.Describe, close: h.Close, list: h.List}
		b.load = func(ctx context.Context, name string) (backends.Record, error) {
			return b.lossy(func() (backends.Record, error) { return h.Load(ctx, name) })
		}
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			return b.lossy(func() (backends.Record, error) { return h.Swap(ctx, name, prev, next) })
		}
		b.batch, b.loads = b.oneByOne, b.oneLoadByOne
		if m.handle != nil {
			m.handle(b, shared)
		}
		return b
	}
	return Harness{Raw: raw, Setups: m.setups,
		Open: func(testing.TB) backends.Backend { return open(store.Handle()) },
		OpenReadOnly: func(testing.TB) backends.Backend {
			b := open(store.ReadOnly())
			if m.reader != nil {
				m.reader(b, shared)
			}
			return b
		},
		OpenFaulty: func(testing.TB) (backends.Backend, func(Fault)) {
			b := open(store.Handle())
			return b, func(f Fault) { b.fault.Store(int32(f)) }
		},
	}
}

// errLost is the client's error of a request that a fault has hit.
var errLost = errors.New("connection lost")

// lossy makes a request, which the fault of the handle may hit.
func (b *broken) lossy(request func() (backends.Record, error)) (backends.Record, error) {
	switch Fault(b.fault.Load()) {
	case LoseRequests:
		return backends.Record{}, errLost
	case LoseAnswers:
		request()
		return backends.Record{}, errLost
	}
	return request()
}

// clientFails makes a store with another answer to a Swap whose client has
// failed.
func clientFails(answer func(next backends.Record, applied bool) (backends.Record, error)) func(*broken, *state) {
	return func(b *broken, _ *state) {
		swap := b.swap
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			r, err := swap(ctx, name, prev, next)
			if err == errLost {
				return answer(next, Fault(b.fault.Load()) == LoseAnswers)
			}
			return r, err
		}
	}
}

// oneByOne makes a batch out of Swaps, which may be broken.
func (b *broken) oneByOne(ctx context.Context, renewals []backends.Change) []backends.Outcome {
	outcomes := make([]backends.Outcome, len(renewals))
	for i, r := range renewals {
		outcomes[i].Record, outcomes[i].Err = b.swap(ctx, r.Name, r.Prev, r.Next)
	}
	return outcomes
}

// oneLoadByOne reads many records by Loads, which may be broken.
func (b *broken) oneLoadByOne(ctx context.Context, names []string) []backends.Outcome {
	outcomes := make([]backends.Outcome, len(names))
	for i, name := range names {
		outcomes[i].Record, outcomes[i].Err = b.load(ctx, name)
	}
	return outcomes
}

// current swaps from whatever the store holds.
func (b *broken) current(ctx context.Context, name string, next backends.Record) (backends.Record, error) {
	for {
		prev, err := b.Backend.Load(ctx, name)
		if err != nil {
			return prev, err
		}
		if r, err := b.Backend.Swap(ctx, name, prev, next); err == nil || ctx.Err() != nil {
			return r, err
		}
	}
}

// compares makes a store that has other versions.
func compares(version func(backends.Record) string) func(*broken, *state) {
	versioned := func(r backends.Record, err error) (backends.Record, error) {
		if r.Exists() {
			r.Version = backends.Version("v" + version(r))
		}
		return r, err
	}
	return func(b *broken, s *state) {
		b.load = func(ctx context.Context, name string) (backends.Record, error) {
			return versioned(b.Backend.Load(ctx, name))
		}
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			s.mutex.Lock()
			defer s.mutex.Unlock()
			r, err := b.load(ctx, name)
			if err != nil {
				return r, err
			}
			if r.Version != prev.Version {
				return backends.Record{}, backends.ErrConflict
			}
			return versioned(b.current(ctx, name, next))
		}
		b.watch = func(ctx context.Context, name string, changed func(backends.Record)) error {
			return b.Backend.Watch(ctx, name, func(r backends.Record) { r, _ = versioned(r, nil); changed(r) })
		}
	}
}

// keeps makes a store that changes what it keeps.
func keeps(change func(r *backends.Record)) func(*broken, *state) {
	return func(b *broken, _ *state) {
		b.load = func(ctx context.Context, name string) (backends.Record, error) {
			r, err := b.Backend.Load(ctx, name)
			change(&r)
			return r, err
		}
	}
}

// reads makes a store that decodes foreign content differently.
func reads(decode func(content []byte) (backends.Record, error)) func(*broken, *state) {
	return func(b *broken, _ *state) {
		b.load = func(ctx context.Context, name string) (backends.Record, error) {
			r, err := b.Backend.Load(ctx, name)
			if err != nil && backends.CheckName(name) == nil {
				r, err = decode(b.store.Get(name))
				r.Version = "foreign"
			}
			return r, err
		}
	}
}

// renames makes a store that keeps a record under another name.
func renames(other func(string) string) func(*broken, *state) {
	return func(b *broken, _ *state) {
		b.load = func(ctx context.Context, name string) (backends.Record, error) {
			return b.Backend.Load(ctx, other(name))
		}
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			return b.Backend.Swap(ctx, other(name), prev, next)
		}
		b.watch = func(ctx context.Context, name string, changed func(backends.Record)) error {
			return b.Backend.Watch(ctx, other(name), changed)
		}
	}
}

// watches makes a store whose Watch reports differently.
func watches(filter func(report func(backends.Record)) func(backends.Record)) func(*broken, *state) {
	return func(b *broken, _ *state) {
		b.watch = func(ctx context.Context, name string, changed func(backends.Record)) error {
			return b.Backend.Watch(ctx, name, filter(changed))
		}
	}
}

// unchecked decodes and checks nothing.
func unchecked(content []byte) (backends.Record, error) {
	var fields struct {
		Holder, TTL string
		Token       uint64
	}
	if err := json.Unmarshal(content, &fields); err != nil {
		return backends.Record{}, backends.Foreign("%v", err)
	}
	ttl, _ := time.ParseDuration(fields.TTL)
	return backends.Record{Holder: fields.Holder, Token: fields.Token, TTL: ttl}, nil
}

// overwrites makes a store that writes over foreign content.
func overwrites(b *broken, _ *state) {
	b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
		if _, err := b.Backend.Load(ctx, name); err != nil {
			b.store.Put(name, backends.Encode(name, next))
			return b.Backend.Load(ctx, name)
		}
		return b.Backend.Swap(ctx, name, prev, next)
	}
}

// ended makes a store with another answer to a Swap whose context has ended.
func ended(answer func(b *broken, name string, next backends.Record) (backends.Record, error)) func(*broken, *state) {
	return func(b *broken, _ *state) {
		b.swap = func(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
			if ctx.Err() != nil {
				return answer(b, name, next)
			}
			return b.Backend.Swap(ctx, name, prev, next)
		}
	}
}

// described makes a store that describes itself differently.
func described(change func(*backends.Description)) func(*broken, *state) {
	return func(b *broken, _ *state) {
		b.describe = func() backends.Description {
			d := b.Backend.Describe()
			change(&d)
			return d
		}
	}
}
