// Package memory keeps election records in this process's memory, for tests
// and for programs that run alone.
//
// # URLs
//
// memory:// is a store that all handles opened with that URL in this process
// share; memory://NAME is another one for each NAME. It takes no parameters.
// [New] makes a store that nobody else shares.
//
// # Consistency
//
// Linearizable: a map behind a mutex. Versions are numbers that only grow.
//
// # Expiry
//
// By the elector's rule alone. Watch pushes every change, renewals included.
//
// # Permissions
//
// None.
//
// # Limits
//
// Records end with the process; no other process sees them. Any TTL.
package memory

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"sync"

	"github.com/elector-go/elector/backends"
)

func init() {
	backends.Register("memory", func(_ context.Context, u *url.URL) (backends.Backend, error) {
		if err := backends.NewParameters(u).Done(); err != nil {
			return nil, err
		}
		if u.User != nil || (u.Path != "" && u.Path != "/") || u.Opaque != "" {
			return nil, fmt.Errorf("%w: memory takes no user and no path; write memory://NAME", backends.ErrURL)
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
	content []byte // encoded record; nil when there is none
	version backends.Version
	present string // the nonce of the acquisition whose holder is there; empty if none

	// waiting are woken at each change. Each is made and removed by the call that
	// waits, so that nothing of a bubble of testing/synctest outlives it.
	waiting map[chan struct{}]bool
}

// NewStore makes an empty store.
func NewStore() *Store { return &Store{entries: map[string]*entry{}} }

// New makes an empty store and returns a handle on it.
func New() *Handle { return NewStore().Handle() }

// Handle returns a new Backend on the store.
func (s *Store) Handle() *Handle { return &Handle{store: s, closed: make(chan struct{})} }

// Get, Put and Delete reach behind the backends' back, for tests of what
// happens when somebody else changes a record. Get returns nil when there is
// none.
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

// Depose removes the mark of presence of an election's holder, which then leads
// no more, as an operator of a real store would.
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
	e.content, e.version = content, backends.Version(strconv.FormatUint(s.writes, 10))
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

// A Handle is one Backend on a Store.
type Handle struct {
	store  *Store
	once   sync.Once
	closed chan struct{}
}

var _ backends.PresenceWatcher = (*Handle)(nil)
var _ backends.Batcher = (*Handle)(nil)

// Load implements [backends.Backend].
func (h *Handle) Load(ctx context.Context, name string) (backends.Record, error) {
	if err := h.usable(ctx, name); err != nil {
		return backends.Record{}, err
	}
	return h.store.read(name)
}

// Swap implements [backends.Backend].
func (h *Handle) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	if err := h.usable(ctx, name); err != nil {
		return backends.Record{}, err
	}
	s := h.store
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

// RenewMany implements [backends.Batcher].
func (h *Handle) RenewMany(ctx context.Context, renewals []backends.Renewal) []backends.Outcome {
	outcomes := make([]backends.Outcome, len(renewals))
	for i, r := range renewals {
		outcomes[i].Record, outcomes[i].Err = h.Swap(ctx, r.Name, r.Prev, r.Next)
	}
	return outcomes
}

// Watch implements [backends.Watcher].
func (h *Handle) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	next, end := h.store.wait(name)
	defer end()
	for {
		if err := h.usable(ctx, name); err != nil {
			return err
		}
		r, err := h.store.read(name)
		if err != nil {
			return err
		}
		changed(r)
		select {
		case <-next:
		case <-h.closed:
		case <-ctx.Done():
		}
	}
}

// WatchPresence implements [backends.PresenceWatcher].
func (h *Handle) WatchPresence(ctx context.Context, name string, held backends.Record) error {
	next, end := h.store.wait(name)
	defer end()
	for {
		if err := h.usable(ctx, name); err != nil {
			return err
		}
		h.store.mutex.Lock()
		present := h.store.entry(name).present
		h.store.mutex.Unlock()
		if present != held.Attempt.Nonce {
			return backends.ErrDeposed
		}
		select {
		case <-next:
		case <-h.closed:
		case <-ctx.Done():
		}
	}
}

// Describe implements [backends.Backend].
func (h *Handle) Describe() backends.Description {
	return backends.Description{Store: "memory://", MaxBatch: 100, PushesRenewals: true}
}

// Close implements [backends.Backend].
func (h *Handle) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

func (h *Handle) usable(ctx context.Context, name string) error {
	select {
	case <-h.closed:
		return fmt.Errorf("%w: the memory handle is closed", backends.ErrUnavailable)
	default:
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return backends.CheckName(name)
}
