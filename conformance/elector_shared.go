package conformance

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

// A sharedBackend is one that many electors use. It records writes, and can put
// faults on batches.
type sharedBackend struct {
	backends.BatchSwapper
	ledger
	s *suite

	faults       []*batchFault
	acknowledged map[string]int           // by election: renewals
	renewals     map[string][]sentRenewal // by election
	largest      int                      // renewals that were answered together since the last fault
}

// A sentRenewal is a renewal that was sent.
type sentRenewal struct {
	attempt  backends.Attempt
	together int // how many went as one
	largest  int // how many had been answered together since the last fault
}

// A batchFault replaces the next batch that it is for.
type batchFault struct {
	isFor  func(names []string) bool
	answer batchAnswer
	hit    chan []string // gets the elections of the batch
}

// A batchAnswer may pass a batch on, and returns any answer.
type batchAnswer func(ctx context.Context, renewals []backends.Change, send sendBatch) []backends.Outcome

// A sendBatch passes a batch on.
type sendBatch func(context.Context) []backends.Outcome

// sharing returns a sharedBackend on a new handle, or nil if the backend is not a
// BatchSwapper.
func (s *suite) sharing() *sharedBackend {
	b := s.batching()
	if b == nil {
		return nil
	}
	return &sharedBackend{BatchSwapper: b, ledger: newLedger(), s: s, acknowledged: map[string]int{}, renewals: map[string][]sentRenewal{}}
}

// Load implements backends.Backend.
func (v *sharedBackend) Load(ctx context.Context, name string) (backends.Record, error) {
	r, err := v.BatchSwapper.Load(ctx, name)
	v.prove(name, r.Attempt, err)
	return r, err
}

// Swap implements backends.Backend.
func (v *sharedBackend) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	renews := !next.Vacant() && prev.Attempt.Nonce == next.Attempt.Nonce
	if renews {
		v.renews(name, next.Attempt, 1)
	} else {
		v.leaves(next.Attempt)
	}
	r, err := v.BatchSwapper.Swap(ctx, name, prev, next)
	if renews {
		v.acknowledge(name, next.Attempt, err)
	} else {
		v.prove(name, next.Attempt, err)
	}
	return r, err
}

// SwapMany implements backends.BatchSwapper.
func (v *sharedBackend) SwapMany(ctx context.Context, renewals []backends.Change) []backends.Outcome {
	names := make([]string, len(renewals))
	for i, r := range renewals {
		if slices.Contains(names, r.Name) || i == v.Describe().MaxSwaps {
			v.s.Errorf("a batch has at most MaxSwaps renewals, each of another election: one of %d renewals has %s twice, or as number %d", len(renewals), r.Name, i+1)
		}
		names[i] = r.Name
		v.renews(r.Name, r.Next.Attempt, len(renewals))
	}
	send := func(ctx context.Context) []backends.Outcome { return v.BatchSwapper.SwapMany(ctx, renewals) }
	var outcomes []backends.Outcome
	if fault := v.fault(names); fault != nil {
		fault.hit <- names
		outcomes = fault.answer(ctx, renewals, send)
	} else {
		outcomes = send(ctx)
		v.answers(outcomes)
	}
	for i, o := range outcomes {
		v.acknowledge(renewals[i].Name, renewals[i].Next.Attempt, o.Err)
	}
	return outcomes
}

// renews records that a renewal is sent.
func (v *sharedBackend) renews(name string, a backends.Attempt, together int) {
	v.leaves(a)
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.renewals[name] = append(v.renewals[name], sentRenewal{a, together, v.largest})
}

// answers records that renewals were answered together.
func (v *sharedBackend) answers(outcomes []backends.Outcome) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if slices.ContainsFunc(outcomes, func(o backends.Outcome) bool { return o.Err == nil }) {
		v.largest = max(v.largest, len(outcomes))
	}
}

// acknowledge records the answer to a renewal.
func (v *sharedBackend) acknowledge(name string, a backends.Attempt, err error) {
	v.prove(name, a, err)
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if err == nil {
		v.acknowledged[name]++
	}
}

// fault takes the first fault that is for a batch of these elections.
func (v *sharedBackend) fault(names []string) *batchFault {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	for i, f := range v.faults {
		if len(names) > 1 && f.isFor(names) {
			v.faults = slices.Delete(v.faults, i, i+1)
			v.largest = 1
			return f
		}
	}
	return nil
}

// after returns the renewal of an election that followed one in a batch.
func (v *sharedBackend) after(r backends.Change) (next sentRenewal, ok bool) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	all := v.renewals[r.Name]
	for i, sent := range all[:max(0, len(all)-1)] {
		if sent.attempt == r.Next.Attempt && sent.together > 1 {
			return all[i+1], true
		}
	}
	return sentRenewal{}, false
}

// answered returns how many renewals of an election were acknowledged.
func (v *sharedBackend) answered(name string) int {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.acknowledged[name]
}

// next puts a fault on the next batch with all these members. The channel gets the
// elections of that batch.
func (v *sharedBackend) next(f batchAnswer, members ...*member) <-chan []string {
	return v.nextFor(f, func(names []string) bool { return len(of(members, names)) == len(members) })
}

// nextOf is next for a batch with no other members.
func (v *sharedBackend) nextOf(f batchAnswer, members ...*member) <-chan []string {
	return v.nextFor(f, func(names []string) bool { return len(of(members, names)) == len(names) })
}

func (v *sharedBackend) nextFor(f batchAnswer, isFor func([]string) bool) <-chan []string {
	fault := &batchFault{isFor, f, make(chan []string, 1)}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.faults = append(v.faults, fault)
	return fault.hit
}

// gate returns a channel and a function that closes it. The end of the case closes
// it too, before it closes the electors that exist now.
func (v *sharedBackend) gate() (<-chan struct{}, func()) {
	c := make(chan struct{})
	open := sync.OnceFunc(func() { close(c) })
	v.s.Cleanup(open)
	return c, open
}

// A member is a candidate on a sharedBackend that leads an election of its own.
type member struct {
	*candidate
	v     *sharedBackend
	lease atomic.Pointer[elector.Lease]
}

// join makes a member that leads. When it reports a renewal, its lease must count
// from before that was sent, and it must see no other election.
func (v *sharedBackend) join(suffix string, o elector.Options) *member {
	s := v.s
	s.Helper()
	el := s.election(suffix)
	c := el.candidate(o)
	r := &member{candidate: c, v: v}
	o.ID = "member" + suffix
	o.Trace = c.trace()
	renewed := o.Trace.Renewed
	o.Trace.Renewed = func(ctx context.Context, i elector.LeaseInfo) {
		if l := r.lease.Load(); l != nil {
			c.counted(l, func() time.Time { return v.latestOf(el.name) }, "a renewal counts from before its batch was sent")
		}
		renewed(ctx, i)
	}
	observed := o.Trace.Observed
	o.Trace.Observed = func(ctx context.Context, i elector.LeaderInfo) {
		if l := i.Leader; l.ID != "" && l.ID != o.ID && l.ID != usurper {
			s.Errorf("%s sees that %s leads its election: a renewal takes its own outcome and no other", o.ID, l.ID)
		}
		observed(ctx, i)
	}
	o.Trace.Request = func(_ context.Context, i elector.RequestInfo) {
		if i.Op == "swap" && i.Err != nil {
			c.events.add(event{what: "failed", err: i.Err})
		}
	}
	c.start(v, o)
	r.lease.Store(c.lead())
	return r
}

// usurper is the holder that overwrites records.
const usurper = "usurper"

// joinMany makes several members that lead.
func (v *sharedBackend) joinMany(n int, suffix string, o elector.Options) []*member {
	v.s.Helper()
	members := make([]*member, n)
	for i := range members {
		members[i] = v.join(suffix+"-"+string(rune('a'+i)), o)
	}
	return members
}

// patientLease returns options for leases that are renewed only by Proclaim, and
// whose requests may take long.
func (s *suite) patientLease() elector.Options {
	o := s.long()
	o.RequestTimeout = watchdog / 6
	return o
}

// renewed blocks until each of the leases was renewed n more times. It fails the
// case if one ends.
func (v *sharedBackend) renewed(n int, members ...*member) {
	v.s.Helper()
	from := lengths(members)
	const alone = "leases that share requests are lost one by one, and this one must not be lost: "
	for i, r := range members {
		v.s.must(r.lease.Load().Check(), "%s%s", alone, r.ID())
		left := n
		last := r.events.await(v.s, from[i], "leases that share requests are renewed", func(e event) bool {
			if e.what == "renewed" {
				left--
			}
			return left <= 0 || e.what == "ended" || v.s.Failed()
		})
		if v.s.Failed() {
			v.s.FailNow() // another failure may be why a renewal is never reported
		}
		if last.what == "ended" {
			v.s.Fatalf("%s%s: %v", alone, r.ID(), last.err)
		}
	}
}

// lengths returns how many events each of the members has reported.
func lengths(members []*member) []int {
	all := make([]int, len(members))
	for i, r := range members {
		all[i] = r.events.length()
	}
	return all
}

// of returns the members with these elections.
func of(members []*member, names []string) (some []*member) {
	for _, r := range members {
		if slices.Contains(names, r.el.name) {
			some = append(some, r)
		}
	}
	return some
}

// meet renews leases at the same time until several are in the batch of a fault
// that was set with next. It returns the elections of that batch, and a channel
// that gets the joined errors when all Proclaims have returned.
func (v *sharedBackend) meet(hit <-chan []string, members ...*member) ([]string, <-chan error) {
	s := v.s
	s.Helper()
	for {
		errs, ctx := make([]error, len(members)), s.context()
		var all sync.WaitGroup
		for i, r := range members {
			all.Go(func() { errs[i] = r.lease.Load().Proclaim(ctx, uniqueName("value")) })
		}
		done := make(chan error, 1)
		go func() { all.Wait(); done <- errors.Join(errs...) }()
		select {
		case names := <-hit:
			return names, done
		case err := <-done:
			s.must(err, "Proclaim")
		case <-ctx.Done():
			s.Fatalf("leases held through one backend are renewed together: this did not happen in time")
		}
		select {
		case names := <-hit:
			done <- nil
			return names, done
		default:
		}
	}
}

// unharmed fails the case unless all still have their first lease.
func (v *sharedBackend) unharmed(what string, members ...*member) {
	s := v.s
	s.Helper()
	for _, r := range members {
		l := r.lease.Load()
		s.must(l.Check(), "the lease of %s %s", r.ID(), what)
		record := r.el.record(v.BatchSwapper)
		if record.Holder != r.ID() || elector.Token(record.Token) != l.Token() || r.el.acquisitions() != 1 {
			s.Errorf("%s has token %d %s, after %d acquisitions, and the record is %v", r.ID(), l.Token(), what, r.el.acquisitions(), record)
		}
	}
}

// failures returns the errors of an elector's writes.
func (r *member) failures(from int) (errs []error) {
	r.events.mutex.Lock()
	defer r.events.mutex.Unlock()
	for _, e := range r.events.events[from:] {
		if e.what == "failed" {
			errs = append(errs, e.err)
		}
	}
	return errs
}
