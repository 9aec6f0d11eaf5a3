package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/examples/internal/stage"
	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/partition"
)

// A probe reports to the demo what happens in a child, and lets the demo hold up
// the requests that count. A nil probe, the one outside the demo, does nothing.
type probe struct {
	id  string
	ttl time.Duration
	*stage.Reporter

	mutex  sync.Mutex
	leases map[*partition.Lease]bool // false once it was given up, until its Check has failed
	gate   chan struct{}             // requests wait until it is closed; nil while they need not
}

// These variables make a process a child of the demo: its name and its TTL.
const (
	idVariable  = "PARTITIONS_DEMO_ID"
	ttlVariable = "PARTITIONS_DEMO_TTL"
)

// What the demo writes to a child's standard input.
const (
	hold = "hold"
	let  = "let"
)

// newProbe returns nil unless the demo started this process.
func newProbe() *probe {
	id := os.Getenv(idVariable)
	if id == "" {
		return nil
	}
	ttl, err := time.ParseDuration(os.Getenv(ttlVariable))
	if err != nil {
		panic(err) // the demo has set it
	}
	p := &probe{id: id, ttl: ttl, Reporter: stage.NewReporter(os.Stdout), leases: map[*partition.Lease]bool{}}
	slog.SetDefault(slog.New(slog.DiscardHandler))
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			p.hear(in.Text())
		}
		os.Exit(1) // the demo is gone
	}()
	return p
}

func (p *probe) hear(command string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	switch {
	case command == hold && p.gate == nil:
		p.gate = make(chan struct{})
	case command == let && p.gate != nil:
		close(p.gate)
		p.gate = nil
	}
}

// options returns the defaults without a probe.
func (p *probe) options() elector.Options {
	if p == nil {
		return elector.Options{}
	}
	return elector.Options{ID: p.id, TTL: p.ttl, Trace: &elector.Trace{
		Renewed: func(context.Context, elector.LeaseInfo) { p.renewed() },
		Ended: func(_ context.Context, l elector.LeaseInfo) {
			if errors.Is(l.Err, elector.ErrLost) {
				p.Report(stage.Event{Kind: lost, Boot: clock.Shared(), Detail: l.Err.Error()})
			}
		},
	}}
}

// renewed reports what is left of each lease, after the seat was renewed. One that
// was given up is not used any more, but must not come back to life: while its
// Check succeeds it is reported as valid, for this instant.
func (p *probe) renewed() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for lease, used := range p.leases {
		e := look(renewed, lease)
		if !used {
			e.Left = 0
		}
		if !used && !e.Valid {
			delete(p.leases, lease)
			continue
		}
		p.Report(e)
	}
}

// owns reports that the worker was started.
func (p *probe) owns(lease *partition.Lease) {
	if p == nil {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.leases[lease] = true
	p.Report(look(owns, lease))
	context.AfterFunc(lease.Context(), func() {
		p.Report(stage.Event{Kind: told, Boot: clock.Shared(), Partition: lease.Partition(), Token: lease.Token(), Detail: context.Cause(lease.Context()).Error()})
	})
}

// givesUp reports that the worker returns.
func (p *probe) givesUp(lease *partition.Lease) {
	if p == nil {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.leases[lease] = false
	e := look(gaveUp, lease)
	e.Valid, e.Left = false, 0
	p.Report(e)
}

// answered reports the outcome of a request that counts.
func (p *probe) answered(lease *partition.Lease, item string, err error) {
	if p == nil {
		return
	}
	e := look(counted, lease)
	fmt.Sscan(item, &e.Number)
	if err != nil {
		e.Kind, e.Detail = failed, err.Error()
	}
	if errors.Is(err, elector.ErrStale) {
		e.Kind = refused
	}
	p.Report(e)
}

// look describes the lease as it is now.
func look(kind string, lease *partition.Lease) stage.Event {
	e := stage.Look(kind, lease)
	e.Partition = lease.Partition()
	return e
}

// transport carries out the requests of a lease.
func (p *probe) transport(lease *partition.Lease) http.RoundTripper {
	if p == nil {
		return connections
	}
	return gated{p, lease}
}

// A gated transport holds up the requests that count, after the check of the lease.
type gated struct {
	probe *probe
	lease *partition.Lease
}

func (g gated) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost {
		g.probe.pass(g.lease)
	}
	return connections.RoundTrip(r)
}

// pass waits while the gate is shut.
func (p *probe) pass(lease *partition.Lease) {
	p.mutex.Lock()
	gate := p.gate
	if gate != nil {
		p.Report(look(about, lease))
	}
	p.mutex.Unlock()
	if gate != nil {
		<-gate
	}
}
