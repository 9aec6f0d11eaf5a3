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

// acquisition makes a record as an elector would write it, with an attempt
// that was never written before.
func acquisition(holder string, token uint64) backends.Record {
	nonce := make([]byte, 16)
	rand.Read(nonce)
	return backends.Record{
		Holder: holder, Token: token, TTL: 15 * time.Second, RenewEvery: 4500 * time.Millisecond,
		Attempt: backends.Attempt{Nonce: hex.EncodeToString(nonce), Sequence: 1},
	}
}

// renewal makes the next record of an acquisition.
func renewal(r backends.Record) backends.Record {
	r.Attempt.Sequence++
	return r
}

// vacancy makes the record that releases an acquisition.
func vacancy(r backends.Record) backends.Record {
	r.Holder, r.Value = "", ""
	return renewal(r)
}

// content is what a store keeps of a record.
func content(r backends.Record) backends.Record {
	r.Version = ""
	return r
}

// handles opens n handles on the store.
func (s *suite) handles(n int) []backends.Backend {
	all := make([]backends.Backend, n)
	for i := range all {
		all[i] = s.open()
	}
	return all
}

// patient is the context of calls that must be answered.
func (s *suite) patient() context.Context {
	ctx, cancel := context.WithTimeout(s.Context(), watchdog)
	s.Cleanup(cancel)
	return ctx
}

// load returns the record, which must be readable.
func (s *suite) load(b backends.Backend, name string) backends.Record {
	s.Helper()
	r, err := b.Load(s.patient(), name)
	s.must(err, "a handle can be used until it is closed, and a record that nobody spoilt can be read: Load of election %q", name)
	return r
}

// swap replaces prev by next, which must work, and returns the new state.
func (s *suite) swap(b backends.Backend, name string, prev, next backends.Record) backends.Record {
	s.Helper()
	r, err := b.Swap(s.patient(), name, prev, next)
	s.must(err, "a Swap from the version that the store holds is applied: Swap of election %q", name)
	if content(r) != content(next) || !r.Exists() || r.Version == prev.Version {
		s.Fatalf("Swap returns the new record with a version of its own: wrote %+v over version %q, got %+v", next, prev.Version, r)
	}
	return r
}

// conflicts makes a Swap that must be refused as a conflict.
func (s *suite) conflicts(b backends.Backend, name string, prev, next backends.Record, rule string) {
	s.Helper()
	r, err := b.Swap(s.patient(), name, prev, next)
	if !errors.Is(err, backends.ErrConflict) {
		s.Fatalf("%s: the Swap from version %q must be ErrConflict, got %+v and error %v", rule, prev.Version, r, err)
	}
}

// shows fails the case unless the record is this one, through every handle.
func (s *suite) shows(all []backends.Backend, name string, want backends.Record, rule string) {
	s.Helper()
	for i, b := range all {
		if got := s.load(b, name); got != want {
			s.Fatalf("%s: handle %d of %d reads %+v, want %+v", rule, i+1, len(all), got, want)
		}
	}
}

// together runs n calls at once, waits for all of them and returns their
// errors. A panic becomes an error, so that the case can say which rule it
// breaks.
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
