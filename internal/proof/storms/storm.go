// Package storms shows that the guards of the backends refuse stale writes: on a
// real store, leaders follow each other every few milliseconds by real Swaps, and
// renew in between, while paused writers of the last generations write to data next
// to the record. Every second leader holds it as a member of a group holds a partition,
// and does not renew it. No write may succeed under an acquisition that another one has
// followed, and no guard may make a renewal fail.
package storms

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/rule"
)

// A Storm is what to do to a store.
type Storm struct {
	// Handles are handles of one store, for the candidates.
	Handles []backends.Backend
	// Election is the name of an election that does not exist yet.
	Election  string
	Takeovers int
	// Until ends the storm before its last takeover. It may be nil.
	Until func(Result) bool
	// Needs makes the storm go on until it is met, where writers get little time, for 20 times
	// as many takeovers at most. It may be nil.
	Needs func(Result) bool
	// Every is the time from one takeover to the next, drawn from half of it to
	// all of it.
	Every time.Duration
	// Pause is the longest pause of a writer.
	Pause time.Duration
	Seed  uint64

	// Write makes one guarded write to data next to the record, and returns nil
	// if it has succeeded and ErrStale if it was refused. Any other error ends
	// the storm. It calls Pause where a pause could do harm, and Send before its
	// last request.
	Write func(context.Context, *Attempt) error

	// Acquired is what a new leader does first, before its acquisition counts as
	// acknowledged: a token fences from then on. It may be nil.
	Acquired func(context.Context, backends.Lease) error

	// Order returns where in the store's own order the acquisitions and the
	// successful writes stand, once the storm is over. It may be nil.
	Order func(context.Context) (acquisitions, writes []Mark, err error)
}

// A Mark is the place of an acquisition or write in the store's own order.
type Mark struct {
	Token    uint64
	Position int64
}

// A Result is what a storm did.
type Result struct {
	Takeovers, Releases, Renewals   int
	Attempts, Commits, Refusals     int
	Late                            int // writes sent after a newer acquisition was acknowledged, and committed
	Disordered                      int // writes after a newer acquisition in the store's own order
	FalseRefusals                   int // of the latest acquisition
	RenewalsFailed, TakeoversFailed int // releases count as renewals; takeovers are tried again
	LongestTakeover                 time.Duration
}

// String returns the figures in a line.
func (r Result) String() string {
	return fmt.Sprintf("%d takeovers (%d failed first, the longest took %v), %d releases, %d of %d renewals failed; %d writes: %d committed, %d refused; %d late, %d out of order, %d refused falsely",
		r.Takeovers, r.TakeoversFailed, r.LongestTakeover.Round(time.Millisecond), r.Releases, r.RenewalsFailed, r.Renewals+r.RenewalsFailed,
		r.Attempts, r.Commits, r.Refusals, r.Late, r.Disordered, r.FalseRefusals)
}

// A term is a lease as a paused process sees it: always valid.
type term struct {
	acquisition backends.Acquisition

	mutex    sync.Mutex
	begun    time.Time // when the first Swap that could end it was sent
	followed time.Time // when its successor was acknowledged
}

// Acquisition implements [backends.Lease].
func (t *term) Acquisition() (backends.Acquisition, error) { return t.acquisition, nil }

// An Attempt is one write of a writer that believes itself the leader.
type Attempt struct {
	backends.Lease
	Election string
	Token    uint64
	Number   int // of the attempt in the storm

	pause time.Duration
	sent  time.Time
}

// Pause blocks for as long as the writer is paused.
func (a *Attempt) Pause() { time.Sleep(a.pause) }

// Send notes that the last request of the write is about to be sent.
func (a *Attempt) Send() { a.sent = time.Now() }

// generations is how many terms have writers, and writers is how many each has.
const (
	generations = 3
	writers     = 2
)

// Run makes the storm.
func (s Storm) Run(ctx context.Context) (Result, error) {
	w := &weather{Storm: s, changed: make(chan struct{})}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	for age := range generations {
		for i := range writers {
			group.Go(func() {
				random := rand.New(rand.NewPCG(s.Seed, uint64(1+age*writers+i)))
				if err := w.write(ctx, age, random); err != nil {
					cancel(err)
				}
			})
		}
	}
	err := w.lead(ctx)
	w.over()
	group.Wait()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err == nil && s.Order != nil {
		err = w.order(ctx)
	}
	return w.result, err
}

// weather is a storm under way.
type weather struct {
	Storm
	mutex   sync.Mutex
	result  Result
	terms   []*term // the last is the latest
	ended   bool
	changed chan struct{} // closed and replaced when terms or ended changes
}

// lead makes the acquisitions, the renewals and the releases, one after the other,
// so that each Swap that fails has failed because of a guard.
func (w *weather) lead(ctx context.Context) error {
	random := rand.New(rand.NewPCG(w.Seed, 0))
	var record backends.Record
	for n := 0; n < w.Takeovers || n < 20*w.Takeovers && w.lacks(); n++ {
		if w.enough() {
			return nil
		}
		b := w.Handles[n%len(w.Handles)]
		next := backends.Record{
			Holder: fmt.Sprintf("candidate-%d", n), Token: record.Token + 1, TTL: 15 * time.Second, RenewEvery: 2 * time.Second,
			Attempt: backends.Attempt{Nonce: fmt.Sprintf("nonce%d", n), Sequence: 1},
		}
		partition := n%2 == 1 // its record is as that of a partition, which no process renews
		if partition {
			next.Extensions, _ = next.Extensions.With(rule.SeatName, rule.Incarnation{Seat: n, Nonce: next.Attempt.Nonce}.String())
		}
		acquired, err := w.takeOver(ctx, b, record, next)
		if err != nil {
			return err
		}
		record = acquired
		end := time.Now().Add(w.Every/2 + rand.N(w.Every/2))
		for time.Now().Before(end) && ctx.Err() == nil {
			time.Sleep(2 * time.Millisecond)
			if partition {
				continue
			}
			renewed := record
			renewed.Attempt.Sequence++
			if random.IntN(4) == 0 {
				renewed.Value = fmt.Sprintf("value %d", renewed.Attempt.Sequence)
			}
			written, err := b.Swap(ctx, w.Election, record, renewed)
			if err != nil && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			w.mutex.Lock()
			if err != nil {
				w.result.RenewalsFailed++
			} else {
				w.result.Renewals++
			}
			w.mutex.Unlock()
			if err != nil { // whether it was applied is not known
				if record, err = b.Load(ctx, w.Election); err != nil {
					return fmt.Errorf("reading after a failed renewal: %w", err)
				}
				continue
			}
			record = written
		}
		if random.IntN(4) == 0 && n < w.Takeovers-1 {
			if record, err = w.release(ctx, b, record); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *weather) lacks() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.Needs != nil && !w.Needs(w.result)
}

func (w *weather) enough() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.Until != nil && w.Until(w.result)
}

// tries is how often a takeover is tried: a guard may hold it up, but not forever.
const tries = 100

// takeOver swaps until that succeeds.
func (w *weather) takeOver(ctx context.Context, b backends.Backend, prev, next backends.Record) (backends.Record, error) {
	begun := time.Now()
	w.latest().begins(begun)
	for try := 1; ; try++ {
		written, err := b.Swap(ctx, w.Election, prev, next)
		if err == nil {
			next = written
			break
		}
		w.mutex.Lock()
		w.result.TakeoversFailed++
		w.mutex.Unlock()
		found, readErr := b.Load(ctx, w.Election)
		if readErr != nil {
			return backends.Record{}, fmt.Errorf("a takeover failed with %w, and reading after it with %w", err, readErr)
		}
		if found.Attempt == next.Attempt {
			next = found
			break
		}
		if try == tries || prev.Version != found.Version {
			return backends.Record{}, fmt.Errorf("a takeover failed %d times, and the record is %+v: %w", try, found, err)
		}
	}
	t := &term{acquisition: backends.Acquisition{Backend: b, Election: w.Election, Record: next, Remaining: next.TTL / 2}}
	if w.Acquired != nil {
		if err := w.Acquired(ctx, t); err != nil {
			return backends.Record{}, fmt.Errorf("beginning the term of token %d: %w", next.Token, err)
		}
	}
	now := time.Now()
	w.latest().follows(now)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.result.Takeovers++
	w.result.LongestTakeover = max(w.result.LongestTakeover, now.Sub(begun))
	w.terms = append(w.terms, t)
	w.change()
	return next, nil
}

// release makes the record vacant. Writes of the released term may be refused from
// now on, and must be from the next acquisition on.
func (w *weather) release(ctx context.Context, b backends.Backend, record backends.Record) (backends.Record, error) {
	w.latest().begins(time.Now())
	vacant := backends.Record{Token: record.Token, TTL: record.TTL, RenewEvery: record.RenewEvery, Attempt: record.Attempt}
	vacant.Attempt.Sequence++
	vacant, err := b.Swap(ctx, w.Election, record, vacant)
	w.mutex.Lock()
	if err == nil {
		w.result.Releases++
	} else {
		w.result.RenewalsFailed++
	}
	w.mutex.Unlock()
	if err != nil { // whether it was applied is not known
		return b.Load(ctx, w.Election)
	}
	return vacant, nil
}

// write makes writes under the term of an age, 0 for the latest one.
func (w *weather) write(ctx context.Context, age int, random *rand.Rand) error {
	for {
		t, number := w.choose(ctx, age)
		if t == nil {
			return nil
		}
		a := &Attempt{Lease: t, Election: w.Election, Token: t.acquisition.Record.Token, Number: number}
		if random.IntN(2) == 0 {
			a.pause = time.Duration(random.Int64N(int64(w.Pause)))
		}
		err := w.Write(ctx, a)
		if err == nil && a.sent.IsZero() {
			return errors.New("a write succeeded without Send")
		}
		if err != nil && !errors.Is(err, backends.ErrStale) {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("write %d with token %d: %w", number, a.Token, err)
		}
		w.judge(t, a, time.Now(), err == nil)
	}
}

// choose waits for a term of the age, and returns nil at the end of the storm.
func (w *weather) choose(ctx context.Context, age int) (*term, int) {
	for {
		w.mutex.Lock()
		t, changed := (*term)(nil), w.changed
		over := w.ended || ctx.Err() != nil
		if n := len(w.terms); !over && n > age {
			t = w.terms[n-1-age]
			w.result.Attempts++
		}
		number := w.result.Attempts
		w.mutex.Unlock()
		if over || t != nil {
			return t, number
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

func (w *weather) judge(t *term, a *Attempt, answered time.Time, committed bool) {
	t.mutex.Lock()
	begun, followed := t.begun, t.followed
	t.mutex.Unlock()
	w.mutex.Lock()
	defer w.mutex.Unlock()
	switch {
	case committed:
		w.result.Commits++
		if !followed.IsZero() && a.sent.After(followed) {
			w.result.Late++
		}
	default:
		w.result.Refusals++
		if begun.IsZero() || begun.After(answered) {
			w.result.FalseRefusals++
		}
	}
}

// order counts the writes that stand after a newer acquisition.
func (w *weather) order(ctx context.Context) error {
	acquisitions, writes, err := w.Order(ctx)
	if err != nil {
		return fmt.Errorf("reading the store's order: %w", err)
	}
	if len(acquisitions) != w.result.Takeovers || len(writes) < w.result.Commits {
		return fmt.Errorf("the store's order has %d acquisitions and %d writes; the storm had %d and %d", len(acquisitions), len(writes), w.result.Takeovers, w.result.Commits)
	}
	slices.SortFunc(acquisitions, func(a, b Mark) int { return int(a.Position - b.Position) })
	for _, mark := range writes {
		n, found := slices.BinarySearchFunc(acquisitions, mark.Position, func(a Mark, position int64) int { return int(a.Position - position) })
		if found {
			n++ // the acquisition itself
		}
		if n == 0 || acquisitions[n-1].Token != mark.Token {
			w.result.Disordered++
		}
	}
	return nil
}

func (w *weather) latest() *term {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if len(w.terms) == 0 {
		return &term{}
	}
	return w.terms[len(w.terms)-1]
}

func (w *weather) over() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.ended = true
	w.change()
}

// change is called with the mutex.
func (w *weather) change() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// begins notes the first request that may end the term.
func (t *term) begins(now time.Time) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.begun.IsZero() {
		t.begun = now
	}
}

func (t *term) follows(now time.Time) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.followed = now
}
