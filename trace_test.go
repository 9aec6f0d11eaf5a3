package elector_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/internal/fault"
)

func TestTrace(t *testing.T) {
	t.Run("a lease", testTraceOfALease)
	t.Run("a cancelled campaign", testTraceOfACancelledCampaign)
	t.Run("a fence", testTraceOfAFence)
}

// What metrics need to know of a lease, on a store that takes a second for each
// write.
func testTraceOfALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var campaigns []elector.CampaignInfo
		var leases []elector.LeaseInfo
		keep := func(_ context.Context, l elector.LeaseInfo) { leases = append(leases, l) }
		s, _ := fault.Wrap(memory.NewStore().Handle())
		s.Always(fault.Slow(time.Second))
		e := join(t, s, elector.Options{TTL: 30 * time.Second, Trace: &elector.Trace{
			Campaigned: func(_ context.Context, c elector.CampaignInfo) { campaigns = append(campaigns, c) },
			Acquired:   keep, Renewed: keep, Ended: keep, Released: keep,
		}})
		l := win(t, e)
		pass(10 * time.Second) // 9 s until the renewal, 1 s for it
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		common := elector.LeaseInfo{Election: "bubble", Store: "memory://", Token: l.Token(), Validity: 27 * time.Second, Lease: l}
		acquired, renewed, ended, released := common, common, common, common
		acquired.Remaining = 26 * time.Second
		renewed.Remaining, renewed.Margin = 26*time.Second, 17*time.Second
		ended.Cause, ended.Err = "resigned", elector.ErrResigned
		released.Duration = time.Second
		want := []elector.LeaseInfo{acquired, renewed, ended, released}
		if len(leases) != len(want) {
			t.Fatalf("%d steps of the lease, want %d: %+v", len(leases), len(want), leases)
		}
		for i, got := range leases {
			if !errors.Is(got.Err, want[i].Err) {
				t.Errorf("step %d has the error %v, want %v", i, got.Err, want[i].Err)
			}
			got.Err, want[i].Err = nil, nil
			if got != want[i] {
				t.Errorf("step %d is %+v, want %+v", i, got, want[i])
			}
		}
		if want := (elector.CampaignInfo{Election: "bubble", Store: "memory://", Duration: time.Second}); len(campaigns) != 1 || campaigns[0] != want {
			t.Errorf("the campaigns were %+v, want %+v", campaigns, want)
		}
	})
}

// A campaign that is cancelled is over too.
func testTraceOfACancelledCampaign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.NewStore()
		win(t, join(t, s.Handle(), elector.Options{}))
		campaigned := make(chan elector.CampaignInfo, 1)
		e := join(t, s.Handle(), elector.Options{Trace: &elector.Trace{
			Campaigned: func(_ context.Context, c elector.CampaignInfo) { campaigned <- c },
		}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := e.Campaign(ctx)
		if c := wait(t, campaigned, "the campaign is over"); !errors.Is(err, elector.ErrHeld) || !errors.Is(c.Err, elector.ErrHeld) || c.Duration != time.Minute {
			t.Errorf("Campaigned with %v after %v; Campaign returned %v", c.Err, c.Duration, err)
		}
	})
}

// MultiTrace calls each callback of each Trace, in their order, and has none that
// they do not have.
func TestMultiTrace(t *testing.T) {
	var called []int
	full := func(n int) *elector.Trace {
		trace := new(elector.Trace)
		v := reflect.ValueOf(trace).Elem()
		for i := range v.NumField() {
			field := v.Field(i)
			field.Set(reflect.MakeFunc(field.Type(), func([]reflect.Value) []reflect.Value {
				called = append(called, n)
				return nil
			}))
		}
		return trace
	}
	both := reflect.ValueOf(elector.MultiTrace(full(1), nil, new(elector.Trace), full(2))).Elem()
	for i := range both.NumField() {
		field := both.Field(i)
		called = nil
		field.Call([]reflect.Value{reflect.ValueOf(t.Context()), reflect.Zero(field.Type().In(1))})
		if !slices.Equal(called, []int{1, 2}) {
			t.Errorf("%s calls %v", both.Type().Field(i).Name, called)
		}
	}
	if none := elector.MultiTrace(nil, new(elector.Trace)); !reflect.ValueOf(*none).IsZero() {
		t.Errorf("of empty Traces it is %+v", none)
	}
}

// A Fence reports what it refuses, and nothing else: no token that is none, and no
// error of its Keeper. The callback may use the Fence.
func testTraceOfAFence(t *testing.T) {
	var refused []elector.StaleError
	f := elector.Fence{Keeper: jealous{}}
	f.Trace = &elector.Trace{Refused: func(ctx context.Context, e *elector.StaleError) {
		refused = append(refused, *e)
		f.Admit(ctx, "ledger", e.Highest)
	}}
	for _, token := range []elector.Token{2, 1, 2, 0, 3} {
		f.Admit(t.Context(), "ledger", token)
	}
	if err := f.Admit(t.Context(), "another", 1); !errors.Is(err, elector.ErrStale) {
		t.Errorf("what the Keeper refuses: %v", err)
	}
	if want := []elector.StaleError{{Resource: "ledger", Token: 1, Highest: 2}}; !slices.Equal(refused, want) {
		t.Errorf("refused are %+v, want %+v", refused, want)
	}
}

// A jealous Keeper refuses a resource for a reason of its own.
type jealous struct{}

func (jealous) Raise(_ context.Context, resource string, token elector.Token) (elector.Token, error) {
	if resource == "another" {
		return 0, elector.ErrStale
	}
	return token, nil
}

// Each way in which a lease can end, and the word for it in Trace and in the log.
func TestCause(t *testing.T) {
	var sick atomic.Bool
	for _, c := range []struct {
		name, want string
		end        func(t *testing.T, s *stage)
	}{
		{"resigned", "resigned", func(t *testing.T, s *stage) { s.stop() }},
		{"unhealthy", "unhealthy", func(_ *testing.T, s *stage) { sick.Store(true) }},
		{"unhealthy, and then told to stop", "unhealthy", func(t *testing.T, s *stage) {
			sick.Store(true)
			pass(10 * time.Second)
			s.stop()
			synctest.Wait()
		}},
		{"unhealthy, and the worker does not return", "lost", func(t *testing.T, s *stage) {
			sick.Store(true)
			pass(time.Hour)
		}},
		{"lost", "lost", func(t *testing.T, s *stage) {
			s.fault.Always(fault.Fails(backends.ErrUnavailable))
			pass(time.Minute)
			s.plain()
		}},
		{"deposed", "deposed", func(t *testing.T, s *stage) { s.store.Depose("bubble") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			sick.Store(false)
			logger, told := logged()
			causes := make(chan string, 9)
			onStage(t, elector.Options{
				TTL: 30 * time.Second, Logger: logger,
				Healthy: func(context.Context) error {
					if sick.Load() {
						return errors.New("the disk is full")
					}
					return nil
				},
				Trace: &elector.Trace{Ended: func(_ context.Context, l elector.LeaseInfo) { causes <- l.Cause }},
			}, func(t *testing.T, s *stage) {
				s.run()
				c.end(t, s)
				pass(10 * time.Second)
				s.end()
				if cause := wait(t, causes, "the lease ends"); cause != c.want {
					t.Errorf("the cause is %q, want %q", cause, c.want)
				}
				synctest.Wait()
				lines := slices.DeleteFunc(slices.Clone(*told), func(line string) bool { return !strings.HasPrefix(line, "elector: leads no more ") })
				if want := " cause=" + c.want + " error="; len(lines) != 1 || !strings.Contains(lines[0], want) {
					t.Errorf("the log is %q, want one line with %q", lines, want)
				}
			})
		})
	}
}

// The Result of each request, from a store that answers in every way.
func TestResult(t *testing.T) {
	for _, c := range []struct {
		name, op, want string
		fault          fault.Fault
	}{
		{"a write", "swap", "ok", nil},
		{"a conflict", "swap", "conflict", fault.Fails(backends.ErrConflict)},
		{"a conflict in doubt", "swap", "error", fault.Fails(errors.Join(backends.ErrConflict, backends.ErrUnavailable))},
		{"not available", "swap", "error", fault.Fails(backends.ErrUnavailable)},
		{"no answer", "load", "error", fault.Hang},
		{"given up by the caller", "load", "cancelled", fault.Hang},
	} {
		t.Run(c.name, func(t *testing.T) {
			var results []string
			onStage(t, elector.Options{Trace: &elector.Trace{Request: func(_ context.Context, r elector.RequestInfo) {
				if r.Op == c.op {
					results = append(results, r.Result)
				}
			}}}, func(t *testing.T, s *stage) {
				s.fault.Next(c.op, c.fault)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				if c.want == "cancelled" {
					ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
				}
				defer cancel()
				s.e.TryCampaign(ctx)
				if len(results) == 0 || results[0] != c.want {
					t.Errorf("the results are %q, the first should be %q", results, c.want)
				}
			})
		})
	}
}
