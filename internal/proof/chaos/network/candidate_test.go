package network

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fault"
	"github.com/elector-go/elector/internal/inject"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// A candidate is an Elector that tells what it does, on a handle of its own.
type candidate struct {
	*elector.Elector
	s        *scene
	hold     time.Duration // H
	every    time.Duration // between renewals
	link     *Proxy        // nil for one that goes to the store directly
	backend  backends.Backend
	hooks    *fault.Backend // runs code of the case before a request is sent
	recorder *history.Recorder
	log      lines

	acquiring atomic.Int64 // writes that would have made it leader

	mutex    sync.Mutex
	requests []request
}

// A request is one that was answered or given up.
type request struct {
	op   string
	at   time.Duration // on history.BootTime, when that was told
	took time.Duration
	err  error
}

// join makes a candidate that goes to the store directly.
func (s *scene) join(o elector.Options) *candidate {
	s.Helper()
	return s.joinOn(s.store.URL, nil, o)
}

// joinThrough makes a candidate with a proxy of its own before the store.
func (s *scene) joinThrough(o elector.Options) *candidate {
	s.Helper()
	return s.joinVia(s.store.URL, o)
}

// joinVia is joinThrough with a URL that says more, or less.
func (s *scene) joinVia(storeURL string, o elector.Options) *candidate {
	s.Helper()
	p, err := New(s.store.Address)
	s.must(err, "starting a proxy")
	s.Cleanup(func() { must(s, p.Close()) })
	through := strings.NewReplacer(s.store.Address, p.Address(), url.QueryEscape(s.store.Address), url.QueryEscape(p.Address())).Replace(storeURL)
	return s.joinOn(through, p, o)
}

func (s *scene) joinOn(storeURL string, link *Proxy, o elector.Options) *candidate {
	s.Helper()
	return s.joinWith(s.handle(storeURL), link, o)
}

// handle opens a handle that is closed with the test.
func (s *scene) handle(storeURL string) backends.Backend {
	s.Helper()
	b, err := backends.Open(s.context(), storeURL)
	s.must(err, "opening the store")
	s.Cleanup(func() { b.Close() })
	return hasten(b)
}

func (s *scene) joinWith(b backends.Backend, link *Proxy, o elector.Options) *candidate {
	s.Helper()
	c := &candidate{s: s, link: link, backend: b}
	s.mutex.Lock()
	o.ID = string(rune('A' + len(s.candidates)))
	s.candidates = append(s.candidates, c)
	s.mutex.Unlock()
	c.recorder = &history.Recorder{Election: s.election, Candidate: o.ID, Tell: s.events.Tell}
	o.Trace = c.recorder.Trace()
	tell := o.Trace.Request
	o.Trace.Request = func(ctx context.Context, i elector.RequestInfo) {
		c.mutex.Lock()
		c.requests = append(c.requests, request{i.Op, history.BootTime(), i.Duration, i.Err})
		c.mutex.Unlock()
		tell(ctx, i)
	}
	o.Logger = slog.New(slog.NewTextHandler(&c.log, nil))
	if s.mutant.backend != nil {
		b = s.mutant.backend(b)
	}
	var hooked backends.Backend
	c.hooks, hooked = fault.Wrap(b)
	c.hooks.Always(func(ctx context.Context, call fault.Call, send fault.Send) (backends.Record, error) {
		if call.Op == "swap" && call.Prev.Attempt.Nonce != call.Next.Attempt.Nonce {
			c.acquiring.Add(1)
		}
		return send(ctx)
	})
	machine := inject.Backend{Backend: hooked}
	if s.mutant.clock != nil {
		machine.Clock = s.mutant.clock(o.ID)
	}
	e, err := elector.New(machine, s.election, &o)
	s.must(err, "making a candidate")
	c.Elector = e
	c.hold, c.every = hold(o.TTL), o.RenewEvery
	if c.every == 0 {
		c.every = c.hold / 3
	}
	s.Cleanup(func() {
		c.hooks.Always(nil)
		if link != nil {
			link.Heal()
		}
		e.Close() // what it could not tell the store is no matter here
	})
	return c
}

// hasty is a backend on an emulator, which is near and allows any rate: with the
// service's limits the cases would take minutes.
type hasty struct{ backends.Backend }

func hasten(b backends.Backend) backends.Backend {
	if d := b.Describe(); d.MinWriteInterval > 0 || d.MinTTL > time.Second {
		return hasty{b} // none of these is a Watcher
	}
	return b
}

func (h hasty) Describe() backends.Description {
	d := h.Backend.Describe()
	d.MinTTL, d.MinWriteInterval = 0, 0
	return d
}

// answered returns when the last answer of the store, of those that were told
// before the given time, was told: the latest that what is known of the lease
// can have been sent.
func (c *candidate) answered(before time.Duration) (at time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, r := range c.requests {
		if r.err == nil && r.at <= before && (r.op == "load" || r.op == "swap") {
			at = r.at
		}
	}
	return at
}

// asked returns how many requests of a kind were answered or given up, and how
// long those were late that took longer than a near store needs.
func (c *candidate) asked(op string, since time.Duration) (n int, late time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, r := range c.requests {
		if r.at >= since && r.op == op {
			n++
			late += max(0, r.took-20*time.Millisecond)
		}
	}
	return n, late
}

// allowance is what an upper bound of a time is extended by: how long this
// process stood still, how long the store let this candidate wait, and the
// pauses that it makes after an answer that did not come.
func (c *candidate) allowance(since time.Duration) time.Duration {
	_, reads := c.asked("load", since)
	_, writes := c.asked("swap", since)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	pauses := time.Duration(0)
	for _, r := range c.requests {
		if r.at >= since && r.err != nil {
			pauses += c.every
		}
	}
	return stalls.since(since) + reads + writes + pauses
}

// lead campaigns, and works once it leads.
func (c *candidate) lead() *elector.Lease {
	c.s.Helper()
	l, err := c.Campaign(c.s.context())
	c.s.must(err, c.ID()+" campaigns")
	c.work(l)
	return l
}

// work looks at the lease until it is over.
func (c *candidate) work(l *elector.Lease) {
	c.recorder.Look(history.Acquired, l, 0)
	c.s.all.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for c.recorder.Look(history.Checked, l, 0) {
			<-tick.C
		}
	})
	c.s.all.Go(func() {
		<-l.Context().Done()
		c.recorder.Event(history.Event{Kind: history.Canceled, Token: l.Token()})
	})
}

// A campaign goes on in the background.
type campaign struct {
	c    *candidate
	done chan struct{} // closed when it has an outcome
	l    *elector.Lease
	err  error
}

// campaign starts to campaign.
func (c *candidate) campaign() *campaign {
	p := &campaign{c: c, done: make(chan struct{})}
	ctx := c.s.context()
	c.s.all.Go(func() {
		defer close(p.done)
		if p.l, p.err = c.Campaign(ctx); p.err == nil {
			c.work(p.l)
		}
	})
	return p
}

// won blocks until the campaign has won, and returns the lease and when it was
// told that it is valid.
func (p *campaign) won(rule string) (*elector.Lease, history.Event) {
	s := p.c.s
	s.Helper()
	within(s, p.done, rule)
	s.must(p.err, p.c.ID()+" campaigns: "+rule)
	return p.l, s.await(0, rule, func(e history.Event) bool {
		return e.Kind == history.Acquired && e.Candidate == p.c.ID() && e.Token == p.l.Token()
	})
}

// waits fails the case if the campaign is over.
func (p *campaign) waits(rule string) {
	p.c.s.Helper()
	select {
	case <-p.done:
		p.c.s.Errorf("%s does not wait (%v): %s", p.c.ID(), p.err, rule)
	default:
	}
}

// sees blocks until c has seen that the other one holds the record.
func (c *candidate) sees(other *candidate) {
	c.s.Helper()
	c.s.await(0, c.ID()+" sees that "+other.ID()+" leads", func(e history.Event) bool {
		return e.Kind == history.Waits && e.Candidate == c.ID() && e.Holder == other.ID()
	})
}

// tells blocks until the candidate tells an event of a kind, after the first so
// many events of all.
func (c *candidate) tells(from int, kind history.Kind, what string) history.Event {
	c.s.Helper()
	return c.s.await(from, what, func(e history.Event) bool { return e.Kind == kind && e.Candidate == c.ID() })
}

// renewals blocks until so many more renewals have succeeded, and returns the
// last.
func (c *candidate) renewals(n int) history.Event {
	c.s.Helper()
	return c.s.await(c.s.events.Position(), c.ID()+"'s lease is renewed", func(e history.Event) bool {
		if e.Kind == history.Renewed && e.Candidate == c.ID() {
			n--
		}
		return n <= 0
	})
}

// breaks breaks the candidate's network, and returns when that began and when
// it was done.
func (c *candidate) breaks(f Fault) (began, done time.Duration) {
	c.s.Helper()
	began = history.BootTime()
	c.s.must(c.link.Break(f), "breaking the network: "+string(f))
	done = history.BootTime()
	c.recorder.Event(history.Event{Kind: history.Fault, Before: began, Detail: string(f)})
	return began, done
}

func (c *candidate) heals() {
	c.s.Helper()
	before := history.BootTime()
	c.s.must(c.link.Heal(), "healing the network")
	c.recorder.Event(history.Event{Kind: history.Healed, Before: before})
}

// hit fails the case if the network held nothing back since the count, or no
// request failed since the time.
func (c *candidate) hit(before Count, since time.Duration) {
	c.s.Helper()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	failed := 0
	for _, r := range c.requests {
		if r.err != nil && r.at >= since {
			failed++
		}
	}
	if c.link.Count().Sum() == before.Sum() || failed == 0 {
		c.s.Errorf("the fault did not happen: %d requests of %s failed, and the proxy has held back %+v after %+v", failed, c.ID(), c.link.Count(), before)
	}
}

// lost fails the case if the lease is not lost.
func (c *candidate) lost(l *elector.Lease) {
	c.s.Helper()
	if err := l.Check(); !errors.Is(err, elector.ErrLost) {
		c.s.Errorf("Check of %s says %v, want ErrLost", c.ID(), err)
	}
	if cause := context.Cause(l.Context()); !errors.Is(cause, elector.ErrLost) {
		c.s.Errorf("the cause of %s's context is %v, want ErrLost", c.ID(), cause)
	}
}

// waited fails the case if a candidate led before C of a TTL had passed since a
// moment after which it saw what it had to wait for.
func (s *scene) waited(won history.Event, since, ttl time.Duration) {
	s.Helper()
	if d := won.At - since; d < challenge(ttl) {
		s.Errorf("%s leads after %v, before C = %v had passed (guarantee 3)", won.Candidate, d, challenge(ttl))
	}
}

// didNotWait fails the case if a candidate leads only because C had passed since a
// moment, and not because the store was told that the election is free.
func (s *scene) didNotWait(won history.Event, since, ttl time.Duration) {
	s.Helper()
	if d := won.Before - since; d >= challenge(ttl) {
		s.Errorf("%s leads after %v, not before C = %v had passed", won.Candidate, d, challenge(ttl))
	}
}

// record reads the record through a handle that nothing disturbs.
func (s *scene) record(b backends.Backend) backends.Record {
	s.Helper()
	r, err := b.Load(s.context(), s.election)
	s.must(err, "reading the record")
	return r
}

// lines keeps a log.
type lines struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (l *lines) Write(line []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(line)
}

func (l *lines) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}
