package conformance

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// A suite is what a case gets: a *testing.T and an election name of its own.
type suite struct {
	*testing.T
	h     Harness
	group string // "backend", "elector" or "group"
	name  string
	not   string // why the case is not applicable

	first *account // of the case's failures, shared with its subtests
	shown int      // elections whose history was logged
}

// notApplicable records why this store cannot show the case, which then returns.
func (s *suite) notApplicable(reason string) { s.not = reason }

// part returns the suite of a subtest.
func (s *suite) part(t *testing.T, name string) *suite {
	return &suite{T: t, h: s.h, group: s.group, name: name, first: s.first}
}

// An account keeps the first failure of a case.
type account struct {
	mutex  sync.Mutex
	broken string
	late   bool // something did not happen in time
	over   bool // the case has ended
}

// fail records a failure and reports it, unless the case has ended: what it has
// left running must not panic then.
func (a *account) fail(t *testing.T, text string) {
	t.Helper()
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.over {
		return
	}
	if a.broken == "" {
		a.broken = text
	}
	t.Error(text)
}

func (a *account) end() { a.mutex.Lock(); defer a.mutex.Unlock(); a.over = true }

func (a *account) text() string { a.mutex.Lock(); defer a.mutex.Unlock(); return a.broken }

func (a *account) wait() { a.mutex.Lock(); defer a.mutex.Unlock(); a.late = true }

func (a *account) waited() bool { a.mutex.Lock(); defer a.mutex.Unlock(); return a.late }

// Errorf, Fatalf, Error and Fatal are those of testing.T. They print records in
// a readable form and remember the first failure.
func (s *suite) Errorf(format string, args ...any) {
	s.Helper()
	if false {
		_ = fmt.Sprintf(format, args...) // for go vet
	}
	s.first.fail(s.T, readable(format, args...))
}

// Fatalf: see Errorf.
func (s *suite) Fatalf(format string, args ...any) {
	s.Helper()
	if false {
		_ = fmt.Sprintf(format, args...) // for go vet
	}
	s.Errorf("%s", readable(format, args...))
	s.FailNow()
}

// Error: see Errorf.
func (s *suite) Error(args ...any) { s.Helper(); s.Errorf("%s", fmt.Sprint(args...)) }

// Fatal: see Errorf.
func (s *suite) Fatal(args ...any) { s.Helper(); s.Fatalf("%s", fmt.Sprint(args...)) }

// must ends the case on an error.
func (s *suite) must(err error, doing string, args ...any) {
	s.Helper()
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			s.first.wait()
		}
		s.Fatalf("%s: %v", readable(doing, args...), err)
	}
}

// watchdog is how long a case of the elector waits for something that must
// happen, and patience is the same for a case of the backend. Neither measures
// anything: a slow machine must not break them. The tests of the suite itself,
// which wait for what never happens, shorten patience.
const watchdog = time.Minute

var patience = 20 * time.Second

// limit is how long the case waits now. It ends before go test's -timeout does.
func (s *suite) limit() time.Duration {
	most := watchdog
	if s.group == "backend" {
		most = patience
		if s.h.Slow {
			most *= 2
		}
	}
	if end, ok := s.Deadline(); ok {
		most = min(most, max(time.Until(end)-5*time.Second, time.Second))
	}
	return most
}

// wait blocks until c delivers, and ends the case after the limit.
func wait[T any](s *suite, c <-chan T, rule string) T {
	s.Helper()
	limit := s.limit()
	select {
	case v := <-c:
		return v
	case <-time.After(limit):
		s.first.wait()
		s.Fatalf("%s: this did not happen within %v", rule, limit.Round(time.Second))
		panic("unreachable")
	}
}

// answer is how long the store may take to answer: less than the limit, so that a
// call that hangs differs from one that returns when its context ends.
func (s *suite) answer() time.Duration { return s.limit() * 3 / 4 }

// patient returns the context of several calls that must be answered.
func (s *suite) patient() context.Context {
	ctx, cancel := context.WithTimeout(s.Context(), s.answer())
	s.Cleanup(cancel)
	return ctx
}

// open returns a new handle, which is closed at the end of the case.
func (s *suite) open() backends.Backend {
	s.Helper()
	b := s.unclosed()
	s.closes(b)
	return b
}

// closes closes a handle at the end of the case.
func (s *suite) closes(b backends.Backend) {
	s.Cleanup(func() {
		if err := s.close(b); err != nil {
			s.Errorf("Close returns, without an error: %v", err)
		}
	})
}

// unclosed returns a new handle, which the case closes.
func (s *suite) unclosed() (b backends.Backend) {
	s.Helper()
	s.outside("Harness.Open returns", func() { b = s.h.Open(s) })
	if b == nil {
		s.Fatalf("Harness.Open returns a new handle on the store: it returned nil")
	}
	return b
}

// close closes a handle or an Elector at the end of the case, and returns the
// error. After a failure it does not wait for long: the failure may be why Close
// hangs.
func (s *suite) close(c interface{ Close() error }) error {
	limit := s.limit()
	if s.Failed() {
		limit = time.Second
	}
	closed := make(chan error, 1)
	go func() { closed <- calm(c.Close) }()
	select {
	case err := <-closed:
		return err
	case <-time.After(limit):
		s.first.wait()
		return fmt.Errorf("it did not return within %v", limit.Round(time.Second))
	}
}

// outside calls a function of the harness, which may end the test and may hang.
func (s *suite) outside(rule string, call func()) {
	s.Helper()
	returned := make(chan bool, 1)
	go func() {
		ok := false
		defer func() { returned <- ok }()
		if err := calm(func() error { call(); return nil }); err != nil {
			s.Errorf("%s: %v", rule, err)
			return
		}
		ok = true
	}()
	if !wait(s, returned, rule) {
		if s.Skipped() {
			runtime.Goexit()
		}
		s.FailNow()
	}
}

// ttl is the lease time of the cases with the elector.
func (s *suite) ttl(b backends.Backend) time.Duration {
	if s.h.TTL != 0 {
		return s.h.TTL
	}
	return max(400*time.Millisecond, b.Describe().MinTTL)
}

// rounds returns the number of rounds of a case.
func (s *suite) rounds(fast, slow int) int {
	if s.h.Slow {
		return slow
	}
	return fast
}
