package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/elector-go/elector/backends"
)

// A clientWrite is one way to write a record.
type clientWrite struct {
	what string
	next func(held backends.Record) backends.Record
	send func(ctx context.Context, prev, next backends.Record) error
}

// amb/client: an error of the client on a write, such as a lost connection, is
// not reported as a refusal by the store, which may have applied the write.
func clientError(s *suite) {
	if s.h.OpenFaulty == nil {
		s.notApplicable("the harness has no OpenFaulty: the suite cannot make the store's client fail")
		return
	}
	var b backends.Backend
	var set func(Fault)
	s.outside("Harness.OpenFaulty returns", func() { b, set = s.h.OpenFaulty(s) })
	if b == nil || set == nil {
		s.Fatal("Harness.OpenFaulty returns a new handle on the store, and a function that sets the fault: one of them is nil")
	}
	s.closes(b)
	clean := s.open()
	swap := func(ctx context.Context, prev, next backends.Record) error {
		_, err := b.Swap(ctx, s.name, prev, next)
		return err
	}
	writes := []clientWrite{
		{"a Swap that acquires", func(held backends.Record) backends.Record { return acquisition("candidate", held.Token+1) }, swap},
		{"a Swap that renews", renewal, swap},
	}
	if m, ok := b.(backends.BatchSwapper); ok {
		writes = append(writes, clientWrite{"a SwapMany", renewal, func(ctx context.Context, prev, next backends.Record) error {
			return m.SwapMany(ctx, []backends.Change{{Name: s.name, Prev: prev, Next: next}})[0].Err
		}})
	}
	for _, w := range writes {
		for range s.rounds(5, 2) {
			s.clientFails(b, clean, set, LoseRequests, w)
		}
		for n, applied := 0, 0; applied < s.rounds(5, 2); n++ {
			if n == 30 {
				s.Fatalf("Harness.OpenFaulty: with LoseAnswers requests reach the store; of %d writes (%s) only %d were applied", n, w.what, applied)
			}
			if s.clientFails(b, clean, set, LoseAnswers, w) {
				applied++
			}
		}
	}
}

// clientFails makes a write while the client fails, and reports whether it was
// applied. The write goes through b; the clean handle finds out what the store
// holds afterwards.
func (s *suite) clientFails(b, clean backends.Backend, set func(Fault), f Fault, w clientWrite) (applied bool) {
	s.Helper()
	held := s.load(b, s.name)
	held = s.swap(b, s.name, held, acquisition("holder", held.Token+1))
	next := w.next(held)
	var read backends.Record
	s.outside("setting a fault returns", func() { set(f) })
	err := s.briefly(func(ctx context.Context) error { return w.send(ctx, held, next) })
	loading := s.briefly(func(ctx context.Context) (err error) { read, err = b.Load(ctx, s.name); return err })
	s.outside("removing a fault returns", func() { set(NoFault) })

	ctx := s.patient()
	for s.briefly(func(ctx context.Context) error { _, err := b.Load(ctx, s.name); return err }) != nil {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			s.must(ctx.Err(), "a handle works again when its client reaches the store again")
		}
	}
	was, _ := s.fence(clean, s.name, held)
	applied = content(was) == content(next)
	switch {
	case was != held && !applied:
		s.Fatalf("a write whose client fails is applied completely or not at all: the store holds %v after %v", was, held)
	case err == nil && !applied:
		s.Fatalf("%s that returns no error was applied: it wrote %v, and the store holds %v", w.what, next, was)
	case loading == nil && !read.Exists():
		s.Fatalf("a Load that cannot read returns an error, never an empty record: it returned no error and no record, and the store holds %v", was)
	case err == nil || loading == nil:
		s.Fatalf("Harness.OpenFaulty: with a fault set, each request fails: %s returned error %v, and a Load error %v", w.what, err, loading)
	case errors.Is(err, backends.ErrConflict):
		s.Fatalf("ErrConflict means that the store holds another version, and no other error may be reported as one: the client of %s failed, the store held version %q, as expected, and the error was: %v", w.what, held.Version, err)
	case errors.Is(err, backends.ErrDeposed), errors.Is(err, backends.ErrNotTried) && (applied || w.what != "a SwapMany"):
		s.Fatalf("an error of the client leaves open whether a write was applied, and must not be reported as a refusal: the error of %s was: %v", w.what, err)
	case backends.Permanent(err), backends.Permanent(loading):
		s.Fatalf("a lost connection must not be reported as a permanent error: the error of %s was: %v; that of a Load: %v", w.what, err, loading)
	}
	return applied
}

// briefly makes a call that need not be answered.
func (s *suite) briefly(call func(ctx context.Context) error) error {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 2*time.Second)
	defer cancel()
	return s.together(1, "a call returns when its context ends", func(int) error { return call(ctx) })[0]
}
