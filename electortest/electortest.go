// Package electortest scripts elections for the tests of a worker: it wins, its store
// fails or is slow, it is deposed, paused, replaced, and told to stop.
//
//	synctest.Test(t, func(t *testing.T) {
//		s := electortest.New(t, "invoices", nil)
//		stop := s.Start(func(ctx context.Context) error { return s.Elector.Run(ctx, worker) })
//		s.Win()
//		s.Outage()
//		err := s.Loss() // within 13.5 s, which take no time in a bubble
//		s.Restore()
//		s.Win()
//		err = stop()
//	})
//
// The Elector is a real one, on a store in memory. Only the store and the clocks
// follow the script, so the worker meets what it meets in production: leases that end
// on time, errors, fencing tokens that grow.
//
// # Time
//
// In a bubble of testing/synctest a test takes milliseconds, with the TTL of
// production. Call New within the bubble. Outside a bubble time is real: a short TTL,
// such as 200 ms, keeps the test short. The steps wait for events, not for times; but
// on a machine that is too busy to renew in time, a short lease may also end by
// itself.
//
// # Steps
//
// Call the steps on the goroutine of the test, one after the other. In a bubble a step
// returns when all goroutines wait, so the worker has met what the step did; outside,
// it is about to. A step that waits in vain fails the test after ten TTL and a minute,
// and the message has the reason why the candidate does not lead.
//
// # Groups
//
// A Group scripts a group of package partition in the same manner:
//
//	g := electortest.NewGroup(t, "orders", &partition.Options{Partitions: 8})
//	a, b := g.Join("a", consumer), g.Join("b", consumer)
//	g.Balance()
//	b.Crash()
//	g.Balance() // a owns all, after 16.5 s
//	err := a.Leave()
package electortest

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/internal/fault"
	"github.com/elector-go/elector/internal/inject"
)

// A Script directs one candidate in an election of its own. New makes it.
type Script struct {
	// Elector is the candidate. It is closed at the end of the test.
	Elector *elector.Elector

	t        testing.TB
	name     string
	others   elector.Options // of AnotherLeads, except for their IDs and values
	patience time.Duration
	bubble   bool
	store    *memory.Store
	fault    *fault.Backend
	machine  *machine
	other    *elector.Elector // of the latest AnotherLeads

	mutex   sync.Mutex
	changed chan struct{} // closed and replaced at each event
	terms   []term
	next    int   // the term whose end Loss returns next
	waits   error // why the candidate waits
	ended   bool  // a function of Start has returned
	result  error // what it returned

	down, cut bool // by Outage, and by AnotherLeads
	delay     time.Duration
}

// A term is a lease of the candidate.
type term struct {
	token elector.Token
	over  bool
	err   error // why it is over
}

// New makes a candidate in the named election, on an empty store that works. It does
// not campaign. The options may be nil. Without a Logger, the log goes to the test's
// output.
func New(t testing.TB, name string, o *elector.Options) *Script {
	t.Helper()
	var mine elector.Options
	if o != nil {
		mine = *o
	}
	if mine.Logger == nil {
		mine.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	bubble := inBubble()
	s := &Script{t: t, name: name, bubble: bubble, store: memory.NewStore(), machine: newMachine(bubble), changed: make(chan struct{})}
	s.others = elector.Options{TTL: mine.TTL, ClockDrift: mine.ClockDrift, Logger: mine.Logger}
	s.patience = 10*cmp.Or(mine.TTL, 15*time.Second) + 2*mine.ReleaseTimeout + time.Minute
	mine.Trace = s.trace(mine.Trace)
	var b backends.Backend
	s.fault, b = fault.Wrap(s.store.Handle())
	s.Elector = s.candidate(b, s.machine, &mine)
	return s
}

// candidate makes an Elector that is closed at the end of the test.
func (s *Script) candidate(b backends.Backend, m *machine, o *elector.Options) *elector.Elector {
	s.t.Helper()
	e, err := elector.New(inject.Backend{Backend: b, Clock: m}, s.name, o)
	if err != nil {
		s.t.Fatalf("electortest: %v", err)
	}
	s.t.Cleanup(func() {
		s.Restore()
		if err := e.Close(); err != nil {
			s.t.Errorf("electortest: %v", err)
		}
	})
	return e
}

// trace returns callbacks that call the user's and then note the event.
func (s *Script) trace(users *elector.Trace) *elector.Trace {
	var t elector.Trace
	if users != nil {
		t = *users
	}
	t.Waiting = noted(s, t.Waiting, func(i elector.CampaignInfo) { s.waits = i.Err })
	t.Acquired = noted(s, t.Acquired, func(i elector.LeaseInfo) {
		s.waits = nil
		s.terms = append(s.terms, term{token: i.Token})
	})
	t.Ended = noted(s, t.Ended, func(i elector.LeaseInfo) {
		last := &s.terms[len(s.terms)-1]
		last.over, last.err = true, i.Err
	})
	return &t
}

func noted[Info any](s *Script, users func(context.Context, Info), note func(Info)) func(context.Context, Info) {
	return func(ctx context.Context, i Info) {
		defer s.event(func() { note(i) })
		if users != nil {
			users(ctx, i)
		}
	}
}

// event changes what await looks at.
func (s *Script) event(change func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

// await blocks until an event makes happened true. It fails the test if that takes
// too long.
func (s *Script) await(happened func() bool, otherwise string) {
	s.t.Helper()
	late := time.NewTimer(s.patience)
	defer late.Stop()
	for {
		s.mutex.Lock()
		done, changed, why := happened(), s.changed, s.why()
		s.mutex.Unlock()
		if done {
			s.settle()
			return
		}
		select {
		case <-changed:
		case <-late.C:
			s.t.Fatalf("electortest: after %v the candidate %q of election %q %s: %s", s.patience, s.Elector.ID(), s.name, otherwise, why)
		}
	}
}

// settle waits, in a bubble, until all other goroutines wait.
func (s *Script) settle() {
	if s.bubble {
		synctest.Wait()
	}
}

// inBubble reports whether the caller is in a bubble of testing/synctest, outside of
// which Wait panics.
func inBubble() (bubble bool) {
	defer func() { bubble = recover() == nil }()
	synctest.Wait()
	return true
}

// why describes what the candidate does.
func (s *Script) why() string {
	switch last := len(s.terms) - 1; {
	case s.ended:
		return fmt.Sprintf("the function that Start called has returned: %v", s.result)
	case last >= 0 && !s.terms[last].over:
		return fmt.Sprintf("it leads with token %d", s.terms[last].token)
	case s.waits != nil:
		return fmt.Sprintf("it campaigns, and waits because of: %v", s.waits)
	case last >= 0:
		return fmt.Sprintf("its last lease ended with: %v; does its worker return when its context ends?", s.terms[last].err)
	}
	return "it does not campaign; call Start with a function that calls Run"
}
