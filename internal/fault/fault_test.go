package fault

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

const name = "fault"

// step makes a valid record with an attempt of its own.
func step(token uint64) backends.Record {
	return backends.Record{Holder: "a", Token: token, TTL: time.Second, RenewEvery: time.Millisecond,
		Attempt: backends.Attempt{Nonce: "n", Sequence: token}}
}

// wrapped returns a wrapped handle on a store, and another handle that no
// fault meets.
func wrapped() (*Backend, backends.Backend, *memory.Backend) {
	store := memory.NewStore()
	f, b := Wrap(store.Handle())
	return f, b, store.Handle()
}

// shows fails the test unless the store holds the token, 0 for no record.
func shows(t *testing.T, direct backends.Backend, token uint64) {
	t.Helper()
	r, err := direct.Load(t.Context(), name)
	if err != nil || r.Token != token {
		t.Fatalf("the store holds token %d and error %v, want %d", r.Token, err, token)
	}
}

// An answered call.
type answer struct {
	record backends.Record
	err    error
}

func swapLater(ctx context.Context, b backends.Backend, prev, next backends.Record) <-chan answer {
	c := make(chan answer, 1)
	go func() {
		r, err := b.Swap(ctx, name, prev, next)
		c <- answer{r, err}
	}()
	return c
}

func TestNoFault(t *testing.T) {
	f, b, direct := wrapped()
	made, err := b.Swap(t.Context(), name, backends.Record{}, step(1))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := b.Load(t.Context(), name); err != nil || r != made {
		t.Errorf("without a fault Load answers as the backend does: %+v and %v, want %+v", r, err, made)
	}
	if _, err := b.Swap(t.Context(), name, backends.Record{}, step(2)); !errors.Is(err, backends.ErrConflict) {
		t.Errorf("without a fault Swap answers as the backend does: %v, want ErrConflict", err)
	}
	if b.Describe() != direct.Describe() {
		t.Error("a wrapped backend describes itself as the backend does")
	}
	if f.Count("load") != 1 || f.Count("swap") != 2 || f.Hits() != 0 || f.Pending() != 0 {
		t.Errorf("counted %d loads, %d swaps, %d hits, %d pending; want 1, 2, 0, 0", f.Count("load"), f.Count("swap"), f.Hits(), f.Pending())
	}
}

// Whether the write was applied, and what the caller is told, of the faults
// that answer by themselves.
func TestAnswers(t *testing.T) {
	refused := errors.New("refused")
	for what, c := range map[string]struct {
		fault   Fault
		applied bool
		err     error
	}{
		"RequestLost": {RequestLost, false, ErrInjected},
		"ReplyLost":   {ReplyLost, true, ErrInjected},
		"Twice":       {Twice, true, backends.ErrConflict},
		"Fails":       {Fails(refused), false, refused},
		"nil":         {nil, true, nil},
	} {
		t.Run(what, func(t *testing.T) {
			f, b, direct := wrapped()
			f.Next("swap", c.fault)
			_, err := b.Swap(t.Context(), name, backends.Record{}, step(1))
			if !errors.Is(err, c.err) {
				t.Errorf("the caller is told %v, want %v", err, c.err)
			}
			want := uint64(0)
			if c.applied {
				want = 1
			}
			shows(t, direct, want)
		})
	}
}

// The faults that answer when the caller gives up.
func TestHanging(t *testing.T) {
	for what, c := range map[string]struct {
		fault Fault
		token uint64
	}{"Hang": {Hang, 0}, "HangApplied": {HangApplied, 1}, "Hold": {Hold(make(chan struct{})), 0}} {
		t.Run(what, func(t *testing.T) {
			f, b, direct := wrapped()
			f.Always(c.fault)
			ctx, cancel := context.WithCancel(t.Context())
			answers := swapLater(ctx, b, backends.Record{}, step(1))
			select {
			case a := <-answers:
				t.Errorf("it answers before the caller gives up: %+v", a)
			case <-time.After(5 * time.Millisecond): // a right one never answers
			}
			cancel()
			if a := <-answers; !errors.Is(a.err, context.Canceled) {
				t.Errorf("a caller that gives up gets %v, want its own error", a.err)
			}
			shows(t, direct, c.token)
		})
	}
}

func TestHoldPassesOn(t *testing.T) {
	f, b, direct := wrapped()
	release := make(chan struct{})
	f.Next("swap", Hold(release))
	answers := swapLater(t.Context(), b, backends.Record{}, step(1))
	shows(t, direct, 0)
	close(release)
	if a := <-answers; a.err != nil || a.record.Token != 1 || !a.record.Exists() {
		t.Errorf("a request that was held is answered as ever: %+v", a)
	}
	shows(t, direct, 1)
}

func TestDeaf(t *testing.T) {
	f, b, direct := wrapped()
	release := make(chan struct{})
	f.Next("swap", Deaf(release))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	answers := swapLater(ctx, b, backends.Record{}, step(1))
	select {
	case a := <-answers:
		t.Errorf("it notices that the caller gives up: %+v", a)
	case <-time.After(5 * time.Millisecond): // a right one never answers
	}
	close(release)
	if a := <-answers; !errors.Is(a.err, ErrInjected) {
		t.Errorf("it answers %v, want ErrInjected", a.err)
	}
	shows(t, direct, 0)
}

// A write that arrives after its caller has its error, and has gone on.
func TestLate(t *testing.T) {
	f, b, direct := wrapped()
	for i, overtaken := range []bool{false, true} {
		release, applied := make(chan struct{}), make(chan struct{})
		f.Next("swap", Late(release, applied))
		prev, err := direct.Load(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		want := uint64(10*i + 1)
		if _, err := b.Swap(ctx, name, prev, step(want)); !errors.Is(err, ErrInjected) {
			t.Errorf("the caller is told %v, want ErrInjected", err)
		}
		cancel() // the request is on its way, whatever the caller does
		shows(t, direct, prev.Token)
		if overtaken {
			want++
			if _, err := direct.Swap(t.Context(), name, prev, step(want)); err != nil {
				t.Fatal(err)
			}
		}
		close(release)
		<-applied
		shows(t, direct, want)
	}
}

// Next comes before Always, in order, for each kind by itself.
func TestOrder(t *testing.T) {
	f, b, _ := wrapped()
	first, second, always := errors.New("first"), errors.New("second"), errors.New("always")
	f.Always(Fails(always))
	f.Next("load", Fails(first), nil)
	f.Next("load", Fails(second))
	f.Next("swap", Fails(first))
	if f.Pending() != 4 {
		t.Errorf("%d faults are pending, want 4", f.Pending())
	}
	for i, want := range []error{first, nil, second, always, always} {
		if _, err := b.Load(t.Context(), name); !errors.Is(err, want) {
			t.Errorf("Load %d meets %v, want %v", i+1, err, want)
		}
	}
	if f.Pending() != 1 || f.Hits() != 4 || f.Count("load") != 5 {
		t.Errorf("%d pending, %d hits, %d loads; want 1, 4, 5", f.Pending(), f.Hits(), f.Count("load"))
	}
	f.Always(nil)
	if _, err := b.Load(t.Context(), name); err != nil {
		t.Errorf("Load meets %v after Always(nil), want no error", err)
	}
	if _, err := b.Swap(t.Context(), name, backends.Record{}, step(1)); !errors.Is(err, first) {
		t.Errorf("Swap meets %v, want %v", err, first)
	}
}

// A fault of one's own sees the request.
func TestCall(t *testing.T) {
	f, b, _ := wrapped()
	var seen []Call
	f.Always(func(ctx context.Context, c Call, send Send) (backends.Record, error) {
		seen = append(seen, c)
		return send(ctx)
	})
	made, err := b.Swap(t.Context(), name, backends.Record{}, step(1))
	if err != nil {
		t.Fatal(err)
	}
	b.Swap(t.Context(), name, made, step(2))
	b.Load(t.Context(), name)
	want := []Call{{"swap", name, backends.Record{}, step(1)}, {"swap", name, made, step(2)}, {Op: "load", Name: name}}
	if len(seen) != len(want) {
		t.Fatalf("saw %+v, want %+v", seen, want)
	}
	for i := range want {
		if seen[i] != want[i] {
			t.Errorf("saw %+v, want %+v", seen[i], want[i])
		}
	}
}

func TestWatchPasses(t *testing.T) {
	_, b, direct := wrapped()
	w, ok := b.(backends.Watcher)
	if !ok {
		t.Fatal("a wrapped Watcher is a Watcher")
	}
	if _, plain := Wrap(struct{ backends.Backend }{direct}); func() bool { _, ok := plain.(backends.Watcher); return ok }() {
		t.Error("a wrapped Backend that is no Watcher must not become one")
	}
	ctx, cancel := context.WithCancel(t.Context())
	states, ended := make(chan backends.Record, 10), make(chan error, 1)
	go func() { ended <- w.Watch(ctx, name, func(r backends.Record) { states <- r }) }()
	if r := <-states; r.Exists() {
		t.Errorf("reported %+v, want no record", r)
	}
	made, err := direct.Swap(t.Context(), name, backends.Record{}, step(1))
	if err != nil {
		t.Fatal(err)
	}
	if r := <-states; r != made {
		t.Errorf("reported %+v, want %+v", r, made)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Watch ends with %v", err)
	}
}

// A cut breaks the watches under way, and later ones before they show anything; it
// changes nothing for other requests.
func TestCutWatches(t *testing.T) {
	f, b, direct := wrapped()
	w := b.(backends.PresenceWatcher)
	watch := func(shown chan backends.Record) error {
		return w.Watch(t.Context(), name, func(r backends.Record) { shown <- r })
	}
	first := make(chan backends.Record, 9)
	ended := make(chan error, 2)
	go func() { ended <- watch(first) }()
	<-first
	made, err := direct.Swap(t.Context(), name, backends.Record{}, step(1))
	if err != nil {
		t.Fatal(err)
	}
	<-first
	go func() { ended <- w.WatchPresence(t.Context(), name, made) }()

	f.CutWatches(backends.ErrUnavailable)
	f.CutWatches(backends.ErrDenied) // the first reason counts
	latest, err := direct.Swap(t.Context(), name, made, step(2))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-ended; err != backends.ErrUnavailable {
			t.Errorf("a watch under way ends with %v", err)
		}
	}
	for range 100 {
		if err := watch(first); err != backends.ErrUnavailable {
			t.Errorf("a later watch ends with %v", err)
		}
	}
	if len(first) > 0 {
		t.Errorf("a watch that was cut has shown %+v", <-first)
	}
	shows(t, b, 2)

	f.CutWatches(nil)
	f.CutWatches(nil)
	again := make(chan backends.Record, 9)
	go func() { ended <- watch(again) }()
	if r := <-again; r != latest {
		t.Errorf("a watch after the cut shows %+v", r)
	}
	f.CutWatches(backends.ErrUnavailable)
	<-ended
}
