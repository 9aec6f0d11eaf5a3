package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/elector-go/elector/backends"
)

// late says, by the scheme of the URL, why a read may miss a write that was acknowledged a
// moment before, on a store whose own protocol allows that for a moment and on which it is
// harmless. Such a read is made again, and must then show the write: a replica or a cache is
// no excuse.
var late = map[string]string{"zookeeper": lateZooKeeper, "zookeepers": lateZooKeeper}

const lateZooKeeper = "ZooKeeper's leader may answer a read before it has applied a write that a follower has acknowledged. " +
	"Elections are safe all the same: a change that is based on such a read is refused"

// A patient is a store whose scratch election is read and written through two
// handles.
type patient struct {
	*doctor
	first, second backends.Backend
	late          string // why its reads may be late, or empty
	behind        bool   // a read was stale that may not be late, or stayed stale

	doing  string // the check under way
	record backends.Record
	before backends.Record // an earlier state of it
	states map[backends.Version]backends.Attempt

	reads, writes []time.Duration
}

func newPatient(d *doctor, first, second backends.Backend) *patient {
	scheme, _, _ := strings.Cut(d.URL, ":")
	return &patient{doctor: d, first: first, second: second, late: late[scheme], states: map[backends.Version]backends.Attempt{}}
}

// trips is how many round trips are measured, and fewTrips if the store limits the
// write rate.
const (
	trips    = 20
	fewTrips = 5
)

// examine returns the error that ended a check. All lines are reported at the end,
// because a check that met another doctor is made again.
func (p *patient) examine(ctx context.Context) (err error) {
	var lines []func()
	later := func(check, seen, fix string, err error) {
		lines = append(lines, func() { p.line(check, seen, fix, err) })
	}
	p.doing = "read"
	if p.record, err = p.load(ctx, p.first); err != nil {
		return err
	}
	p.older(p.record.Attempt)
	if p.ReadOnly {
		for range trips {
			if _, err := p.load(ctx, p.first); err != nil {
				return err
			}
		}
		p.line("read", "the election "+Election+" can be read", "", nil)
		p.line("write", "not tried: --read-only", "", nil)
		p.trips()
		p.watch(ctx, nil)
		return nil
	}
	if err := p.acquire(ctx); err != nil {
		return err
	}
	p.reads, p.writes = nil, nil // the first ones also open connections
	stale, err := p.renew(ctx)
	if err != nil {
		return errors.Join(err, p.vacate(ctx))
	}
	later("read", "the election "+Election+" can be read", "", nil)
	later("write", "the election "+Election+" can be written", "", nil)
	switch missed := fmt.Sprintf("%d of %d reads did not show the write that was acknowledged before", stale, len(p.writes)); {
	case p.behind:
		later("linearizable reads", missed, "read from the primary, through no cache or replica: with stale reads there can be two leaders", backends.ErrMisconfigured)
	case stale > 0:
		later("linearizable reads", missed+", and did when they were made again: "+p.late, "", nil)
	default:
		later("linearizable reads", fmt.Sprintf("each of %d reads showed the write that was acknowledged before, on another connection", len(p.writes)), "", nil)
	}
	accepted, err := p.swapStale(ctx)
	if err != nil {
		return errors.Join(err, p.vacate(ctx))
	}
	if accepted != "" {
		later("compare-and-swap", "the store accepted "+accepted, "use another store: this one can have two leaders", backends.ErrMisconfigured)
	} else {
		later("compare-and-swap", "writes that replace an older state are refused", "", nil)
	}
	for _, l := range lines {
		l()
	}
	p.trips()
	p.watch(ctx, p.vacate)
	return nil
}

func (p *patient) load(ctx context.Context, b backends.Backend) (backends.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	begun := time.Now()
	r, err := b.Load(ctx, Election)
	p.reads = append(p.reads, time.Since(begun))
	return r, err
}

// swap replaces the record.
func (p *patient) swap(ctx context.Context, next backends.Record) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	begun := time.Now()
	r, err := p.first.Swap(ctx, Election, p.record, next)
	p.writes = append(p.writes, time.Since(begun))
	switch {
	case errors.Is(err, backends.ErrConflict):
		return p.refused(ctx, next)
	case errors.Is(err, backends.ErrDeposed):
		if found := p.refused(ctx, next); errors.As(found, new(busy)) {
			return found
		}
		return err // its session ended
	case err != nil:
		return err
	}
	p.before, p.record = p.record, r
	p.older(r.Attempt)
	if was, repeated := p.states[r.Version]; repeated {
		return fault{"compare-and-swap", fmt.Sprintf("the store gave two states the version %q: of attempts %v and %v", r.Version, was, r.Attempt),
			"use another store, or no proxy before it: a compare-and-swap cannot tell these states apart, and there can be two leaders"}
	}
	p.states[r.Version] = r.Attempt
	pause(ctx, p.first.Describe().MinWriteInterval)
	return nil
}

// acquire takes the record over from any holder: nothing depends on it.
func (p *patient) acquire(ctx context.Context) error {
	p.doing = "write"
	host, _ := os.Hostname()
	next := backends.Record{
		Holder: fmt.Sprintf("doctor-%s-%d", host, os.Getpid()), Token: p.record.Token + 1, TTL: p.TTL, RenewEvery: p.TTL * 3 / 10,
		Attempt: backends.Attempt{Nonce: rand.Text(), Sequence: 1},
	}
	return p.swap(ctx, next)
}

// renew writes, and reads each write through the other handle. It returns how many
// reads did not show it.
func (p *patient) renew(ctx context.Context) (stale int, err error) {
	n := trips
	if p.first.Describe().MinWriteInterval > 0 {
		n = fewTrips
	}
	for range n {
		p.doing = "write"
		next := p.record
		next.Attempt.Sequence++
		if err := p.swap(ctx, next); err != nil {
			return stale, err
		}
		p.doing = "read"
		r, err := p.load(ctx, p.second)
		if err == nil && p.stale(r) {
			stale++
			r, err = p.again(ctx, p.second, r, p.stale)
			p.behind = p.behind || p.stale(r)
		}
		switch {
		case err != nil:
			return stale, err
		case r.Attempt != p.record.Attempt && !p.stale(r):
			return stale, p.differs(ctx, r)
		}
	}
	return stale, nil
}

// stale reports whether r is a state from before the record that was written last.
func (p *patient) stale(r backends.Record) bool {
	return r.Attempt != p.record.Attempt && (r.Attempt.Nonce == p.record.Attempt.Nonce || r.Token < p.record.Token)
}

// again reads until the record is not r's old state any more, on a store whose reads may be
// late, and returns the last record that it has read.
func (p *patient) again(ctx context.Context, b backends.Backend, r backends.Record, old func(backends.Record) bool) (backends.Record, error) {
	if p.late == "" || p.behind {
		return r, nil
	}
	for end := time.Now().Add(patience); old(r) && time.Now().Before(end); {
		pause(ctx, jitter())
		var err error
		if r, err = p.load(ctx, b); err != nil {
			return r, err
		}
	}
	return r, nil
}

// swapStale writes to older states, and returns what was accepted.
func (p *patient) swapStale(ctx context.Context) (accepted string, err error) {
	p.doing = "compare-and-swap"
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, prev := range []struct {
		record backends.Record
		what   string
	}{{p.before, "a write that replaces an older state"}, {backends.Record{}, "the creation of a record that exists"}} {
		next := p.record
		next.Attempt.Sequence++
		r, err := p.second.Swap(ctx, Election, prev.record, next)
		switch {
		case err == nil:
			p.record, accepted = r, prev.what
		case !errors.Is(err, backends.ErrConflict):
			return "", err
		}
	}
	return accepted, nil
}

// vacate leaves the election vacant. If another doctor has it now, that one does.
func (p *patient) vacate(ctx context.Context) error {
	next := p.record
	if next.Vacant() {
		return nil
	}
	next.Holder, next.Value = "", ""
	next.Attempt.Sequence++
	if err := p.swap(ctx, next); !errors.As(err, new(busy)) {
		return err
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func jitter() time.Duration { return 20*time.Millisecond + mathrand.N(80*time.Millisecond) }
