// Package status watches the elections of one or more stores, and their groups of package
// partition, and serves what it sees as a page and as JSON.
//
// It reads the records in turn, at a bounded rate, and observes none: the
// connection and the reads are all that a store has from it, however many
// elections there are and however often they change.
package status

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/electorhttp"
	"github.com/elector-go/elector/internal/annex"
	"github.com/elector-go/elector/internal/storeurl"
	"github.com/elector-go/elector/partition"
)

// A Store is a store to watch.
type Store struct {
	URL       string
	Elections []string

	// VacantOK are patterns, as of path.Match, of elections that are normally vacant, as
	// those of cron jobs are.
	VacantOK []string
}

// Options adjust a Fleet.
type Options struct {
	All    bool          // watch also the elections that the stores list
	Every  time.Duration // between two reads of an election, at least
	Reads  int           // from one store in a second, at most
	Logger *slog.Logger

	// Again reads the URL of the store with an index again, for each sign-in. It may be nil.
	Again func(store int) (string, error)
}

const (
	// parallel is the number of reads of one store that may be under way.
	parallel = 4
	// patience is how long a store that has answered may fail once and not be called dead.
	patience = 5 * time.Second
	// openTimeout bounds each try to connect, reopen is the pause after it.
	openTimeout = 10 * time.Second
	reopen      = 5 * time.Second
	// relist is the time between two listings: some stores read all records for one.
	relist = time.Minute
)

// A Fleet is what is known of the elections.
type Fleet struct {
	o      Options
	stores []*store

	mutex sync.Mutex // guards what follows, and the state of stores and elections
	epoch int64      // changes when an election is removed
	seq   uint64     // counts changes of elections
}

type store struct {
	f     *Fleet
	index int // among the stores
	url   string
	name  string // without the password, unique
	given []string
	idle  []string // patterns of elections that are normally vacant

	backend   backends.Backend // set once, before any election
	paced     backends.Backend // the same, for groups
	tried     bool
	heard     time.Time // when a request was last answered, zero if none was
	failures  int       // since the last answer
	err       error
	since     time.Time // of the first of those failures
	watching  bool      // the elections are known
	unlisted  error     // why they could not be listed
	elections []*election
	groups    []*group
	grouped   map[string]bool // names that were given and are those of groups
}

type election struct {
	s      *store
	name   string
	idle   bool // it is normally vacant
	record atomic.Pointer[backends.Record]
	e      *elector.Elector // nil until the store has answered
	leader http.Handler

	// What the last read has shown.
	read    time.Time // zero if none has succeeded
	status  electorhttp.Status
	terms   annex.History
	renewed bool      // a change was seen
	checked time.Time // when it was last seen to be no group
	err     error
	seq     uint64 // the Fleet's, when this has changed last
}

// New returns a Fleet that knows nothing yet.
func New(stores []Store, o Options) *Fleet {
	f := &Fleet{o: o, epoch: time.Now().UnixNano()}
	taken := map[string]int{}
	for i, s := range stores {
		name := "store " + strconv.Itoa(i+1)
		if u, err := url.Parse(s.URL); err == nil {
			name = backends.Redact(u)
		}
		if taken[name]++; taken[name] > 1 {
			name += fmt.Sprintf(" (%d)", taken[name])
		}
		st := &store{f: f, index: i, url: s.URL, name: name, given: s.Elections, idle: s.VacantOK, grouped: map[string]bool{}}
		for _, name := range slices.Compact(slices.Sorted(slices.Values(s.Elections))) {
			st.elections = append(st.elections, st.election(name))
		}
		f.stores = append(f.stores, st)
	}
	return f
}

func (s *store) election(name string) *election {
	idle := slices.ContainsFunc(s.idle, func(pattern string) bool { is, _ := path.Match(pattern, name); return is })
	return &election{s: s, name: name, idle: idle}
}

// Run connects to the stores and reads until ctx ends; then it returns nil. It
// returns early, with elector.ErrURL or elector.ErrUnknownScheme, if a URL cannot
// be used. A store that does not answer is tried again for ever.
func (f *Fleet) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(f.stores))
	var wg sync.WaitGroup
	for i, s := range f.stores {
		wg.Go(func() {
			if err := s.run(ctx); err != nil {
				errs[i] = fmt.Errorf("%s: %w", s.name, err)
				cancel()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (s *store) run(ctx context.Context) error {
	for s.backend == nil {
		b, err := s.open(ctx)
		switch {
		case ctx.Err() != nil:
			if err == nil {
				b.Close()
			}
			return nil
		case errors.Is(err, elector.ErrURL), errors.Is(err, elector.ErrUnknownScheme):
			return err
		}
		s.answered(b, err)
		if err != nil && !sleep(ctx, reopen) {
			return nil
		}
	}
	defer s.backend.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { s.readGroups(ctx) })
	free := make(chan struct{}, parallel)
	for next := time.Now(); ; {
		if now := time.Now(); !now.Before(next) {
			names, groups, err := s.names(ctx)
			if next = now.Add(relist); err != nil {
				next = now.Add(reopen)
			}
			s.watch(names, groups, err)
		}
		elections := s.known()
		for _, e := range elections {
			select {
			case free <- struct{}{}:
			case <-ctx.Done():
				return nil
			}
			wg.Go(func() {
				defer func() { <-free }()
				if s.unlikely(e) {
					s.check(ctx, e)
				} else {
					e.look(ctx)
				}
			})
			if !sleep(ctx, s.pause(len(elections))) {
				return nil
			}
		}
		if len(elections) == 0 && !sleep(ctx, s.f.o.Every) {
			return nil
		}
	}
}

func (s *store) open(ctx context.Context) (backends.Backend, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if again := s.f.o.Again; again != nil {
		ctx = storeurl.WithSource(ctx, func() (string, error) { return again(s.index) })
	}
	return backends.OpenReadOnly(ctx, s.url)
}

// answered records that the store was opened as b, or the result of a request to it. A store
// does not answer if it fails twice in a row, or has not answered for some time.
func (s *store) answered(b backends.Backend, err error) {
	s.f.mutex.Lock()
	defer s.f.mutex.Unlock()
	before, now := s.failing(), time.Now()
	if s.failures == 0 {
		s.since = now
	}
	s.err = err
	switch {
	case b != nil: // some do no I/O for that
		s.backend, s.paced = b, newPaced(s, b)
	case err == nil:
		s.failures, s.heard = 0, now
	case now.Sub(s.heard) > max(patience, 2*s.f.o.Every):
		s.failures = 2
	default:
		s.failures++
	}
	s.tried = true
	if before != s.failing() { // the state of each election has changed too
		s.f.seq++
		for _, e := range s.elections {
			e.seq = s.f.seq
		}
		for _, g := range s.groups {
			g.seq = s.f.seq
		}
	}
	switch log := s.f.o.Logger.With("store", s.name); {
	case s.failing() && !before:
		log.Warn("elector: the store does not answer", "error", inner(err))
	case before && !s.failing():
		log.Warn("elector: the store answers again")
	}
}

// failing reports whether the store does not answer. The caller holds the mutex.
func (s *store) failing() bool { return s.failures > 1 }

// up reports whether the store answers. The caller holds the mutex.
func (s *store) up() bool { return !s.heard.IsZero() && !s.failing() }

// pause is the time between the starts of two reads.
func (s *store) pause(elections int) time.Duration {
	s.f.mutex.Lock()
	defer s.f.mutex.Unlock()
	if s.failing() {
		return s.f.o.Every
	}
	return s.pace(elections)
}

// pace is the pause that a store with so many elections gets. The caller holds the mutex.
func (s *store) pace(elections int) time.Duration {
	return max(s.f.o.Every/time.Duration(max(elections, 1)), s.least())
}

// least is the shortest pause between two reads, of elections and as much again of groups if
// there are both. The caller holds the mutex.
func (s *store) least() time.Duration {
	least := time.Second / time.Duration(s.f.o.Reads)
	if len(s.elections) > 0 && len(s.groups) > 0 {
		least *= 2
	}
	return least
}

// gap is least, for those who do not hold the mutex.
func (s *store) gap() time.Duration {
	s.f.mutex.Lock()
	defer s.f.mutex.Unlock()
	return s.least()
}

// readGroups reads the groups in turn until ctx ends.
func (s *store) readGroups(ctx context.Context) {
	defer func() {
		for _, g := range s.knownGroups() {
			g.g.Close()
		}
	}()
	for {
		begun := time.Now()
		for _, g := range s.knownGroups() {
			if !g.look(ctx) && !sleep(ctx, s.f.o.Every) {
				return
			}
		}
		if !sleep(ctx, max(s.f.o.Every-time.Since(begun), s.gap())) {
			return
		}
	}
}

func (s *store) knownGroups() []*group {
	s.f.mutex.Lock()
	defer s.f.mutex.Unlock()
	return slices.Clone(s.groups)
}

// unlikely reports whether a name that was given may be that of a group: there is no such
// election, and no group was looked for lately.
func (s *store) unlikely(e *election) bool {
	s.f.mutex.Lock()
	defer s.f.mutex.Unlock()
	return !e.read.IsZero() && e.status.State == "vacant" && e.status.Token == 0 && time.Since(e.checked) > relist
}

// check looks whether an election is a group, and makes it one.
func (s *store) check(ctx context.Context, e *election) {
	is, err := s.isGroup(ctx, e.name)
	if ctx.Err() != nil {
		return
	}
	if errors.Is(err, elector.ErrForeignRecord) || errors.Is(err, elector.ErrDenied) {
		err = nil // the store has answered, and this is no group that can be shown
	}
	s.answered(nil, err)
	s.f.mutex.Lock()
	defer s.f.mutex.Unlock()
	if err == nil {
		e.checked = time.Now()
	}
	if is && !slices.ContainsFunc(s.groups, func(g *group) bool { return g.name == e.name }) {
		if g, err := newGroup(s, e.name); err == nil {
			s.grouped[e.name] = true
			s.groups = append(s.groups, g)
		}
	}
	if s.grouped[e.name] {
		s.elections = slices.DeleteFunc(s.elections, func(other *election) bool { return other == e })
		s.f.epoch++
	}
}

func (s *store) known() []*election {
	s.f.mutex.Lock()
	defer s.f.mutex.Unlock()
	return slices.Clone(s.elections)
}

// names returns the elections and groups to watch, as far as they are known.
func (s *store) names(ctx context.Context) (elections, groups []string, err error) {
	s.f.mutex.Lock()
	for _, name := range s.given {
		if s.grouped[name] {
			groups = append(groups, name)
		} else {
			elections = append(elections, name)
		}
	}
	s.f.mutex.Unlock()
	if !s.f.o.All {
		return elections, groups, nil
	}
	l, ok := s.backend.(backends.Lister)
	if !ok {
		return elections, groups, errors.New("this store cannot list its elections; name them instead of --all")
	}
	limited, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	listed, err := l.List(limited)
	if errors.Is(err, elector.ErrDenied) {
		s.answered(nil, nil)
	} else if ctx.Err() == nil {
		s.answered(nil, err)
	}
	found, rest := partition.Find(listed)
	for _, g := range found {
		groups = append(groups, g.Group)
		elections = slices.DeleteFunc(elections, func(name string) bool { return name == g.Group })
	}
	return append(elections, rest...), groups, err
}

// watch brings the store's elections and groups up to date. If names is not complete
// because of an error, none is removed.
func (s *store) watch(names, groups []string, err error) {
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	removed := s.watchGroups(groups, err)
	defer func() {
		for _, g := range removed {
			g.g.Close()
		}
	}()
	s.f.mutex.Lock()
	defer s.f.mutex.Unlock()
	s.watching, s.unlisted = true, err
	old := map[string]*election{}
	for _, e := range s.elections {
		old[e.name] = e
	}
	var now []*election
	for _, name := range names {
		e := old[name]
		if e == nil {
			e = s.election(name)
		}
		if e.e != nil || e.start() {
			now = append(now, e)
			delete(old, name)
		}
	}
	for name, e := range old {
		if err != nil && e.e != nil {
			now = append(now, e)
			delete(old, name)
		}
	}
	if len(old) > 0 {
		s.f.epoch++
	}
	s.elections = now
}

// watchGroups brings the groups up to date, and returns those that are no longer watched.
func (s *store) watchGroups(names []string, err error) (removed []*group) {
	names = slices.Clone(names)
	slices.Sort(names)
	s.f.mutex.Lock()
	defer s.f.mutex.Unlock()
	var now []*group
	for _, g := range s.groups {
		if err != nil || slices.Contains(names, g.name) {
			now = append(now, g)
		} else {
			removed = append(removed, g)
		}
	}
	for _, name := range slices.Compact(names) {
		if slices.ContainsFunc(now, func(g *group) bool { return g.name == name }) {
			continue
		}
		if g, err := newGroup(s, name); err != nil {
			s.f.o.Logger.Warn("elector: a group that cannot be watched", "store", s.name, "group", name, "error", inner(err))
		} else {
			now = append(now, g)
		}
	}
	if len(removed) > 0 {
		s.f.epoch++
	}
	s.groups = now
	return removed
}

// start makes what reads the election. The caller holds the mutex.
func (e *election) start() bool {
	var err error
	e.e, err = elector.New(&keeping{e.s.backend, e}, e.name, &elector.Options{ID: "elector serve", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		e.s.f.o.Logger.Warn("elector: an election that cannot be watched", "store", e.s.name, "election", e.name, "error", inner(err))
		return false
	}
	e.leader = electorhttp.Leader(e.e)
	e.s.f.seq++
	e.seq = e.s.f.seq
	return true
}

// A keeping backend keeps the record that it has read last.
type keeping struct {
	backends.Backend
	e *election
}

func (k *keeping) Load(ctx context.Context, name string) (backends.Record, error) {
	r, err := k.Backend.Load(ctx, name)
	if err == nil {
		k.e.record.Store(&r)
	}
	return r, err
}

// look reads the election once.
func (e *election) look(ctx context.Context) {
	start := time.Now()
	l, err := e.e.Leader(ctx)
	if ctx.Err() != nil {
		return
	}
	// Only these concern one election alone.
	ours := errors.Is(err, elector.ErrForeignRecord) || errors.Is(err, elector.ErrDenied)
	if ours {
		e.s.answered(nil, nil)
	} else {
		e.s.answered(nil, err)
	}
	f := e.s.f
	f.mutex.Lock()
	defer f.mutex.Unlock()
	switch {
	case err == nil:
		e.renewed = !l.Vacant() && (e.renewed || !e.read.IsZero() && l.Unchanged < start.Sub(e.read))
		e.status, e.err, e.read = electorhttp.StatusOf(e.name, l), nil, time.Now()
		e.terms = annex.HistoryOf(*e.record.Load())
	case ours:
		e.err = err
	default:
		return // the store shows it
	}
	f.seq++
	e.seq = f.seq
}

// trouble is the state of an election or group with an error of its own.
func trouble(err error) string {
	if errors.Is(err, elector.ErrForeignRecord) {
		return "foreign"
	}
	return "denied"
}

// inner returns an error without what the page shows beside it: the operation,
// the election and the store.
func inner(err error) string {
	var named *elector.Error
	if errors.As(err, &named) {
		err = named.Err
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

// sleep returns false if ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
