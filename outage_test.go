package elector

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

// An overtaken store has no answer to the first write, and another candidate overtakes the
// second one.
type overtaken struct {
	backends.Backend
	writes atomic.Int32
	other  func()
}

func (o *overtaken) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	switch o.writes.Add(1) {
	case 1:
		return backends.Record{}, backends.ErrUnavailable
	case 2:
		o.other()
	}
	return o.Backend.Swap(ctx, name, prev, next)
}

// An acquisition that fails and then finds another leader leaves no outage: the table is
// that of the process, and would keep the Elector and the first line of the next outage.
func TestOutageEnds(t *testing.T) {
	store := memory.NewStore()
	b, err := New(store.Handle(), "x", &Options{ID: "b"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	on := &overtaken{Backend: store.Handle(), other: func() {
		if _, err := b.TryCampaign(t.Context()); err != nil {
			t.Error(err)
		}
	}}
	a, err := New(on, "x", &Options{ID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a.o.Trace.Waiting = func(context.Context, CampaignInfo) {
		if on.writes.Load() == 2 { // it waits for b
			cancel()
		}
	}
	if _, err := a.Campaign(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	outages.Lock()
	defer outages.Unlock()
	for key, o := range outages.by {
		if o.failing[a] > 0 {
			t.Errorf("%q goes on failing: %+v", key.what, o)
		}
	}
}
