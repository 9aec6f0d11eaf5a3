package demo

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/examples/internal/stage"
	"github.com/elector-go/elector/internal/clock"
)

// A Probe reports to the demo what happens in a child, and lets the demo hold up
// a write. A nil Probe, the one outside the demo, does nothing.
type Probe struct {
	id     string
	ttl    time.Duration
	permit chan struct{} // a value for each byte on standard input
	*stage.Reporter

	mutex sync.Mutex
	seen  bool
	lease *elector.Lease // the latest
}

// These variables make a process a child of the demo: its name and its TTL.
const (
	idVariable  = "SINGLETON_DEMO_ID"
	ttlVariable = "SINGLETON_DEMO_TTL"
)

// NewProbe returns nil unless the demo started this process.
func NewProbe() *Probe {
	id := os.Getenv(idVariable)
	if id == "" {
		return nil
	}
	ttl, err := time.ParseDuration(os.Getenv(ttlVariable))
	if err != nil {
		panic(err) // the demo has set it
	}
	p := &Probe{id: id, ttl: ttl, permit: make(chan struct{}), Reporter: stage.NewReporter(os.Stdout)}
	slog.SetDefault(slog.New(slog.DiscardHandler))
	go func() {
		in := bufio.NewReader(os.Stdin)
		for {
			if _, err := in.ReadByte(); err != nil {
				os.Exit(1) // the demo is gone
			}
			p.permit <- struct{}{}
		}
	}()
	return p
}

// Options returns nil without a Probe.
func (p *Probe) Options() *elector.Options {
	if p == nil {
		return nil
	}
	return &elector.Options{ID: p.id, TTL: p.ttl, Trace: &elector.Trace{
		Request: func(_ context.Context, r elector.RequestInfo) {
			p.Report(Event{Kind: asked, Boot: clock.Shared(), Detail: r.Op})
		},
		Observed: func(_ context.Context, i elector.LeaderInfo) {
			if l := i.Leader; l.ID != p.id && !l.Vacant() {
				p.sees(l)
			}
		},
		Renewed: func(_ context.Context, l elector.LeaseInfo) { p.renews(l.Token) },
		Ended: func(_ context.Context, l elector.LeaseInfo) {
			why := "resigned"
			if errors.Is(l.Err, elector.ErrLost) {
				why = lost
			}
			p.Report(Event{Kind: ended, Token: l.Token, Boot: clock.Shared(), Detail: why})
		},
	}}
}

// renews reports a renewal, with a look at the lease if its worker has begun.
func (p *Probe) renews(token elector.Token) {
	p.mutex.Lock()
	lease := p.lease
	p.mutex.Unlock()
	if lease == nil || lease.Token() != token {
		p.Report(Event{Kind: renewed, Token: token, Boot: clock.Shared()})
		return
	}
	p.Report(stage.Look(renewed, lease))
}

func (p *Probe) sees(l elector.Leader) {
	p.mutex.Lock()
	first := !p.seen
	p.seen = true
	p.mutex.Unlock()
	if first {
		p.Report(Event{Kind: waits, Token: l.Token, Boot: clock.Shared(), Detail: l.ID})
	}
}

// Opened reports that the store has answered, and that the campaign begins.
func (p *Probe) Opened() {
	if p != nil {
		p.Report(Event{Kind: opened, Boot: clock.Shared()})
	}
}

// Leads reports that the worker was started.
func (p *Probe) Leads(lease *elector.Lease) {
	if p == nil {
		return
	}
	p.mutex.Lock()
	p.lease = lease
	p.mutex.Unlock()
	p.Report(stage.Look(leads, lease))
}

// BeforeWrite reports that the write comes next, and waits for the demo to allow
// it, one byte on standard input for one write.
func (p *Probe) BeforeWrite(lease *elector.Lease, invoice int) {
	if p == nil {
		return
	}
	e := stage.Look(about, lease)
	e.Number = invoice
	p.Report(e)
	<-p.permit
}

// AfterWrite reports the outcome of the write.
func (p *Probe) AfterWrite(lease *elector.Lease, invoice int, err error) {
	if p == nil {
		return
	}
	e := stage.Look(wrote, lease)
	e.Number = invoice
	if err != nil {
		e.Kind, e.Detail = failed, err.Error()
	}
	if errors.Is(err, elector.ErrStale) {
		e.Kind = refused
	}
	p.Report(e)
}
