package elector_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/memory"
)

// traces returns a Trace for each callback alone, which calls f.
func traces(f func()) map[string]*elector.Trace {
	return map[string]*elector.Trace{
		"Campaigning": {Campaigning: func(context.Context, elector.CampaignInfo) { f() }},
		"Campaigned":  {Campaigned: func(context.Context, elector.CampaignInfo) { f() }},
		"Request":     {Request: func(context.Context, elector.RequestInfo) { f() }},
		"Observed":    {Observed: func(context.Context, elector.LeaderInfo) { f() }},
		"Acquired":    {Acquired: func(context.Context, elector.LeaseInfo) { f() }},
		"Renewed":     {Renewed: func(context.Context, elector.LeaseInfo) { f() }},
		"Ended":       {Ended: func(context.Context, elector.LeaseInfo) { f() }},
		"Released":    {Released: func(context.Context, elector.LeaseInfo) { f() }},
	}
}

// eachTrace runs a test for each callback of Trace, with a candidate that has
// it.
func eachTrace(t *testing.T, test func(t *testing.T, e *elector.Elector, callback func(f func()))) {
	for name := range traces(nil) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var called atomic.Pointer[func()]
				trace := traces(func() {
					if f := called.Load(); f != nil {
						(*f)()
					}
				})[name]
				e := join(t, memory.New(), elector.Options{ReleaseTimeout: time.Second, Trace: trace})
				test(t, e, func(f func()) { called.Store(&f) })
			})
		})
	}
}

// patience is how long Close may take: what Options say twice, and the
// "little more" of its documentation.
const patience = 2*time.Second + 15*time.Second

// A Trace callback that blocks for good does not keep Close.
func TestCloseWithBlockedTrace(t *testing.T) {
	eachTrace(t, func(t *testing.T, e *elector.Elector, callback func(func())) {
		blocked, release := make(chan struct{}, 1), make(chan struct{})
		defer close(release)
		callback(func() {
			select {
			case blocked <- struct{}{}:
			default:
			}
			<-release
		})
		go e.Campaign(t.Context())
		pass(time.Minute)
		start := time.Now()
		closed := begin(e.Close)
		wait(t, blocked, "the callback is called")
		if err := wait(t, closed, "Close returns although a callback blocks"); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > patience {
			t.Errorf("Close took %v", took)
		}
		if token, err := e.Token(); !errors.Is(err, elector.ErrNotLeader) {
			t.Errorf("after Close there is a lease with token %d: %v", token, err)
		}
	})
}

// A Trace callback that calls Close waits for itself, and so in vain, but not
// for good.
func TestCloseInTrace(t *testing.T) {
	eachTrace(t, func(t *testing.T, e *elector.Elector, callback func(func())) {
		var called atomic.Bool
		closed := make(chan time.Duration, 1)
		callback(func() {
			if called.CompareAndSwap(false, true) {
				start := time.Now()
				e.Close()
				closed <- time.Since(start)
			}
		})
		over := begin(func() error {
			l, err := e.Campaign(t.Context())
			if err == nil {
				<-time.After(time.Minute) // for renewals
				err = l.Release(t.Context())
			}
			return err
		})
		if took := wait(t, closed, "Close in a callback returns"); took > patience {
			t.Errorf("Close took %v", took)
		}
		wait(t, over, "the campaign and its lease end")
		if token, err := e.Token(); !errors.Is(err, elector.ErrNotLeader) {
			t.Errorf("after Close there is a lease with token %d: %v", token, err)
		}
	})
}

// A Trace callback that blocks when the lease begins holds nothing up: the process leads,
// renews and resigns.
func TestBlockedAcquired(t *testing.T) {
	for _, name := range []string{"Acquired", "Campaigned", "Request", "Renewed"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				called, release := make(chan struct{}, 1), make(chan struct{})
				defer close(release)
				e := join(t, memory.New(), elector.Options{Trace: traces(func() {
					select {
					case called <- struct{}{}:
					default:
					}
					<-release
				})[name]})
				start := time.Now()
				l := win(t, e)
				if took := time.Since(start); took > time.Second {
					t.Errorf("Campaign took %v", took)
				}
				pass(time.Hour)
				wait(t, called, "the callback is called")
				if err := l.Check(); err != nil {
					t.Error(err)
				}
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
