package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fault"
)

// An election is one election of a case, and its referee: at each acquisition, in
// every case, it checks guarantees 1 and 5, that no other candidate has a valid
// lease and that the token is greater than all before.
type election struct {
	s    *suite
	name string
	log  lines

	mutex      sync.Mutex
	candidates []*candidate
	history    []event // acquisitions
	used       map[elector.Token]bool
	highest    elector.Token
}

// election returns an election of the case. Further ones need a suffix.
func (s *suite) election(suffix string) *election {
	el := &election{s: s, name: s.name + suffix, used: map[elector.Token]bool{}}
	s.Cleanup(func() {
		const most = 5 // of a case with many elections; the latest come first
		if s.shown++; s.Failed() && s.shown <= most {
			s.Logf("election %s\nthe end of its history: %v\nthe end of its log:\n%s", el.name, el.history[max(0, len(el.history)-30):], el.log.String())
		}
	})
	return el
}

// A candidate is an Elector with faults between it and the store.
type candidate struct {
	*elector.Elector
	el     *election
	hold   time.Duration // H
	faults *fault.Backend
	writes *writes
	events *journal
}

// join makes a candidate on a new handle.
func (el *election) join(o elector.Options) *candidate { return el.joinOn(el.s.open(), o) }

// joinOn makes a candidate on a handle.
func (el *election) joinOn(b backends.Backend, o elector.Options) *candidate {
	el.s.Helper()
	c := el.candidate(o)
	el.mutex.Lock()
	if o.ID == "" {
		o.ID = fmt.Sprintf("candidate-%d", len(el.candidates)+1)
	}
	el.mutex.Unlock()
	o.Trace = c.trace()
	c.faults, b = fault.Wrap(b)
	c.writes = &writes{ledger: newLedger(), name: el.name}
	c.faults.Outer = c.writes.record
	c.start(b, o)
	return c
}

// candidate returns a candidate, which has to start.
func (el *election) candidate(o elector.Options) *candidate {
	return &candidate{el: el, hold: hold(o.TTL), events: &journal{more: make(chan struct{})}}
}

// start makes the Elector. At the end of the case the candidate's faults are
// removed and it is closed.
func (c *candidate) start(b backends.Backend, o elector.Options) {
	el, s := c.el, c.el.s
	s.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(&el.log, nil))
	}
	e, err := elector.New(b, el.name, &o)
	s.must(err, "elector.New")
	c.Elector = e
	s.Cleanup(func() {
		if c.faults != nil {
			c.faults.Always(nil)
		}
		// A slow machine may take longer than a short lease's ReleaseTimeout.
		if err := s.close(e); err != nil && !errors.Is(err, elector.ErrUnavailable) {
			s.Errorf("closing %s: %v", o.ID, err)
		}
	})
	el.mutex.Lock()
	defer el.mutex.Unlock()
	el.candidates = append(el.candidates, c)
}

// trace records what the Trace of the candidate reports.
func (c *candidate) trace() *elector.Trace {
	return &elector.Trace{
		Observed: func(_ context.Context, i elector.LeaderInfo) {
			c.events.add(event{what: "observed", token: i.Leader.Token, leader: i.Leader})
		},
		Acquired: func(_ context.Context, i elector.LeaseInfo) {
			c.el.won(c, i.Token)
			c.lease("acquired")(nil, i)
		},
		Waiting: func(_ context.Context, i elector.CampaignInfo) {
			what := "waits"
			if backends.Permanent(i.Err) {
				what = "refused"
			}
			c.events.add(event{what: what, err: i.Err})
		},
		Renewed:  c.lease("renewed"),
		Ended:    c.lease("ended"),
		Released: c.lease("released"),
	}
}

// lease records an event of a lease.
func (c *candidate) lease(what string) func(context.Context, elector.LeaseInfo) {
	return func(_ context.Context, i elector.LeaseInfo) {
		c.events.add(event{what: what, token: i.Token, err: i.Err})
	}
}

// won records an acquisition. A callback may be late, so a token is too low only if
// its lease is still valid.
func (el *election) won(c *candidate, token elector.Token) {
	el.mutex.Lock()
	defer el.mutex.Unlock()
	valid, err := c.Token()
	if el.used[token] || token < el.highest && err == nil && valid == token {
		el.s.Errorf("%s leads with token %d after another acquisition had token %d: each acquisition's token is strictly greater than any before (guarantee 5)", c.ID(), token, el.highest)
	}
	el.used[token], el.highest = true, max(el.highest, token)
	el.history = append(el.history, event{what: "acquired", token: token, leader: elector.Leader{ID: c.ID()}, at: time.Now()})
	el.oneValid()
}

// check looks for two leases that are valid at one instant.
func (el *election) check() {
	el.mutex.Lock()
	defer el.mutex.Unlock()
	el.oneValid()
}

// oneValid is check; the caller holds the mutex. A lease that has ended is never
// valid again, so one that is valid before and after another was found valid was
// valid at that instant.
func (el *election) oneValid() {
	for i, a := range el.candidates {
		before, err := a.Token()
		if err != nil {
			continue
		}
		for j, b := range el.candidates {
			if i == j {
				continue
			}
			other, err := b.Token()
			if err != nil {
				continue
			}
			if after, err := a.Token(); err == nil && after == before {
				el.s.Errorf("%s with token %d and %s with token %d lead at the same instant (guarantee 1)", a.ID(), before, b.ID(), other)
			}
		}
	}
}

// acquisitions returns the number of acquisitions.
func (el *election) acquisitions() int {
	el.mutex.Lock()
	defer el.mutex.Unlock()
	return len(el.history)
}

// record reads the record through a handle without faults.
func (el *election) record(b backends.Backend) backends.Record {
	el.s.Helper()
	r, err := b.Load(el.s.context(), el.name)
	el.s.must(err, "reading the record")
	return r
}

// context returns a context that ends when the case gives up.
func (s *suite) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), s.limit())
	s.Cleanup(cancel)
	return ctx
}

// hold is H and challenge is C, for the default clock drift.
func hold(ttl time.Duration) time.Duration      { return ttl - ttl/10 }
func challenge(ttl time.Duration) time.Duration { return ttl + ttl/10 }

// short returns options for leases that shall expire. A case must accept that they
// expire too early on a slow machine.
func (s *suite) short() elector.Options { return s.expiring(1) }

// expiring is short with a TTL that is so many times as long.
func (s *suite) expiring(times int) elector.Options {
	b := s.unclosed()
	ttl := time.Duration(times) * s.ttl(b)
	s.must(b.Close(), "closing a handle")
	return elector.Options{TTL: ttl, RenewEvery: ttl / 6, RequestTimeout: ttl / 6}
}

// brisk returns options for leases that are renewed often and outlive the
// watchdog: a slow machine does not end them, and no candidate takes over from a
// crashed leader unless the case means it.
func (s *suite) brisk() elector.Options {
	every := s.short().TTL / 4
	return elector.Options{TTL: 3 * watchdog / 2, RenewEvery: every, RequestTimeout: every}
}

// long returns options for leases that neither expire nor are renewed before the
// watchdog ends the case, with as much time for each request.
func (s *suite) long() elector.Options {
	return elector.Options{TTL: 6 * watchdog, RenewEvery: 2 * watchdog, RequestTimeout: 2 * watchdog}
}

// lead campaigns and returns the lease.
func (c *candidate) lead() *elector.Lease {
	c.el.s.Helper()
	l, err := c.Campaign(c.el.s.context())
	c.el.s.must(err, "%s campaigns", c.ID())
	return l
}

// A campaign is a Campaign in the background.
type campaign struct {
	c       *candidate
	done    chan struct{} // closed when it returns
	lease   *elector.Lease
	err     error
	started int // length of the journal then
}

// campaign starts to campaign.
func (c *candidate) campaign(ctx context.Context) *campaign {
	p := &campaign{c: c, done: make(chan struct{}), started: c.events.length()}
	go func() {
		defer close(p.done)
		p.lease, p.err = c.Campaign(ctx)
	}()
	return p
}

// challenge starts to campaign, and blocks until c has seen that another candidate
// leads.
func (c *candidate) challenge(leader *candidate) *campaign {
	c.el.s.Helper()
	p := c.campaign(c.el.s.context())
	c.sees(leader)
	return p
}

// won blocks until the campaign has won.
func (p *campaign) won(rule string) *elector.Lease {
	s := p.c.el.s
	s.Helper()
	wait(s, p.done, rule)
	s.must(p.err, "%s campaigns (%s)", p.c.ID(), rule)
	return p.lease
}

// at returns when the campaign won, or a little later.
func (p *campaign) at() time.Time {
	return p.c.await(p.started, "acquired", "a campaign that wins calls Acquired").at
}

// waits fails the case if the campaign has returned.
func (p *campaign) waits(rule string) {
	p.c.el.s.Helper()
	select {
	case <-p.done:
		p.c.el.s.Errorf("%s must wait, because %s: Campaign returned %v, %v", p.c.ID(), rule, p.lease, p.err)
	default:
	}
}

// sees blocks until c has seen that the other candidate holds the record.
func (c *candidate) sees(other *candidate) {
	c.el.s.Helper()
	c.events.await(c.el.s, 0, "a waiter sees who leads", func(e event) bool {
		return e.what == "observed" && e.leader.ID == other.ID()
	})
}

// leader reads who leads. On a slow machine a read may find no answer in time.
func (c *candidate) leader() elector.Leader {
	s := c.el.s
	s.Helper()
	ctx := s.context()
	for {
		l, err := c.Leader(ctx)
		if errors.Is(err, elector.ErrUnavailable) && ctx.Err() == nil {
			continue
		}
		s.must(err, "reading who leads")
		return l
	}
}

// crash makes all further requests hang until the caller gives up.
func (c *candidate) crash() { c.faults.Always(fault.Hang) }

// cutOff fails the case if a request gets through to the store. A slow machine
// may have ended a lease before any renewal met the fault.
func (c *candidate) cutOff() {
	s := c.el.s
	s.Helper()
	if _, err := c.Leader(s.context()); err == nil || c.faults.Hits() == 0 {
		s.Errorf("the fault did not happen: %d hits, a read answers %v", c.faults.Hits(), err)
	}
}

// hit fails the case if no request has met a fault.
func (c *candidate) hit() {
	c.el.s.Helper()
	if c.faults.Hits() == 0 || c.faults.Pending() != 0 {
		c.el.s.Errorf("the fault did not happen: %d hits, %d still to come", c.faults.Hits(), c.faults.Pending())
	}
}

// await blocks until an event of a kind after the first so many events.
func (c *candidate) await(from int, what, rule string) event {
	c.el.s.Helper()
	return c.events.await(c.el.s, from, rule, func(e event) bool { return e.what == what })
}

// renewals blocks until so many more renewals have succeeded.
func (c *candidate) renewals(n int) {
	c.el.s.Helper()
	c.events.await(c.el.s, c.events.length(), "the lease is renewed", func(e event) bool {
		if e.what == "renewed" {
			n--
		}
		return n <= 0
	})
}

// lapses blocks until the lease and its context have ended, and returns the error
// of Check. It fails the case if the lease is valid H or longer after the last
// write was sent that the candidate knows to be applied (guarantee 2).
func (c *candidate) lapses(l *elector.Lease, rule string) error {
	s := c.el.s
	s.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	limit := s.limit()
	end := time.Now().Add(limit)
	for {
		now := time.Now()
		if l.Check() != nil {
			break
		}
		if proven := c.writes.latest(); now.Sub(proven) >= c.hold {
			s.Fatalf("the lease is valid %v after its last write that was applied for certain was sent, and H is %v: %s", now.Sub(proven), c.hold, rule)
		}
		if now.After(end) {
			s.Fatalf("the lease is still valid after %v: %s", limit, rule)
		}
		<-tick.C
	}
	wait(s, l.Context().Done(), "the context ends with the lease")
	if l.Remaining() != 0 {
		s.Errorf("a lease that has ended has %v remaining", l.Remaining())
	}
	return l.Check()
}

// wrote fails the case unless the candidate has sent so many writes, besides bids.
func (c *candidate) wrote(want int, rule string) {
	c.el.s.Helper()
	if n := c.writes.count(); n != want {
		c.el.s.Errorf("%s: it wrote %d times", rule, n)
	}
}

// holds fails the case unless the record is that of the candidate's lease.
func (c *candidate) holds(l *elector.Lease, when string) {
	s := c.el.s
	s.Helper()
	if r := c.el.record(s.open()); r.Holder != c.ID() || elector.Token(r.Token) != l.Token() {
		s.Errorf("%s leads with token %d, and %s the record is %v", c.ID(), l.Token(), when, r)
	}
}

// grows fails the case unless the token of an acquisition is greater than an
// earlier one.
func (s *suite) grows(before, after elector.Token, when string) {
	s.Helper()
	if after <= before {
		s.Errorf("each acquisition's token is strictly greater than any before: %s it is %d, and was %d (guarantee 5)", when, after, before)
	}
}

// is fails the case if the error is not the one wanted.
func (s *suite) is(err, want error, doing string) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Errorf("%s: the error is %v, and must be %q", doing, err, want)
	}
}

// fails fails the case if there is no error.
func (s *suite) fails(err error, doing string) {
	s.Helper()
	if err == nil {
		s.Errorf("%s: there must be an error", doing)
	}
}

// An event is a report of a candidate's Trace.
type event struct {
	what   string // "observed", "acquired", "renewed", "ended", "released" or "failed"
	token  elector.Token
	leader elector.Leader
	err    error
	at     time.Time
}

func (e event) String() string {
	return fmt.Sprintf("%s %s %d %s", e.at.Format("05.000"), e.what, e.token, e.leader.ID)
}

// A journal keeps events, so that a case can wait for them.
type journal struct {
	mutex  sync.Mutex
	events []event
	more   chan struct{} // closed and replaced with each event
}

func (j *journal) add(e event) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	e.at = time.Now()
	j.events = append(j.events, e)
	close(j.more)
	j.more = make(chan struct{})
}

func (j *journal) length() int {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return len(j.events)
}

// count returns how many events of a kind there are.
func (j *journal) count(what string) int { return j.countFrom(0, what) }

// countFrom is count after the first so many events of all kinds.
func (j *journal) countFrom(from int, what string) int {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	n := 0
	for _, e := range j.events[from:] {
		if e.what == what {
			n++
		}
	}
	return n
}

// await blocks until an event after the first so many matches.
func (j *journal) await(s *suite, from int, rule string, match func(event) bool) event {
	s.Helper()
	for {
		j.mutex.Lock()
		events, more := slices.Clone(j.events[from:]), j.more
		j.mutex.Unlock()
		for _, e := range events {
			if match(e) {
				return e
			}
		}
		from += len(events)
		wait(s, more, rule)
	}
}

// lines keeps the end of a log.
type lines struct {
	mutex sync.Mutex
	last  [][]byte
}

func (l *lines) Write(line []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	const most = 60
	if len(l.last) == most {
		l.last = l.last[1:]
	}
	l.last = append(l.last, bytes.Clone(line))
	return len(line), nil
}

func (l *lines) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return string(bytes.Join(l.last, nil))
}
