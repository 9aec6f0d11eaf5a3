// Package batcher joins requests that one process makes through one backend at about
// the same time, where the backend takes several in one: swaps through a
// backends.BatchSwapper, reads through a backends.BatchLoader. It knows nothing of
// elections: what a swap means, and when to make one, is its callers' business.
//
// A request waits for others only if there are any. One that may wait, such as a
// renewal, waits a moment if there are other members that make such requests. Any
// other request waits only while a request is on its way, so a single caller is
// never slower than without this package. A refusal of one does not affect the
// others. A request that was sent takes no more company: what it shows, or when it
// was sent, would not be true of one that came later.
package batcher

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/clock"
)

const (
	swapWait = 2 * time.Millisecond // the longest that a swap waits for others
	readWait = 3 * time.Millisecond // the same for a read

	// maxBytes bounds the texts (IDs, values and extensions, before and after) of the
	// records that are swapped in one request: stores take requests of a megabyte, and a
	// byte may take six bytes in JSON.
	maxBytes = 128 << 10
)

// A Member makes requests through one backend, by themselves or with those of other
// members. Many goroutines may use it.
type Member struct {
	backend backends.Backend
	clock   clock.Clock
	timeout time.Duration   // of a request, which bounds the wait for others
	active  *sync.WaitGroup // counts the requests under way
	alone   bool            // the backend takes one request at a time
	swaps   trust
	loads   trust

	hungSwaps, hungLoads atomic.Int32 // see bounded
}

// New returns a Member whose requests end after timeout. A request that a caller has
// given up counts in active until it returns, if no other member waits for it.
func New(b backends.Backend, c clock.Clock, timeout time.Duration, active *sync.WaitGroup) *Member {
	_, swaps := b.(backends.BatchSwapper)
	_, loads := b.(backends.BatchLoader)
	alone := !swaps && !loads || !reflect.ValueOf(b).Comparable()
	return &Member{backend: b, clock: c, timeout: timeout, active: active, alone: alone}
}

// Swap makes a swap, and returns what the backend's Swap would. gather is set if it
// may wait for the swaps of other members. If may is set, it is asked when the request is
// about to be sent, and the swap is not made if it returns false. Another goroutine may
// call it.
func (m *Member) Swap(ctx context.Context, c backends.Change, gather bool, may func() bool) (backends.Record, error) {
	h := m.enter()
	defer h.leave()
	w := swap{c, may}
	alone := func() (backends.Record, error) {
		if w.late() {
			return backends.Record{}, errLate
		}
		return m.backend.Swap(ctx, c.Name, c.Prev, c.Next)
	}
	if h.swaps == nil {
		return alone()
	}
	if !m.swaps.asks() {
		r, err := alone()
		if !w.late() {
			m.swaps.solo(err)
		}
		return r, err
	}
	if h.swaps.beginSolo(gather) {
		defer h.swaps.endSolo()
		return alone()
	}
	o, together := h.swaps.share(ctx, m, w)
	if together == 0 {
		return alone()
	}
	if w.late() && notTried(o.Err) {
		return backends.Record{}, o.Err // it stayed behind, which is no failure of the store
	}
	m.swaps.outcome(o.Err)
	switch {
	case o.Err == nil && o.Record.Attempt != c.Next.Attempt:
		return backends.Record{}, fmt.Errorf("%w: the backend answered with another write in the place of this one", backends.ErrUnavailable)
	case together == 1:
	case notTried(o.Err), backends.Permanent(o.Err) && c.Prev.Exists():
		// The store may have refused another swap, so this one goes by itself. That is
		// safe even if this one was applied: it is the same write, and only one of the
		// two can find the version that both replace.
		return alone()
	case backends.Permanent(o.Err):
		// A creation replaces no version. So if this one is still to be applied, only
		// the caller can tell whether it may write again.
		return backends.Record{}, fmt.Errorf("%w: together with others: %v", backends.ErrUnavailable, o.Err)
	}
	return o.Record, o.Err
}

// Load reads a record, and returns what the backend's Load would. gather is set if it
// may wait for the reads of other members. sent is called when the request is about to
// be sent, each time.
func (m *Member) Load(ctx context.Context, name string, gather bool, sent func()) (backends.Record, error) {
	h := m.enter()
	defer h.leave()
	alone := func() (backends.Record, error) {
		sent()
		return m.backend.Load(ctx, name)
	}
	if h.loads == nil {
		return alone()
	}
	if !m.loads.asks() {
		r, err := alone()
		m.loads.solo(err)
		return r, err
	}
	if h.loads.beginSolo(gather) {
		defer h.loads.endSolo()
		return alone()
	}
	o, together := h.loads.share(ctx, m, read{name, sent})
	if together == 0 {
		return alone()
	}
	m.loads.outcome(o.Err)
	if together > 1 && (notTried(o.Err) || backends.Permanent(o.Err)) {
		return alone() // the others may be the reason
	}
	return o.Record, o.Err
}

// A swap is a Change that may share a request.
type swap struct {
	backends.Change
	may func() bool // whether it may still be sent; nil for always
}

// late reports whether the swap may not be sent any more.
func (s swap) late() bool { return s.may != nil && !s.may() }

var errLate = fmt.Errorf("%w: its time was over before it could be sent", backends.ErrNotTried)

// timely sends those of some swaps that may still be sent. The others stay behind.
func timely(all []swap, send func([]backends.Change) []backends.Outcome) []backends.Outcome {
	changes, places := make([]backends.Change, 0, len(all)), make([]int, 0, len(all))
	for i, s := range all {
		if !s.late() {
			changes, places = append(changes, s.Change), append(places, i)
		}
	}
	if len(changes) == len(all) {
		return send(changes)
	}
	outcomes := backends.Outcomes(len(all), errLate)
	if len(changes) == 0 {
		return outcomes
	}
	answers := send(changes)
	if len(answers) != len(changes) {
		answers = backends.Outcomes(len(changes), badAnswer(len(answers), len(changes)))
	}
	for i, o := range answers {
		outcomes[places[i]] = o
	}
	return outcomes
}

// A read is a Load that may share a request.
type read struct {
	name string
	sent func() // called when the request is about to be sent
}

// notTried reports whether a request was certainly not made. An error that is
// another one too may be about another try.
func notTried(err error) bool {
	for _, other := range []error{backends.ErrConflict, backends.ErrDeposed, backends.ErrReadOnly, backends.ErrUnavailable, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, other) {
			return false
		}
	}
	return errors.Is(err, backends.ErrNotTried)
}

// A trust decides whether a member's next request shares one. After a shared request
// that failed as a whole, one goes by itself; after the next such failure three, then
// seven and so on up to 63: a store may take single requests while large ones hang. If
// one that goes by itself fails too, the next shares one again: many single requests are
// the worst for a store that is slow.
type trust struct {
	mutex   sync.Mutex
	alone   int // requests that now go by themselves
	penalty int // requests that went by themselves after the last failure
}

// asks reports whether the next request shares one.
func (t *trust) asks() bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.alone > 0 {
		t.alone--
		return false
	}
	return true
}

// outcome records the result of a shared request.
func (t *trust) outcome(err error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	switch {
	case err == nil:
		t.penalty = 0
	case !answered(err):
		t.penalty = min(2*t.penalty+1, 63)
		t.alone = t.penalty
	}
}

// solo records the result of a request that went by itself after a failure.
func (t *trust) solo(err error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if err != nil && !answered(err) && !backends.Permanent(err) {
		t.alone = 0
	}
}

// answered reports whether an error is the store's answer to one request.
func answered(err error) bool {
	return errors.Is(err, backends.ErrConflict) || errors.Is(err, backends.ErrDeposed)
}

// A hub joins the requests to one backend.
type hub struct {
	backend backends.Backend
	users   int         // requests and places
	swaps   *line[swap] // nil if they go one by one
	loads   *line[read] // the same
}

// hubs has a hub for each backend that is in use.
var hubs = struct {
	sync.Mutex
	of map[backends.Backend]*hub
}{of: map[backends.Backend]*hub{}}

// noHub is that of backends that take one request at a time.
var noHub = &hub{}

func (m *Member) enter() *hub {
	if m.alone {
		return noHub
	}
	hubs.Lock()
	defer hubs.Unlock()
	h := hubs.of[m.backend]
	if h == nil {
		h = newHub(m.backend)
		hubs.of[m.backend] = h
	}
	h.users++
	return h
}

func (h *hub) leave() {
	if h == noHub {
		return
	}
	hubs.Lock()
	defer hubs.Unlock()
	if h.users--; h.users == 0 {
		delete(hubs.of, h.backend)
	}
}

func newHub(backend backends.Backend) *hub {
	h, d := &hub{backend: backend}, backend.Describe()
	if b, ok := backend.(backends.BatchSwapper); ok && d.MaxSwaps > 1 {
		h.swaps = &line[swap]{
			most: d.MaxSwaps, wait: swapWait,
			bytes: func(s swap) int { return size(s.Change) },
			clash: func(a, b swap) bool { return a.Name == b.Name },
			send: func(ctx context.Context, all []swap) []backends.Outcome {
				return timely(all, func(some []backends.Change) []backends.Outcome {
					if len(some) > 1 {
						return b.SwapMany(ctx, some)
					}
					r, err := b.Swap(ctx, some[0].Name, some[0].Prev, some[0].Next)
					return []backends.Outcome{{Record: r, Err: err}}
				})
			},
		}
	}
	if b, ok := backend.(backends.BatchLoader); ok && d.MaxLoads > 1 {
		h.loads = &line[read]{
			most: d.MaxLoads, wait: readWait,
			send: func(ctx context.Context, all []read) []backends.Outcome {
				for _, r := range all {
					r.sent()
				}
				if len(all) > 1 {
					return b.LoadMany(ctx, namesOf(all))
				}
				r, err := b.Load(ctx, all[0].name)
				return []backends.Outcome{{Record: r, Err: err}}
			},
		}
	}
	return h
}

func namesOf(all []read) []string {
	names := make([]string, len(all))
	for i, r := range all {
		names[i] = r.name
	}
	return names
}

// chosen counts the bytes of a record that its holder and other processes chose.
func chosen(r backends.Record) int { return len(r.Holder) + len(r.Value) + len(r.Extensions) }

const (
	// swapPoints is the number of times in an interval at which members swap, while few
	// requests can carry all swaps.
	swapPoints = 4

	// many is a number of members that should not make requests one by one.
	many = 16

	// readGrid is the longest time between the points at which members read.
	readGrid = 50 * time.Millisecond
)

// A Place is a member among those that make requests again and again. They make
// them at common points of time. A nil Place is that of a member by itself.
type Place struct {
	hub   *hub
	mutex *sync.Mutex
	count *int // of such members
	most  int  // requests that go together
}

// Swapping returns a place among those that swap again and again.
func (m *Member) Swapping() *Place {
	return place(m.enter(), func(h *hub) *line[swap] { return h.swaps })
}

// Reading returns a place among those that read again and again.
func (m *Member) Reading() *Place {
	return place(m.enter(), func(h *hub) *line[read] { return h.loads })
}

func place[T any](h *hub, of func(*hub) *line[T]) *Place {
	l := of(h)
	if l == nil {
		h.leave()
		return nil
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.members++
	return &Place{h, &l.mutex, &l.members, l.most}
}

// Leave gives the place up.
func (p *Place) Leave() {
	if p == nil {
		return
	}
	p.mutex.Lock()
	*p.count--
	p.mutex.Unlock()
	p.hub.leave()
}

// Members returns how many there are, 0 if there is only one.
func (p *Place) Members() int {
	if p == nil {
		return 0
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if *p.count < 2 {
		return 0
	}
	return *p.count
}

// Many reports whether there are so many that their requests, one by one, would hold up
// each other.
func (p *Place) Many() bool { return p.Members() >= many }

// Before returns the latest common point that is not after next, of which an interval
// has so many that few requests carry those of all members. Each grid is part of
// the finer ones, so that members that share requests still do so when more come.
func (p *Place) Before(next, every time.Duration) time.Duration {
	n := p.Members()
	if n == 0 {
		return next
	}
	points := swapPoints
	for points*p.most < n {
		points *= 2
	}
	return next - next%max(every/time.Duration(points), 1)
}

// After returns the first common point that is not before next. An interval has eight
// points at least, and each grid is part of the finer ones.
func (p *Place) After(next, every time.Duration) time.Duration {
	if p.Members() == 0 {
		return next
	}
	grid := readGrid
	for grid > max(every/8, 1) {
		grid /= 2
	}
	if late := next % grid; late > 0 {
		next += grid - late
	}
	return next
}
