package backends

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Classify returns what the person on call can do about the error of a client
// library, and which error of this package it is. An error that it does not
// know is ErrUnavailable: the elector tries again, and no process leads on a
// guess. Classify returns a nil kind to leave the error as it is.
type Classify func(err error) (advice string, kind error)

// A Base does what every backend needs besides its own requests. It checks
// names, refuses calls after Close, ends the calls under way at Close, and
// gives errors one form:
//
//	doing what: what kind: what to do: the error of the client library
//
// Errors of this package that a request returns keep their kind, and
// ErrConflict, ErrNotTried and ErrDeposed are returned as they are. Any other
// error wraps that of the context if the context of the call has ended; after a
// deadline it is ErrUnavailable too, unless Classify knows better.
//
// A backend has one Base and makes each request within one of its methods.
type Base struct {
	store    string
	classify Classify
	once     sync.Once
	closing  error
	hanging  atomic.Int32 // calls that WithContext gave up and that have not returned
	readOnly bool

	mutex  sync.Mutex
	closed bool
	calls  map[*context.CancelFunc]bool // under way
}

// NewBase returns a Base. The store is its name in errors, without a
// password.
func NewBase(store string, classify Classify) *Base {
	return &Base{store: store, classify: classify, calls: map[*context.CancelFunc]bool{}}
}

// SetReadOnly makes Swap and SwapMany return ErrReadOnly without a request, if readOnly
// is set. A backend that is opened for reading alone calls it before it is used.
func (h *Base) SetReadOnly(readOnly bool) { h.readOnly = readOnly }

// ReadOnly reports whether the backend was opened for reading alone, for its
// [Description].
func (h *Base) ReadOnly() bool { return h != nil && h.readOnly }

// Store returns the name of the store.
func (h *Base) Store() string { return h.store }

// Close ends the contexts of the calls under way, then calls release, which may be
// nil, and returns its error. Only the first Close does; others wait for it and
// return the same.
func (h *Base) Close(release func() error) error {
	h.once.Do(func() {
		h.endCalls()
		if release != nil {
			h.closing = release()
		}
	})
	return h.closing
}

// endCalls ends the contexts before it returns, so that no call under way begins
// another request after Close.
func (h *Base) endCalls() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.closed = true
	for cancel := range h.calls {
		(*cancel)()
	}
}

// join returns a context that ends with ctx, and with Close.
func (h *Base) join(ctx context.Context) (joined context.Context, leave func()) {
	joined, cancel := context.WithCancel(ctx)
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.closed {
		cancel()
	}
	h.calls[&cancel] = true
	return joined, func() {
		cancel()
		h.mutex.Lock()
		defer h.mutex.Unlock()
		delete(h.calls, &cancel)
	}
}

func (h *Base) isClosed() bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.closed
}

// Load makes a request that reads a record, see [Backend].
func (h *Base) Load(ctx context.Context, name string, read func(context.Context) (Record, error)) (Record, error) {
	return named(ctx, h, "reading election ", name, read)
}

// Swap makes a request that replaces a record, see [Backend].
func (h *Base) Swap(ctx context.Context, name string, write func(context.Context) (Record, error)) (Record, error) {
	if h.readOnly {
		write = func(context.Context) (Record, error) { return Record{}, errReadOnlyHandle }
	}
	return named(ctx, h, "writing election ", name, write)
}

// Watch watches a record, see [Watcher], or a mark of presence, see
// [PresenceWatcher].
func (h *Base) Watch(ctx context.Context, name string, watch func(context.Context) error) error {
	_, err := named(ctx, h, "watching election ", name, func(ctx context.Context) (Record, error) { return Record{}, watch(ctx) })
	return err
}

// SwapMany makes a request that replaces many records, see [BatchSwapper]. An error is
// the Outcome of each.
func (h *Base) SwapMany(ctx context.Context, changes []Change, swap func(context.Context) ([]Outcome, error)) []Outcome {
	var outcomes []Outcome
	err := error(nil)
	for _, c := range changes {
		err = errors.Join(err, CheckName(c.Name))
	}
	if err == nil {
		err = h.Do(ctx, fmt.Sprintf("writing %d elections", len(changes)), func(ctx context.Context) (err error) {
			if h.readOnly {
				return errReadOnlyHandle
			}
			outcomes, err = swap(ctx)
			return err
		})
	}
	if err != nil {
		return Outcomes(len(changes), err)
	}
	return outcomes
}

// AllOrNone makes changes where the store applies all of a request or none. try makes
// some of them; or it returns an error that is ErrNotTried, and which of them the store
// has refused. AllOrNone then tries the others, a few times, so that one that conflicts
// costs the others little. Any other error of try is that of all.
func AllOrNone(changes []Change, try func(some []Change) (outcomes []Outcome, refused []int, err error)) ([]Outcome, error) {
	outcomes := Outcomes(len(changes), ErrNotTried)
	at := make([]int, len(changes)) // of the changes that are left
	for i := range at {
		at[i] = i
	}
	for tries := 0; tries < 4 && len(changes) > 0; tries++ {
		made, refused, err := try(changes)
		if err == nil {
			for i, o := range made {
				outcomes[at[i]] = o
			}
			return outcomes, nil
		}
		if !errors.Is(err, ErrNotTried) || len(refused) == 0 {
			return nil, err
		}
		var left []Change
		var places []int
		for i, c := range changes {
			if slices.Contains(refused, i) {
				outcomes[at[i]].Err = err
			} else {
				left, places = append(left, c), append(places, at[i])
			}
		}
		changes, at = left, places
	}
	return outcomes, nil
}

// LoadMany makes a request that reads many records, see [BatchLoader]. An error is the
// Outcome of each. LoadMany gives the errors in the outcomes their form.
func (h *Base) LoadMany(ctx context.Context, names []string, load func(context.Context) ([]Outcome, error)) []Outcome {
	var outcomes []Outcome
	err := error(nil)
	for _, name := range names {
		err = errors.Join(err, CheckName(name))
	}
	if err == nil {
		err = h.Do(ctx, fmt.Sprintf("reading %d elections", len(names)), func(ctx context.Context) (err error) {
			outcomes, err = load(ctx)
			for i, o := range outcomes {
				if o.Err != nil && i < len(names) {
					outcomes[i] = Outcome{Err: h.Explain(ctx, "reading election "+names[i], o.Err)}
				}
			}
			return err
		})
	}
	if err != nil {
		return Outcomes(len(names), err)
	}
	return outcomes
}

// List makes the requests that list the elections, see [Lister]. It sorts the names
// and leaves out those that no election can have.
func (h *Base) List(ctx context.Context, list func(context.Context) ([]string, error)) (names []string, err error) {
	err = h.Do(ctx, "listing the elections", func(ctx context.Context) (err error) {
		names, err = list(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return CheckName(name) != nil })
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Inspect makes the requests that inspect the store, see [Inspector].
func (h *Base) Inspect(ctx context.Context, inspect func(context.Context) (Inspection, error)) (i Inspection, err error) {
	err = h.Do(ctx, "inspecting the store", func(ctx context.Context) (err error) {
		i, err = inspect(ctx)
		return err
	})
	if err != nil {
		return Inspection{}, err
	}
	return i, nil
}

// Open makes the requests that see whether the store can serve, within the
// patience if ctx has no deadline.
func (h *Base) Open(ctx context.Context, patience time.Duration, prepare func(context.Context) error) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	return h.Do(ctx, "opening "+h.store, prepare)
}

// Do makes any other request. Its context ends with ctx, and with Close.
func (h *Base) Do(ctx context.Context, doing string, request func(context.Context) error) error {
	ctx, leave := h.join(ctx)
	defer leave()
	err := ctx.Err()
	if err == nil {
		err = request(ctx)
	}
	if err == nil {
		return nil
	}
	return h.Explain(ctx, doing, err)
}

func named(ctx context.Context, h *Base, doing, name string, request func(context.Context) (Record, error)) (r Record, err error) {
	if err := CheckName(name); err != nil {
		return Record{}, err
	}
	err = h.Do(ctx, doing+name, func(ctx context.Context) (err error) {
		r, err = request(ctx)
		return err
	})
	if err != nil {
		return Record{}, err
	}
	return r, nil
}

// shaped are the errors that say what they are.
var shaped = []error{ErrForeignRecord, ErrDenied, ErrMisconfigured, ErrReadOnly, ErrUnavailable, ErrURL, ErrName}

// Explain gives an error that was met while doing something its form. Load,
// Swap and the others do; it is for errors that are met elsewhere.
func (h *Base) Explain(ctx context.Context, doing string, err error) error {
	for _, definite := range []error{ErrConflict, ErrNotTried, ErrDeposed} {
		if errors.Is(err, definite) {
			return err
		}
	}
	for _, kind := range shaped {
		if errors.Is(err, kind) {
			return fmt.Errorf("%s: %w", doing, err)
		}
	}
	if h.isClosed() {
		return fmt.Errorf("%s: %w: the handle is closed", doing, ErrUnavailable)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	}
	advice, kind := h.classify(err)
	if late := ctx.Err(); late != nil {
		if !errors.Is(err, late) {
			err = fmt.Errorf("%w: %w", late, err)
		}
		if errors.Is(kind, ErrUnavailable) {
			advice = strings.TrimSuffix("no answer in time; "+advice, "; ")
		}
	}
	return fmt.Errorf("%s: %w", doing, shape(kind, advice, err))
}

// shape gives an error that Classify knows its form.
func shape(kind error, advice string, err error) error {
	switch {
	case kind == nil:
		return err
	case advice == "":
		return fmt.Errorf("%w: %w", kind, err)
	}
	return fmt.Errorf("%w: %s: %w", kind, advice, err)
}

// maxHanging is how many calls that WithContext has given up may hang before it refuses
// new ones. Simultaneous callers can exceed it by their number.
const maxHanging = 1024

// WithContext calls a client library that ignores contexts, within a request of the
// Base, and returns when ctx ends all the same. The call then goes on until
// the library gives up; while 1024 such calls hang, WithContext refuses more with
// ErrUnavailable. The outcome of a write that was given up is unknown.
func WithContext[T any](ctx context.Context, h *Base, call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if h.hanging.Load() >= maxHanging {
		err := fmt.Errorf("%d earlier requests hang", maxHanging)
		advice, _ := h.classify(err)
		return none, shape(ErrUnavailable, advice, err)
	}
	done, givenUp := make(chan result), make(chan struct{})
	go func() {
		var r result
		if r.err = ctx.Err(); r.err == nil { // or a write would be sent after it was given up
			r.value, r.err = call()
		}
		select {
		case done <- r:
		case <-givenUp:
			h.hanging.Add(-1)
		}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		h.hanging.Add(1)
		close(givenUp)
		return none, ctx.Err()
	}
}
