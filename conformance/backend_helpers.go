package conformance

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
)

// acquisition returns a record as an elector writes it when it acquires, with an
// attempt that was never written before.
func acquisition(holder string, token uint64) backends.Record {
	nonce := make([]byte, 16)
	rand.Read(nonce)
	return backends.Record{
		Holder: holder, Token: token, TTL: 15 * time.Second, RenewEvery: 4500 * time.Millisecond,
		Attempt: backends.Attempt{Nonce: hex.EncodeToString(nonce), Sequence: 1},
	}
}

// renewal returns the next record of an acquisition.
func renewal(r backends.Record) backends.Record {
	r.Attempt.Sequence++
	return r
}

// vacancy returns the record that releases an acquisition.
func vacancy(r backends.Record) backends.Record {
	r.Holder, r.Value = "", ""
	return renewal(r)
}

// content is what a store keeps of a record: all but the version.
func content(r backends.Record) backends.Record {
	r.Version = ""
	return r
}

// handles opens n handles on the store.
func (s *suite) handles(n int) []backends.Backend {
	s.Helper()
	all := make([]backends.Backend, n)
	for i := range all {
		all[i] = s.open()
	}
	return all
}

// request makes one call on the backend. One that panics or does not return ends
// the case.
func (s *suite) request(what string, call func(ctx context.Context) (backends.Record, error)) (r backends.Record, err error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), s.answer())
	defer cancel()
	err = s.together(1, what+" returns when its context ends, or before", func(int) (err error) {
		r, err = call(ctx)
		return err
	})[0]
	if errors.Is(err, context.DeadlineExceeded) {
		s.first.wait()
	}
	return r, err
}

// tryLoad reads a record.
func (s *suite) tryLoad(b backends.Backend, name string) (backends.Record, error) {
	s.Helper()
	return s.request("Load", func(ctx context.Context) (backends.Record, error) { return b.Load(ctx, name) })
}

// trySwap replaces prev by next.
func (s *suite) trySwap(b backends.Backend, name string, prev, next backends.Record) (backends.Record, error) {
	s.Helper()
	return s.request("Swap", func(ctx context.Context) (backends.Record, error) { return b.Swap(ctx, name, prev, next) })
}

// load returns the record, which must be readable.
func (s *suite) load(b backends.Backend, name string) backends.Record {
	s.Helper()
	r, err := s.tryLoad(b, name)
	s.must(err, "a handle works until it is closed, and Load reads every valid record; an election without a record is the zero Record and no error: Load of election %q", name)
	return r
}

// swap replaces prev by next, which must work, and returns the new state.
func (s *suite) swap(b backends.Backend, name string, prev, next backends.Record) backends.Record {
	s.Helper()
	r, err := s.trySwap(b, name, prev, next)
	s.must(err, "a Swap from the version that the store holds is applied: Swap of election %q", name)
	s.returned(prev, next, r)
	return r
}

// returned checks what a Swap returned that was applied.
func (s *suite) returned(prev, next, r backends.Record) {
	s.Helper()
	const rule = "Swap returns the new record with a new version"
	switch {
	case content(r) != content(next):
		s.Fatalf("%s: it wrote %v and returned %v, which differ in %s", rule, next, r, differences(content(next), content(r)))
	case !r.Exists():
		s.Fatalf("%s: the version of %v is empty", rule, r)
	case r.Version == prev.Version:
		s.Fatalf("%s: it replaced %v by %v", rule, prev, r)
	}
}

// conflicts makes a Swap that must be refused as a conflict.
func (s *suite) conflicts(b backends.Backend, name string, prev, next backends.Record, rule string) {
	s.Helper()
	r, err := s.trySwap(b, name, prev, next)
	switch {
	case err == nil:
		s.Fatalf("%s: the Swap from version %q must be ErrConflict, and it was applied: %v", rule, prev.Version, r)
	case !errors.Is(err, backends.ErrConflict):
		s.Fatalf("%s: the Swap from version %q must be ErrConflict, and its error is: %v", rule, prev.Version, err)
	}
}

// shows fails the case unless every handle reads this record.
func (s *suite) shows(all []backends.Backend, name string, want backends.Record, rule string) {
	s.Helper()
	for i, b := range all {
		if got := s.load(b, name); got != want {
			s.Fatalf("%s: handle %d of %d reads %v instead of %v; they differ in %s", rule, i+1, len(all), got, want, differences(got, want))
		}
	}
}

// together makes n calls at once, waits for all of them and returns their
// errors. A call that panics ends the case.
func (s *suite) together(n int, rule string, call func(i int) error) []error {
	s.Helper()
	errs := make([]error, n)
	start, done := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			errs[i] = calm(func() error { return call(i) })
		})
	}
	close(start)
	go func() { all.Wait(); close(done) }()
	wait(s, done, rule)
	for _, err := range errs {
		if errors.Is(err, errPanic) {
			s.Fatalf("%s: a call panicked, and no call may: %v", rule, err)
		}
	}
	return errs
}

// errPanic is the error of a call that panicked.
var errPanic = errors.New("panic")

// calm makes an error of a panic.
func calm(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v\n%s", errPanic, p, debug.Stack())
		}
	}()
	return call()
}
