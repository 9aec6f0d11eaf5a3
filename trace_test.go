package elector_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

// A tardy backend takes a time of its own for each write.
type tardy struct {
	backends.Backend
	took time.Duration
}

func (s tardy) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	time.Sleep(s.took)
	return s.Backend.Swap(ctx, name, prev, next)
}

// What metrics need to know of a lease, on a store that takes a second for each
// write.
func TestTraceOfALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var campaigns []elector.CampaignInfo
		var leases []elector.LeaseInfo
		keep := func(_ context.Context, l elector.LeaseInfo) { leases = append(leases, l) }
		e := join(t, tardy{memory.NewStore().Handle(), time.Second}, elector.Options{TTL: 30 * time.Second, Trace: &elector.Trace{
			Campaigned: func(_ context.Context, c elector.CampaignInfo) { campaigns = append(campaigns, c) },
			Acquired:   keep, Renewed: keep, Ended: keep, Released: keep,
		}})
		l := win(t, e)
		pass(10 * time.Second) // 9 s until the renewal, 1 s for it
		if err := l.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		common := elector.LeaseInfo{Election: "bubble", Store: "memory://", Token: l.Token(), Validity: 27 * time.Second, Lease: l}
		acquired, renewed, ended, released := common, common, common, common
		acquired.Remaining = 26 * time.Second
		renewed.Remaining, renewed.Margin = 26*time.Second, 17*time.Second
		ended.Err = elector.ErrResigned
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
func TestTraceOfACancelledCampaign(t *testing.T) {
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

// A Fence reports what it refuses, and nothing else. The callback may use the Fence.
func TestTraceOfAFence(t *testing.T) {
	var refused []elector.StaleError
	var f elector.Fence
	f.Trace = &elector.Trace{Refused: func(ctx context.Context, e *elector.StaleError) {
		refused = append(refused, *e)
		f.Admit(ctx, e.Resource, e.Highest)
	}}
	for _, token := range []elector.Token{2, 1, 2, 0, 3} {
		f.Admit(t.Context(), "ledger", token)
	}
	if want := []elector.StaleError{{Resource: "ledger", Token: 1, Highest: 2}}; !slices.Equal(refused, want) {
		t.Errorf("refused are %+v, want %+v", refused, want)
	}
}
