package elector

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/store"
)

// A slowDesk answers after a while with what it is given.
type slowDesk struct {
	backends.Backend
	took time.Duration

	mutex sync.Mutex
	all   map[string]backends.Record
	asked int // names
}

func (d *slowDesk) put(name string, r backends.Record) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.all[name] = r
}

func (d *slowDesk) names() int {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.asked
}

func (d *slowDesk) Describe() backends.Description {
	return backends.Description{Store: "slow://", MaxLoads: 100}
}

func (d *slowDesk) Load(ctx context.Context, name string) (backends.Record, error) {
	o := d.LoadMany(ctx, []string{name})[0]
	return o.Record, o.Err
}

func (d *slowDesk) LoadMany(_ context.Context, names []string) []backends.Outcome {
	outcomes := make([]backends.Outcome, len(names))
	d.mutex.Lock()
	for i, name := range names {
		outcomes[i].Record = d.all[name]
	}
	d.asked += len(names)
	d.mutex.Unlock()
	time.Sleep(d.took)
	return outcomes
}

// TestReadsSent is about what is counted from when a request for many is sent.
func TestReadsSent(t *testing.T) {
	led := func(by string, token uint64) backends.Record {
		return backends.Record{Holder: by, Token: token, TTL: time.Hour, RenewEvery: time.Minute,
			Attempt: backends.Attempt{Nonce: by, Sequence: 1}, Version: backends.Version(by)}
	}
	for name, story := range map[string]func(t *testing.T, d *slowDesk, e *Elector, read func() <-chan *failure){
		// What is seen while a read waits for others was seen before it was sent:
		// if the read shows an older state, the record went back.
		"seen before": func(t *testing.T, d *slowDesk, e *Elector, read func() <-chan *failure) {
			d.put("a", led("older", 1))
			done := read()
			time.Sleep(time.Millisecond)
			e.view.Pushed(led("newer", 2), e.now())
			if f := <-done; f != nil || d.names() != 2 || e.view.Snapshot().Record.Holder != "older" {
				t.Errorf("a record that went back is seen by one read: %v, %d names were asked for, and it sees %v", f, d.names(), e.view.Snapshot().Record)
			}
		},
		// What is seen while it is on its way may be newer.
		"seen meanwhile": func(t *testing.T, d *slowDesk, e *Elector, read func() <-chan *failure) {
			d.put("a", led("older", 1))
			done := read()
			time.Sleep(3*time.Millisecond + d.took/2)
			d.put("a", led("newer", 2))
			e.view.Pushed(led("newer", 2), e.now())
			if f := <-done; f != nil || d.names() != 3 || e.view.Snapshot().Record.Holder != "newer" {
				t.Errorf("a read that may be late is made anew: %v, %d names were asked for, and it sees %v", f, d.names(), e.view.Snapshot().Record)
			}
		},
		// The wait for others is no part of the round trip, from which the time
		// follows that waiters leave each other.
		"round trip": func(t *testing.T, d *slowDesk, e *Elector, read func() <-chan *failure) {
			d.took = time.Millisecond
			d.put("a", led("holder", 1))
			for range 100 {
				if f := <-read(); f != nil {
					t.Fatal(f.err)
				}
			}
			if e.timing.roundTrip != d.took {
				t.Errorf("reads that took %v count as round trips of %v", d.took, e.timing.roundTrip)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &slowDesk{took: 10 * time.Millisecond, all: map[string]backends.Record{}}
				var both []*Elector
				for _, name := range []string{"a", "b"} {
					e, err := New(d, name, &Options{Logger: slog.New(slog.DiscardHandler)})
					if err != nil {
						t.Fatal(err)
					}
					both = append(both, e)
					defer e.reading().Leave()
				}
				story(t, d, both[0], func() <-chan *failure {
					done := make(chan *failure, 2)
					for _, e := range both {
						go func() {
							_, f := e.load(t.Context(), e.asks(loading, store.Seek).gathers(true))
							if e == both[0] {
								done <- f
							}
						}()
					}
					return done
				})
			})
		})
	}
}
