// Package memory keeps election records in this process's memory, for tests
// and for programs that run alone. See docs/stores/memory.md for its limits.
//
// # URLs
//
// All handles opened with memory:// in one process share a store; memory://NAME
// is another store for each NAME, and readonly=true a handle that only reads. [New] makes
// a store of its own.
//
// # Consistency
//
// Linearizable: a map with a mutex. A version is a pair of numbers that only grow: of
// the write that changed the content last, and of the latest write.
//
// # Expiry
//
// By the elector's rule alone. Watch pushes every change, renewals included.
// [Store.Depose] removes the holder's mark of presence, as an operator of a real store
// would.
//
// # Fencing
//
// The package guards no writes. docs/fencing.md lists the fences that work with a lease
// of any store.
package memory

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"github.com/elector-go/elector/backends"
)

func init() {
	backends.Register("memory", func(_ context.Context, u *url.URL) (backends.Backend, error) {
		p := backends.NewParameters(u)
		readOnly := p.Bool("readonly", false)
		if err := p.Done(); err != nil {
			return nil, err
		}
		if u.User != nil || (u.Path != "" && u.Path != "/") || u.Opaque != "" {
			return nil, fmt.Errorf("%w: memory takes no user and no path; write memory://NAME", backends.ErrURL)
		}
		if readOnly {
			return named(u.Host).ReadOnly(), nil
		}
		return named(u.Host).Handle(), nil
	})
}

var (
	storesMutex sync.Mutex
	stores      = map[string]*Store{}
)

func named(name string) *Store {
	storesMutex.Lock()
	defer storesMutex.Unlock()
	if stores[name] == nil {
		stores[name] = NewStore()
	}
	return stores[name]
}

// A Store holds records. Handles on one Store compete with each other, as
// processes on one server do.
type Store struct {
	mutex   sync.Mutex
	writes  uint64
	entries map[string]*entry
}

type entry struct {
	changed uint64 // number of the write that changed the content last
	content []byte // encoded record; nil when there is none
	version backends.Version
	present string // the nonce of the acquisition whose holder is there; empty if none

	// waiting channels get a value at each change. The call that waits makes and
	// removes its channel, so that none outlives its bubble of testing/synctest.
	waiting map[chan struct{}]bool
}

// NewStore makes an empty store.
func NewStore() *Store { return &Store{entries: map[string]*entry{}} }

// New makes an empty store and returns a Backend on it.
func New() *Backend { return NewStore().Handle() }

// Handle returns a new Backend on the store.
func (s *Store) Handle() *Backend {
	classify := func(err error) (string, error) { return "", nil }
	return &Backend{store: s, base: backends.NewBase("memory://", classify)}
}

// ReadOnly returns a new Backend on the store that only reads, see [backends.OpenReadOnly].
func (s *Store) ReadOnly() *Backend {
	b := s.Handle()
	b.base.SetReadOnly(true)
	return b
}

// Get, Put and Delete bypass the backends, for tests of what happens when another
// program changes a record. Get returns nil for a missing record.
func (s *Store) Get(name string) []byte {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.entry(name).content
}

// Put replaces the content of a record, see Get.
func (s *Store) Put(name string, content []byte) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.write(name, append([]byte{}, content...))
}

// Delete removes a record, see Get.
func (s *Store) Delete(name string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.write(name, nil)
}

// Depose removes the mark of presence of an election's holder, as an operator of a
// real store would. The holder then no longer leads.
func (s *Store) Depose(name string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	e := s.entry(name)
	e.present = ""
	e.wake()
}

func (s *Store) entry(name string) *entry {
	e := s.entries[name]
	if e == nil {
		e = &entry{waiting: map[chan struct{}]bool{}}
		s.entries[name] = e
	}
	return e
}

func (s *Store) write(name string, content []byte) {
	e := s.entry(name)
	s.writes++
	if !bytes.Equal(content, e.content) {
		e.changed = s.writes
	}
	e.content, e.version = content, backends.Version(fmt.Sprintf("%d.%d", e.changed, s.writes))
	if content == nil {
		e.version, e.present = "", ""
	}
	e.wake()
}

func (e *entry) wake() {
	for waiting := range e.waiting {
		select {
		case waiting <- struct{}{}:
		default: // it is about to look anyhow
		}
	}
}

// wait returns a channel that gets a value after each change, until end is
// called.
func (s *Store) wait(name string) (changed <-chan struct{}, end func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	e, waiting := s.entry(name), make(chan struct{}, 1)
	e.waiting[waiting] = true
	return waiting, func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		delete(e.waiting, waiting)
	}
}

func (s *Store) read(name string) (backends.Record, error) {
	s.mutex.Lock()
	e := s.entry(name)
	content, version := e.content, e.version
	s.mutex.Unlock()
	if content == nil {
		return backends.Record{}, nil
	}
	r, err := backends.Decode(name, content)
	r.Version = version
	return r, err
}

// A Backend is one handle on a Store.
type Backend struct {
	store *Store
	base  *backends.Base
}

var _ backends.PresenceWatcher = (*Backend)(nil)
var _ backends.BatchSwapper = (*Backend)(nil)
var _ backends.BatchLoader = (*Backend)(nil)
var _ backends.Lister = (*Backend)(nil)
var _ backends.SameWriter = (*Backend)(nil)

// Load implements [backends.Backend].
func (b *Backend) Load(ctx context.Context, name string) (backends.Record, error) {
	return b.base.Load(ctx, name, func(context.Context) (backends.Record, error) { return b.store.read(name) })
}

// Swap implements [backends.Backend].
func (b *Backend) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	return b.base.Swap(ctx, name, func(context.Context) (backends.Record, error) { return b.store.swap(name, prev, next) })
}

func (s *Store) swap(name string, prev, next backends.Record) (backends.Record, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	e := s.entry(name)
	if e.version != prev.Version {
		return backends.Record{}, backends.ErrConflict
	}
	present := next.Attempt.Nonce
	switch renews := prev.Attempt.Nonce == present && !prev.Vacant(); {
	case next.Vacant():
		present = ""
	case renews && e.present != present:
		return backends.Record{}, backends.ErrDeposed
	}
	s.write(name, backends.Encode(name, next))
	e.present = present
	next.Version = e.version
	return next, nil
}

// SwapMany implements [backends.BatchSwapper].
func (b *Backend) SwapMany(ctx context.Context, changes []backends.Change) []backends.Outcome {
	return b.base.SwapMany(ctx, changes, func(context.Context) ([]backends.Outcome, error) {
		outcomes := make([]backends.Outcome, len(changes))
		for i, c := range changes {
			outcomes[i].Record, outcomes[i].Err = b.store.swap(c.Name, c.Prev, c.Next)
		}
		return outcomes, nil
	})
}

// LoadMany implements [backends.BatchLoader].
func (b *Backend) LoadMany(ctx context.Context, names []string) []backends.Outcome {
	return b.base.LoadMany(ctx, names, func(context.Context) ([]backends.Outcome, error) {
		outcomes := make([]backends.Outcome, len(names))
		for i, name := range names {
			outcomes[i].Record, outcomes[i].Err = b.store.read(name)
		}
		return outcomes, nil
	})
}

// List implements [backends.Lister].
func (b *Backend) List(ctx context.Context) ([]string, error) {
	return b.base.List(ctx, func(context.Context) (names []string, _ error) {
		b.store.mutex.Lock()
		defer b.store.mutex.Unlock()
		for name, e := range b.store.entries {
			if e.content != nil {
				names = append(names, name)
			}
		}
		return names, nil
	})
}

// SameWrite implements [backends.SameWriter]. A version begins with the number of the
// write that changed the content last.
func (b *Backend) SameWrite(before, after backends.Version) bool {
	changed, _, ok := strings.Cut(string(before), ".")
	return ok && strings.HasPrefix(string(after), changed+".")
}

// Watch implements [backends.Watcher].
func (b *Backend) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	return b.watch(ctx, name, func() error {
		r, err := b.store.read(name)
		if err == nil {
			changed(r)
		}
		return err
	})
}

// WatchPresence implements [backends.PresenceWatcher].
func (b *Backend) WatchPresence(ctx context.Context, name string, held backends.Record) error {
	return b.watch(ctx, name, func() error {
		b.store.mutex.Lock()
		defer b.store.mutex.Unlock()
		if b.store.entry(name).present != held.Attempt.Nonce {
			return backends.ErrDeposed
		}
		return nil
	})
}

// watch calls look now and after each change.
func (b *Backend) watch(ctx context.Context, name string, look func() error) error {
	return b.base.Watch(ctx, name, func(ctx context.Context) error {
		next, end := b.store.wait(name)
		defer end()
		for {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := look(); err != nil {
				return err
			}
			select {
			case <-next:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
}

// Describe implements [backends.Backend].
func (b *Backend) Describe() backends.Description {
	return backends.Description{Store: b.base.Store(), MaxSwaps: 100, MaxLoads: 100, PushesRenewals: true, ReadOnly: b.base.ReadOnly()}
}

// Close implements [backends.Backend].
func (b *Backend) Close() error {
	return b.base.Close(nil)
}
