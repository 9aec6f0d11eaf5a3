package main

// suite is the package of the conformance suite.
const suite = "./conformance"

// mutants are the known ways to get it wrong, most of them seen in other
// libraries. The texts to change are short, so that they survive changes around
// them; one that is gone is an error.
var mutants = []mutant{
	// The holder's clock.
	{name: "H counted from the response of a renewal", breaks: "2", catch: "exp/from-send", edits: []edit{{
		"renew.go", `return l.adopt(r), false`, `a.sent[a.number] = write{clock.Mark(e.clock), false, l.value}
		return l.adopt(r), false`}}},
	{name: "H counted from the response of the acquisition", breaks: "2", catch: "pause/inflight", edits: []edit{{
		"lease.go", `start := won.start`, `start := clock.Mark(e.clock)`}}},
	{name: "no drift margin for the holder", breaks: "1", catch: "mx/two-valid", edits: []edit{{
		"options.go", `return o.TTL - time.Duration(float64(o.TTL)*o.ClockDrift)`, `return o.TTL`}}},
	{name: "valid at H", breaks: "2", catch: "exp/exact", edits: []edit{{
		"lease.go", `s.start) < l.hold {`, `s.start) <= l.hold {`}}},
	{name: "loss only by timer", breaks: "6", catch: "exp/no-timer", edits: []edit{
		{"lease.go", `s.start) < l.hold {`, `s.start) < 1<<62 {`},
		{"lease.go", `if l.valid() == nil {
			l.expireLater()`, `if l.Remaining() == 0 {
			l.move(lost, none, l.lostBecause(errors.New("the timer has fired")))
		} else {
			l.expireLater()`}}},
	{name: "late acknowledgement accepted after H", breaks: "2", catch: "exp/late-ack", edits: []edit{{
		"campaign.go", `case clock.Elapsed(e.clock, a.sent[r.Attempt.Sequence].start) >= e.o.hold():`, `case clock.Elapsed(e.clock, a.sent[r.Attempt.Sequence].start) < 0:`}}},
	{name: "a lost lease moves back", breaks: "2", catch: "ren/resurrect", edits: []edit{{
		"lease.go", `func (l *Lease) extend(start clock.Reading) error {`, `func (l *Lease) extend(start clock.Reading) error {
	if !l.status.Load().phase.over() {
		l.status.Store(&status{start: start})
	}`}, {"lease.go", `		l.replace(s, next)
	}
}`, `		return next.cause
	}
}`}}},
	{name: "renewal capped by the new deadline", breaks: "6", catch: "ren/slow-then-cut", edits: []edit{{
		"renew.go", `min(l.e.o.RequestTimeout, l.Remaining())`, `min(l.e.o.RequestTimeout, l.hold)`}}},
	{name: "a callback that blocks before the worker begins keeps the office", breaks: "6", catch: "Campaigned", pkg: ".", parent: "TestBlockedAcquired", edits: []edit{{
		"lease.go", `	e.traceCampaigned(base, nil)
	traced(e, e.o.Trace.Acquired, l.ctx, l.info(nil))
	close(told)
`, `	close(told)
	e.traceCampaigned(base, nil)
	traced(e, e.o.Trace.Acquired, l.ctx, l.info(nil))
`}}},
	{name: "a dead worker kept in office", breaks: "StallTimeout", catch: "ren/stall", edits: []edit{{
		"renew.go", `if l.stalled() {`, `if false {`}}},

	// The challenger's clock.
	{name: "challenger's clock started before the read", breaks: "3", catch: "mx/two-valid", edits: []edit{{
		"request.go", `if e.view.read(r, mark) {`, `fresh := r.Version != e.view.look().record.Version
		if e.view.read(r, mark) {
			if fresh {
				e.view.since = start
			}`}}},
	{name: "no drift margin for the challenger", breaks: "1", catch: "clk/drift", edits: []edit{{
		"options.go", `return ttl + time.Duration(float64(ttl)*o.ClockDrift)`, `return ttl`}}},
	{name: "challenger waits for twice the TTL", breaks: "tau", catch: "mx/takeover-bound", edits: []edit{{
		"options.go", `return ttl + time.Duration(float64(ttl)*o.ClockDrift)`, `return 2 * ttl`}}},
	{name: "vanished record taken as vacant at once", breaks: "3", catch: "mx/vanished", edits: []edit{{
		"view.go", `(!r.Exists() || r.Token < v.last.Token)`, `r.Exists() && r.Token < v.last.Token`}}},
	{name: "acquisition goes on after a winner came and went", breaks: "3", catch: "mx/vanished", edits: []edit{{
		"campaign.go", `if !e.view.mayRetry(prev, next) {`, `if false {`}}},
	{name: "acquisition believed after a winner came and went", breaks: "3", catch: "mx/vanished", edits: []edit{{
		"view.go", `return v.claim.state == trying && next.Token >= v.highest && v.held <= v.clock.Now().Mono`, `return v != nil`}}},
	{name: "late creation believed although a winner was seen", breaks: "3", catch: "while_it_is_on_its_way", pkg: ".", parent: "TestLateCreation", edits: []edit{{
		"view.go", `return v.claim.state == trying && next.Token >= v.highest`, `return next.Token >= v.highest`}}},
	{name: "late creation retaken although a winner was seen before it was given up", breaks: "3", catch: "before_it_was_given_up", pkg: ".", parent: "TestLateCreation", edits: []edit{{
		"view.go", `nonce == c.nonce && c.state == trying && !(c.creates && c.doubted)`, `nonce == c.nonce`}}},
	{name: "a creation in doubt retaken", breaks: "7", catch: "amb/late-creation-twice", edits: []edit{{
		"view.go", `c.state == trying && !(c.creates && c.doubted)`, `c.state == trying`}}},
	{name: "a lease that was created in doubt retaken", breaks: "7", catch: "created_in_doubt", pkg: ".", parent: "TestToldAfterLoss", edits: []edit{{
		"view.go", `c.state == trying && !(c.creates && c.doubted)`, `c.state == trying`}, {
		"release.go", `case on == leaseEnded, free:`, `case on == leaseEnded, free && false:`}}},
	{name: "a winner forgotten that a late answer shows", breaks: "3", catch: "a_late_answer", pkg: ".", parent: "TestCreationInDoubt", edits: []edit{{
		"view.go", `	if v.mayBeOlder(r) && v.count != mark {
		v.doubtCreation(r)`, `	if v.mayBeOlder(r) && v.count != mark {`}}},
	{name: "a creation in doubt adopted by the holder", breaks: "7", catch: "another_write_of_the_same", pkg: ".", parent: "TestCreationInDoubt", edits: []edit{{
		"lease.go", `	clear(own.sent)
`, ``}}},
	{name: "a state that was put back retaken", breaks: "7", catch: "put_back", pkg: ".", parent: "TestCreationInDoubt", edits: []edit{{
		"view.go", `(v.earlier(r) || restored(r, v.last))`, `v.earlier(r)`}}},
	{name: "a state that was put back taken for an extended one", breaks: "3", catch: "put_back,_with_fewer_extensions", pkg: ".", parent: "TestCreationInDoubt", edits: []edit{{
		"view.go", `if r.Extensions == s.Extensions || !r.Extensions.Names(s.Extensions) {`, `if r.Extensions == s.Extensions {`}}},
	{name: "a winner forgotten whose token was lower", breaks: "3", catch: "with_a_lower_token", pkg: ".", parent: "TestPushedRival", edits: []edit{{
		"view.go", `case !v.record.Exists() && r.Attempt.Nonce != v.last.Attempt.Nonce:`, `case false:`}, {
		"view.go", `if v.claim.creates && r.Exists() {`, `if false {`}}},
	{name: "a creation that was pushed and is gone does not count as vanished", breaks: "3", catch: "pushed_and_gone", pkg: ".", parent: "TestPushed", edits: []edit{{
		"view.go", `v.distrust(r.TTL)`, `v.distrust(0)`}}},
	{name: "late creation retaken although a winner was seen after it was given up", breaks: "3", catch: "after_it_was_given_up", pkg: ".", parent: "TestLateCreation", edits: []edit{{
		"view.go", `func (c *claim) contest() { c.state = contested }`, `func (c *claim) contest() {
	if c.state == trying {
		c.state = contested
	}
}`}, {"view.go", `c.state == trying && !(c.creates && c.doubted)`, `c.state == trying`}}},
	{name: "a vanished record forgotten by the next push", breaks: "3", catch: "mx/vanished", pkg: ".", parent: "TestPushed", edits: []edit{{
		"view.go", `	case !r.Exists():
		v.distrust(0)`, `	case !r.Exists():`}}},
	{name: "a vacancy written to unread, so that nobody gives way", breaks: "J", catch: "sim/release-writes", edits: []edit{{
		"campaign.go", `	if !inherits {`, `	if !inherits && !r.Exists() {`}}},
	{name: "a leader forgotten when the one before is shown late", breaks: "3", catch: "mx/vanished-late", pkg: ".", parent: "TestPushed", edits: []edit{{
		"view.go", `max(v.last.TTL, v.before, ttl)`, `max(v.last.TTL, ttl)`}}},
	{name: "lower token not held", breaks: "3", catch: "mx/rollback", edits: []edit{{
		"view.go", `(!r.Exists() || r.Token < v.last.Token)`, `!r.Exists()`}}},

	// The other clocks.
	{name: "wall clock ignored", breaks: "Clocks", catch: "clk/suspend", edits: []edit{{
		"internal/clock/clock.go", `return max(mono, wall)`, `return mono`}}},
	{name: "boot-time clock ignored", breaks: "Clocks", catch: "clk/suspend", edits: []edit{{
		"internal/clock/clock.go", `mono = max(mono, c.Boot()-start.Boot)`, `mono = max(mono, 0)`}}},
	{name: "wall clock alone", breaks: "Clocks", catch: "clk/wall-step", edits: []edit{{
		"internal/clock/clock.go", `return max(mono, wall)`, `return wall`}}},

	// Lost answers.
	{name: "acquisition believed without an answer", breaks: "7", catch: "amb/acquire", edits: []edit{{
		"campaign.go", `r, readBack := e.load(ctx, e.o.RequestTimeout, reading)`, `if f.kind != conflicting {
			next.Version = "guessed"
			return won(next)
		}
		r, readBack := e.load(ctx, e.o.RequestTimeout, reading)`}}},
	{name: "renewal believed without an answer", breaks: "2", catch: "amb/renew", edits: []edit{{
		"renew.go", `		return &failure{max(f.kind, readBack.kind)`, `		l.extend(a.sent[a.number].start)
		return &failure{max(f.kind, readBack.kind)`}}},
	{name: "conflict taken as a loss without reading back", breaks: "7", catch: "amb/conflict-is-mine", edits: []edit{{
		"renew.go", `	if f.kind == unmarked {`, `	if f.kind == conflicting {
		l.move(lost, none, l.lostBecause(f.err))
		return f, false
	}
	if f.kind == unmarked {`}}},
	{name: "renewal read back with a later t0", breaks: "7", catch: "amb/two-unresolved", edits: []edit{{
		"renew.go", `switch w := a.sent[r.Attempt.Sequence]; {`, `switch w := a.sent[a.number]; {`}}},
	{name: "acquisition read back with a later t0", breaks: "7", catch: "amb/two-unresolved", edits: []edit{{
		"lease.go", `won := own.sent[own.record.Attempt.Sequence]`, `won := own.sent[own.number]`}}},
	{name: "renewal on its way forgotten when it is not there yet", breaks: "7", catch: "is_adopted", pkg: ".", parent: "TestLateRenewal", edits: []edit{{
		"renew.go", `	case r.Version == a.record.Version:
		err = l.valid() // nothing was applied so far, and any write still can be
	case r.Attempt == a.record.Attempt:`, `	case false:`}}},
	{name: "only the last attempt recognised", breaks: "7", catch: "amb/two-unresolved", edits: []edit{{
		"renew.go", `	case !sent:`, `	case !sent || r.Attempt.Sequence != a.number:`}}},
	{name: "a store that does not compare", breaks: "8", catch: "amb/delayed-write", edits: []edit{{
		"backends/memory/memory.go", `if e.version != prev.Version {`, `if e.version == "" && prev.Version != "" {`}, {
		"backends/memory/memory.go", `case renews && e.present != present:`, `case renews && e.version == "":`}}},

	// What metrics are made of.
	{name: "a margin measured after the lease was extended", breaks: "Trace", catch: "a_lease", pkg: ".", parent: "TestTrace", edits: []edit{{
		"renew.go", `		margin := l.Remaining()
		if err = l.extend(w.start); err == nil {`, `		if err = l.extend(w.start); err == nil {
			margin := l.Remaining()`}}},
	{name: "a deposition reported as a resignation", breaks: "Trace", catch: "deposed", pkg: ".", parent: "TestCause", edits: []edit{{
		"errors.go", `case s.phase == deposed:`, `case false:`}}},
	{name: "a loss reported as a resignation", breaks: "Trace", catch: "lost", pkg: ".", parent: "TestCause", edits: []edit{{
		"errors.go", `case s.phase == lost:`, `case false:`}}},
	{name: "the last reason to stop reported, and not the first", breaks: "Trace", catch: "unhealthy,_and_then_told_to_stop", pkg: ".", parent: "TestCause", edits: []edit{{
		"errors.go", `case errors.Is(s.cause, ErrUnhealthy):`, `case s.why == unhealthy:`}}},
	{name: "a conflict beside another error reported as a conflict", breaks: "Trace", catch: "a_conflict_in_doubt", pkg: ".", parent: "TestResult", edits: []edit{{
		"errors.go", `case f.kind == conflicting:`, `case errors.Is(f.err, backends.ErrConflict):`}}},

	// Release and tokens.
	{name: "release before the local loss", breaks: "8", catch: "amb/release", edits: []edit{{
		"release.go", `l.move(resigned, why, l.resignedBecause(nil))`, `early := *l.own
		early.vacate()
		l.move(resigned, why, l.resignedBecause(nil))`}}},
	{name: "unconditional release", breaks: "8", catch: "amb/release", edits: []edit{{
		"release.go", `if a.differs(r) != nil || r.Vacant() || restored(r, a.record) {`, `if r.Vacant() {`}}},
	{name: "told while the worker still runs", breaks: "8", catch: "overrun", pkg: ".", parent: "TestToldAfterLoss", edits: []edit{{
		"release.go", `case on == leaseEnded && phase != resigned, on != leaseEnded`, `case on != leaseEnded`}}},
	{name: "told twice", breaks: "8", catch: "lost/run_true", pkg: ".", parent: "TestOpaqueErrors", edits: []edit{{
		"release.go", `on != leaseEnded && phase == resigned, !l`, `!l`}, {
		"release.go", `if r.state != from {`, `if r.state != from && r.state != told {`}, {
		"release.go", `if from == failed {`, `if from == failed || r.state == told {`}}},
	{name: "told after a panic", breaks: "8", catch: "panic", pkg: ".", parent: "TestToldAfterLoss", edits: []edit{{
		"run.go", `l.tell(workPanicked)`, `l.giveUp()`}}},
	{name: "never told of a loss", breaks: "8", catch: "overrun", pkg: ".", parent: "TestToldAfterLoss", edits: []edit{{
		"release.go", `case on == leaseEnded, free:`, `case on == leaseEnded, free && false:`}}},
	{name: "told of a loss though its creation was in doubt", breaks: "7", catch: "created_in_doubt", pkg: ".", parent: "TestToldAfterLoss", edits: []edit{{
		"release.go", `case on == leaseEnded, free:`, `case on == leaseEnded, free || true:`}}},
	{name: "a reason to stop forgotten", breaks: "Resign", catch: "resigned", pkg: ".", parent: "TestResignWhileDraining", edits: []edit{{
		"lease.go", `next.why = max(s.why, why)`, `next.why = max(s.why, why*reason(1-min(1, s.phase)))`}}},
	{name: "a user's error decides how a lease ends", breaks: "Errors", catch: "deposed/run_false", pkg: ".", parent: "TestOpaqueErrors", edits: []edit{{
		"campaign.go", `return struct{}{}, usersError{err}`, `return struct{}{}, err`}}},
	{name: "a conflict believed beside another error", breaks: "7", catch: "stands_alone", pkg: ".", parent: "TestKindOf", edits: []edit{{
		"errors.go", `if matches > 1 && !found.hopeless() {`, `if false {`}}},

	// The open record.
	{name: "ours without its holder", breaks: "rec/edited", catch: "holder_emptied", pkg: ".", parent: "TestEdited", edits: []edit{{
		"renew.go", `r.Holder != holder || `, ``}, {"renew.go", `		holder = ""
`, `		holder = holder + ""
`}}},
	{name: "ours without its TTL", breaks: "rec/edited", catch: "TTL_lowered", pkg: ".", parent: "TestEdited", edits: []edit{{
		"renew.go", `r.TTL != o.TTL || r.RenewEvery != o.RenewEvery || `, ``}}},
	{name: "a critical extension ignored by a challenger", breaks: "rec/critical", catch: "held", pkg: ".", parent: "TestCritical", edits: []edit{{
		"view.go", `	case v.record.Extensions.Critical(known...) != "":
		return forever`, `	case false:`}}},
	{name: "a critical extension forgotten when an older state is pushed", breaks: "rec/critical", catch: "pushed_late", pkg: ".", parent: "TestPushed", edits: []edit{{
		"view.go", ` || r.Attempt == v.record.Attempt && r.Version != v.record.Version`, ``}}},
	{name: "a critical extension of a vacant record ignored", breaks: "rec/critical", catch: "vacant", pkg: ".", parent: "TestCritical", edits: []edit{{
		"view.go", `	case v.record.Extensions.Critical(known...) != "":`, `	case v.record.Extensions.Critical(known...) != "" && !v.record.Vacant():`}}},
	{name: "a critical extension ignored by a holder", breaks: "rec/critical", catch: "a_critical_extension", pkg: ".", parent: "TestEdited", edits: []edit{{
		"renew.go", `case r.Extensions.Class('c') != a.record.Extensions.Class('c'):`, `case false:`}}},
	{name: "a kept extension dropped", breaks: "rec/kept", catch: "of_a_leader", pkg: ".", parent: "TestRequest", edits: []edit{{
		"campaign.go", `r.Extensions.Class('k')`, `r.Extensions.Class('x')`}}},
	{name: "an extension of the tenure passed on", breaks: "rec/tenure", catch: "of_a_leader", pkg: ".", parent: "TestRequest", edits: []edit{{
		"renew.go", `		r.Extensions = a.bequeathed()`, `		r.Extensions += ""`}}},
	{name: "a renewal drops what belongs to the tenure", breaks: "rec/tenure", catch: "of_a_leader", pkg: ".", parent: "TestRequest", edits: []edit{{
		"renew.go", `Value: value, Extensions: a.marked()}`, `Value: value, Extensions: a.record.Extensions.Class('k')}`}}},
	{name: "a requester writes an attempt", breaks: "rec/request", catch: "of_a_dead_leader", pkg: ".", parent: "TestRequest", edits: []edit{{
		"holder_test.go", `change(t, s.store, set(t, "t_request", time.Now().String()))`, `change(t, s.store, func(r *backends.Record) { r.Attempt.Sequence++ })`}}},
	{name: "C restarted by an extension", breaks: "rec/request", catch: "of_a_dead_leader", pkg: ".", parent: "TestRequest", edits: []edit{{
		"view.go", `if !v.any || !extended(r, v.record) {`, `if true {`}}},
	{name: "a request costs a renewal", breaks: "rec/request", catch: "of_a_leader", pkg: ".", parent: "TestRequest", edits: []edit{{
		"renew.go", `if overtaken && l`, `if overtaken && false && l`}}},
	{name: "a higher major schema taken for ours", breaks: "bad/newer", catch: "backend/bad/newer", pkg: suite, parent: "TestMemory", edits: []edit{{
		"backends/codec.go", `case n > Schema:`, `case n > Schema+1:`}}},

	{name: "token restarted after a release", breaks: "5", catch: "tok/clock", edits: []edit{{
		"view.go", `token = max(v.highest+1, v.record.Token+1, uint64(v.o.MinToken), 1)`, `token = max(v.highest+1, v.record.Token+1, uint64(v.o.MinToken), 1)
	if v.record.Vacant() {
		token = 1
	}`}}},

	// Handover: an heir, and requests to resign.
	{name: "everybody takes the heir's way", breaks: "heir", catch: "named_by_the_leader", pkg: ".", parent: "TestHeir", edits: []edit{{
		"heir.go", `return v.record, v.successor() == v.o.ID`, `return v.record, v.successor() != ""`}, {
		"heir.go", `h != "" && h != v.o.ID {`, `h != h {`}, {
		"view.go", `v.successor() == v.o.ID`, `v.successor() != ""`}}},
	{name: "an heir taken for evidence of a vacancy", breaks: "3", catch: "after_a_crash", pkg: ".", parent: "TestHeir", edits: []edit{{
		"view.go", `	case v.record.Vacant(), v.claim`, `	case v.record.Vacant(), heirOf(v.record).id != "", v.claim`}}},
	{name: "an heir used after a crash", breaks: "heir", catch: "after_a_crash", pkg: ".", parent: "TestHeir", edits: []edit{{
		"heir.go", `!v.record.Exists() || !v.record.Vacant()`, `!v.record.Exists()`}}},
	{name: "an heir that swaps on a record that does not exist", breaks: "heir", catch: "of_a_record_that_is_gone", pkg: ".", parent: "TestHeir", edits: []edit{{
		"heir.go", `!v.record.Exists() || !v.record.Vacant()`, `!v.last.Vacant()`}, {
		"heir.go", `heirOf(v.record).id`, `heirOf(v.last).id`}}},
	{name: "a dead heir waited for without end", breaks: "heir", catch: "dead,_pushed_true", pkg: ".", parent: "TestHeir", edits: []edit{{
		"heir.go", `since := v.since + headStart(v.record)`, `since := v.clock.Now().Mono + headStart(v.record)`}}},
	{name: "a dead heir waited for by those who never saw the leader", breaks: "heir", catch: "dead,_for_those_who_come_later", pkg: ".", parent: "TestHeir", edits: []edit{{
		"heir.go", `v.handed && h != ""`, `h != ""`}}},
	{name: "a dead heir waited for as long as the TTL", breaks: "heir", catch: "dead,_with_a_long_TTL", pkg: ".", parent: "TestHeir", edits: []edit{{
		"heir.go", `vacancy.TTL, longestHeadStart)`, `vacancy.TTL)`}}},
	{name: "a release forgets the heir", breaks: "heir", catch: "named_by_the_leader", pkg: ".", parent: "TestHeir", edits: []edit{{
		"resign.go", `if h.id != "" {`, `if false {`}}},
	{name: "a request ends a lease at once", breaks: "rec/request", catch: "drains", pkg: ".", parent: "TestRequestResign", edits: []edit{{
		"resign.go", `l.drain(requested, fmt.Errorf("%w: %q", ErrRequested, q.by))`, `l.move(resigned, requested, l.resignedBecause(fmt.Errorf("%w: %q", ErrRequested, q.by)))`}}},
	{name: "requests to resign that hang counted with renewals", breaks: "rec/request", catch: "that_hang", pkg: ".", parent: "TestRequestStorm", edits: []edit{{
		"resign.go", `e.o.RequestTimeout, asking,`, `e.o.RequestTimeout, writing,`}}},
	{name: "a lease that drains ended by another campaign", breaks: "rec/request", catch: "Campaign,_again", pkg: ".", parent: "TestRequestResign", edits: []edit{{
		"campaign.go", `if l := e.current.Load(); e.busy ||`, `if l := e.current.Load(); l != nil && l.status.Load().phase == draining {
		l.giveUp()
	}
	if l := e.current.Load(); e.busy ||`}}},
	{name: "a request for another token obeyed", breaks: "rec/request", catch: "yesterday", pkg: ".", parent: "TestRequestResign", edits: []edit{{
		"resign.go", `uint64(token) != r.Token`, `token == 0`}}},
	{name: "a leader that was requested to resign comes back at once", breaks: "rec/request", catch: "stands_back", pkg: ".", parent: "TestRequestResign", edits: []edit{{
		"release.go", `e.view.standAside(l.own.nonce)`, `_ = phase`}}},
	{name: "a leader that was requested to resign stands back although another one has led", breaks: "rec/request", catch: "drains", pkg: ".", parent: "TestRequestResign", edits: []edit{{
		"view.go", `if r.Attempt.Nonce != v.aside {`, `if false {`}, {
		"heir.go", `v.clock.Now().Mono+v.o.challenge(v.o.TTL)`, `v.clock.Now().Mono+100*v.o.challenge(v.o.TTL)`}}},
	{name: "a request written over another", breaks: "rec/request", catch: "renewed", pkg: ".", parent: "TestRequestStorm", edits: []edit{{
		"resign.go", `case q.token == 0:`, `case q.nonce != p.nonce:`}}},
	{name: "Run returns after a request", breaks: "rec/request", catch: "drains", pkg: ".", parent: "TestRequestResign", edits: []edit{{
		"run.go", ` && s.why != requested`, ``}}},

	{name: "Run returns after a request when the worker resigns", breaks: "rec/request", catch: "the_worker_resigns", pkg: ".", parent: "TestRequestResign", edits: []edit{{
		"release.go", `why = requested //`, `why = stop //`}}},
	{name: "C restarted by each request", breaks: "rec/request", catch: "the_leader_is_gone,_and_a_request_comes_every_second", pkg: ".", parent: "TestRequestUnanswered", edits: []edit{{
		"view.go", `!v.any || !extended(r, v.record)`, `true`}}},
	{name: "a request without room beside the history", breaks: "rec/request", catch: "escapes", pkg: ".", parent: "TestRequestRoom", edits: []edit{{
		"resign.go", `err == nil || !has || name != requestName`, `err == nil || !has || true`}}},

	// The place in line.
	{name: "everybody takes the way of the one with the place", breaks: "heir", catch: "10_waiting", pkg: ".", parent: "TestLine", edits: []edit{{
		"heir.go", `return inPlace(v.place, v.record)`, `if inPlace(v.place, v.record) != "" {
		return v.o.ID
	}
	return ""`}}},
	{name: "a place taken for evidence of a vacancy", breaks: "3", catch: "after_a_crash", pkg: ".", parent: "TestLine", edits: []edit{{
		"view.go", `	case v.record.Vacant(), v.claim`, `	case v.record.Vacant(), inPlace(v.place, v.record) == v.o.ID, v.claim`}}},
	{name: "a place taken for evidence that its candidate may lead", breaks: "3", catch: "mx/two-valid", edits: []edit{{
		"view.go", `	case v.record.Vacant(), v.claim`, `	case v.record.Vacant(), inPlace(v.place, v.record) == v.o.ID, v.claim`}}},
	{name: "a place used after a crash", breaks: "heir", catch: "after_a_crash", pkg: ".", parent: "TestLine", edits: []edit{{
		"heir.go", `	if !v.record.Exists() || !v.record.Vacant() {
		return ""
	}
`, ``}}},
	{name: "the one with the place swaps on a record that does not exist", breaks: "heir", catch: "of_a_record_that_is_gone", pkg: ".", parent: "TestLine", edits: []edit{{
		"heir.go", `!v.record.Exists() || !v.record.Vacant()`, `!v.last.Vacant()`}, {
		"heir.go", `inPlace(v.place, v.record)`, `inPlace(v.place, v.last)`}}},
	{name: "a place that was seen by the watch before", breaks: "heir", catch: "two_take_turns", pkg: ".", parent: "TestLine", edits: []edit{{
		"watch.go", `w.placed("") //`, `//`}}},
	{name: "a campaign that is cancelled while it waits is not woken", breaks: "Campaign", catch: "the_campaign_ends", pkg: ".", parent: "TestPriority", edits: []edit{{
		"watch.go", `	context.AfterFunc(w.ctx, w.wake)`, ``}}},
	{name: "a place of another tenure", breaks: "heir", catch: "a_lie", pkg: ".", parent: "TestLine", edits: []edit{{
		"line.go", `uint64(token) != r.Token`, `token == 0`}}},
	{name: "all who wait write the place", breaks: "heir", catch: "10_waiting", pkg: ".", parent: "TestLine", edits: []edit{{
		"line.go", `	default:
		idle, q.tries = true, 0`, `	default:`}, {
		"line.go", `mine, well := inPlace(place, r) == e.o.ID,`, `mine, well := false,`}}},
	{name: "a place beats the heir that the record names", breaks: "heir", catch: "named_beats_the_place", pkg: ".", parent: "TestLine", edits: []edit{{
		"heir.go", `if id := heirOf(v.record).id; id != "" {`, `if id := heirOf(v.record).id; id != "" && inPlace(v.place, v.record) == "" {`}}},
	{name: "a place kept after the campaign", breaks: "heir", catch: "the_campaign_ends", pkg: ".", parent: "TestLine", edits: []edit{{
		"line.go", `if mine != "" && q.b != nil {`, `if false {`}}},
	{name: "a place that cannot be taken is tried for in each interval", breaks: "heir", catch: "no_write_works", pkg: ".", parent: "TestLine", edits: []edit{{
		"line.go", `r.RenewEvery<<max(min(q.tries, 10)-1, 0)`, `r.RenewEvery`}}},
	{name: "a candidate that is not healthy keeps its place in line", breaks: "heir", catch: "sick_later", pkg: ".", parent: "TestLine", edits: []edit{{
		"line.go", `idle, q.tries = e.o.Healthy == nil, 0`, `idle, q.tries = true, 0`}}},
	{name: "a candidate that stands back takes the place", breaks: "heir", catch: "stands_back", pkg: ".", parent: "TestLine", edits: []edit{{
		"priority.go", ` && v.aside == "" &&`, ` &&`}, {
		"line.go", `waits && v.held`, `r.Exists() && v.held`}, {
		"priority.go", `!r.Vacant() && r`, `r`}}},

	// Priorities.
	{name: "a lower priority replaces a higher one", breaks: "Priority", catch: "the_highest_leads_next", pkg: ".", parent: "TestPriority", edits: []edit{{
		"priority.go", `p.announced(there) && p.lowered != priority`, `priority > 0`}}},
	{name: "all candidates with a priority write", breaks: "Priority", catch: "one_write,_pushed_true", pkg: ".", parent: "TestPriority", edits: []edit{{
		"priority.go", `return h, priority > there.priority`, `return h, priority > 0 && there.id != h.id`}}},
	{name: "a priority announced without a pause", breaks: "Priority", catch: "restless", pkg: ".", parent: "TestPriority", edits: []edit{{
		"priority.go", `max(p.due, p.tried+r.RenewEvery)`, `p.due`}}},
	{name: "a place kept with priority 0", breaks: "Priority", catch: "withdrawn", pkg: ".", parent: "TestPriority", edits: []edit{{
		"priority.go", `p.announced(there) && p.lowered != priority`, `false`}}},
	{name: "an announcement in doubt forgotten", breaks: "Priority", catch: "the_campaign_ends", pkg: ".", parent: "TestPriority", edits: []edit{{
		"priority.go", ` && p.last != r.Attempt.Nonce {`, ` {`}}},
	{name: "a withdrawal that failed taken for done", breaks: "Priority", catch: "withdrawn,_and_the_write_fails", pkg: ".", parent: "TestPriority", edits: []edit{{
		"priority.go", `f == nil && lowers`, `f == nil || lowers`}}},
	{name: "an heir that is not healthy keeps its place", breaks: "Priority", catch: "sick_later", pkg: ".", parent: "TestPriority", edits: []edit{{
		"priority.go", `!write && (e.o.Healthy == nil || !p.announced(heirOf(r)))`, `!write`}}},
	{name: "two candidates with one ID overwrite each other without end", breaks: "Priority", catch: "twins", pkg: ".", parent: "TestPriority", edits: []edit{{
		"priority.go", ` && p.lowered != priority`, ``}}},
	{name: "a priority announced to what was pushed late", breaks: "Priority", catch: "pushed_late", pkg: ".", parent: "TestPriority", edits: []edit{{
		"priority.go", `	if _, f := e.load(ctx, e.o.RequestTimeout, reading); f != nil {
		return
	}
	r, waits`, `	r, waits`}}},
	{name: "an announced heir beats a named one", breaks: "heir", catch: "named_beats_announced", pkg: ".", parent: "TestPriority", edits: []edit{{
		"resign.go", `if a.heir != "" {`, `if a.heir != "" && h.id == "" {`}}},

	// The history.
	{name: "a history that grows", breaks: "rec/kept", catch: "bounds", pkg: ".", parent: "TestHistory", edits: []edit{{
		"history.go", `len(text) <= mostHistory`, `len(text) > 0`}}},
	{name: "a history without a bound on its terms", breaks: "rec/kept", catch: "bounds", pkg: ".", parent: "TestHistory", edits: []edit{{
		"history.go", `h[max(0, len(h)-mostTerms):]`, `h[0:]`}}},
	{name: "a term that expired stays open", breaks: "rec/kept", catch: "ends", pkg: ".", parent: "TestHistory", edits: []edit{{
		"history.go", `			last.why, last.end = "e", now`, `			last.why = ""`}}},
	{name: "a version without a history leaves no gap", breaks: "rec/kept", catch: "other_versions", pkg: ".", parent: "TestHistory", edits: []edit{{
		"history.go", `	if len(h) == 0 || h[len(h)-1].token < r.Token {`, `	if len(h) == 0 {`}}},
	{name: "a start that is not in the token is lost", breaks: "rec/kept", catch: "the_token_has_the_start", pkg: ".", parent: "TestHistory", edits: []edit{{
		"history.go", `if start != 0 && (t.start == 0 ||`, `if start != 0 && (t.start == 0 && `}}},
	{name: "each record keeps its first term", breaks: "rec/kept", catch: "the_token_has_the_start", pkg: ".", parent: "TestHistory", edits: []edit{{
		"history.go", `if start == "" && t.why == "" && i == len(h)-1 {`, `if i < 0 {`}}},

	// A removed mark of presence.
	{name: "a removed mark ignored", breaks: "PresenceWatcher", catch: "deposed_at_once,_told_later,_and_stands_back", pkg: ".", parent: "TestPresence", edits: []edit{{
		"presence.go", `if f.kind == unmarked {`, `if false {`}}},
	{name: "a renewal without the mark tried again", breaks: "PresenceWatcher", catch: "found_by_a_renewal", pkg: ".", parent: "TestPresence", edits: []edit{{
		"renew.go", `if f.kind == unmarked {`, `if false {`}}},
	{name: "deposed and back at once", breaks: "PresenceWatcher", catch: "deposed_at_once,_told_later,_and_stands_back", pkg: ".", parent: "TestPresence", edits: []edit{{
		"view.go", `if v.record.Attempt.Nonce == nonce {`, `if false {`}}},
	{name: "everybody who was replaced stands back", breaks: "PresenceWatcher", catch: "replaced_is_not_deposed", pkg: ".", parent: "TestPresence", edits: []edit{{
		"release.go", `if phase == deposed {`, `if phase >= lost {`}, {
		"view.go", `if v.record.Attempt.Nonce == nonce {`, `if true {`}}},
	{name: "writes as quickly as they come", breaks: "MinWriteInterval", catch: "apart", pkg: ".", parent: "TestMinWriteInterval", edits: []edit{{
		"timing.go", `if e.o.writeInterval == 0 {`, `if true {`}}},
	{name: "Run goes on after Resign and a loss", breaks: "Resign", catch: "deposed_while_it_resigns_in_Run", pkg: ".", parent: "TestPresence", edits: []edit{{
		"run.go", `if l.status.Load().why != stop {`, `if true {`}}},

	// Renewals that share a request.
	{name: "a shared renewal counted from the answer", breaks: "2", catch: "elector/batch/shared", pkg: suite, parent: "TestMemory", edits: []edit{{
		"renew.go", `return l.adopt(r), false`, `a.sent[a.number] = write{clock.Mark(e.clock), false, l.value}
		return l.adopt(r), false`}}},
	{name: "a renewal takes the outcome of its neighbour", breaks: "2", catch: "elector/batch/shared", pkg: suite, parent: "TestMemory", edits: []edit{{
		"share.go", `b.outcomes[i]`, `b.outcomes[(i+1)%len(b.outcomes)]`}, {
		"batch.go", `o.Record.Attempt != r.Next.Attempt {`, `o.Record.Attempt != o.Record.Attempt {`}}},
	{name: "a backend believed that tells of another renewal", breaks: "2", catch: "elector/batch/ambiguous", pkg: suite, parent: "TestMemory", edits: []edit{{
		"batch.go", `o.Record.Attempt != r.Next.Attempt {`, `o.Record.Attempt != o.Record.Attempt {`}}},
	{name: "a renewal joins a batch that has left", breaks: "Batcher", catch: "elector/batch/shared", pkg: suite, parent: "TestMemory", edits: []edit{{
		"share.go", `	s.mutex.Lock()
	s.leaves(b)
	s.flying++
	s.mutex.Unlock()
	b.outcomes = s.request(b)`, `	b.outcomes = s.request(b)
	s.mutex.Lock()
	s.leaves(b)
	s.flying++
	for len(b.outcomes) < len(b.requests) {
		b.outcomes = append(b.outcomes, backends.Outcome{Err: ErrUnavailable})
	}
	s.mutex.Unlock()`}}},
	{name: "a batch given up for all by the first", breaks: "Batcher", catch: "elector/batch/ambiguous", pkg: suite, parent: "TestMemory", edits: []edit{{
		"share.go", `b.waiting > 0 {`, `b.waiting < 0 {`}}},
	{name: "a batch refused for good taken as each one's refusal", breaks: "Batcher", catch: "elector/batch/ambiguous", pkg: suite, parent: "TestMemory", edits: []edit{{
		"batch.go", `k == untried || k.hopeless()`, `k == untried`}}},
	{name: "a renewal not tried taken for one that failed", breaks: "Batcher", catch: "elector/batch/ambiguous", pkg: suite, parent: "TestMemory", edits: []edit{{
		"batch.go", `k == untried || k.hopeless()`, `k.hopeless()`}}},
	{name: "an error of a whole batch shared again", breaks: "Batcher", catch: "elector/batch/ambiguous", pkg: suite, parent: "TestMemory", edits: []edit{{
		"batch.go", `		s.alone = s.penalty`, `		s.alone = 0`}}},
	{name: "alone only after an answer", breaks: "Batcher", catch: "large_requests", pkg: ".", parent: "TestHang", edits: []edit{{
		"renew.go", `	l.shares.outcome(f)`, `	if f == nil || !strings.Contains(f.err.Error(), "no answer") {
		l.shares.outcome(f)
	}`}, {"renew.go", `	"time"
`, `	"strings"
	"time"
`}, {"share.go", `if s.hanging >= mostUnanswered+s.members/s.most {`, `if false {`}}},
	{name: "one that was deposed takes its batch along", breaks: "Batcher", catch: "elector/batch/one-lost", pkg: suite, parent: "TestMemory", edits: []edit{{
		"share.go", `	return b.outcomes[i], len(b.requests)`, `	for _, other := range b.outcomes {
		if other.Err == backends.ErrDeposed {
			return other, len(b.requests)
		}
	}
	return b.outcomes[i], len(b.requests)`}}},
	{name: "Close does not wait for a batch", breaks: "10", catch: "elector/batch/closed", pkg: suite, parent: "TestMemory", edits: []edit{{
		"share.go", `	e.active.Add(1)
`, ``}, {
		"share.go", `		b.electors[i].active.Done()
`, ``}, {
		"share.go", `			e.active.Done()`, `			_ = e`}}},

	// Reads that share a request.
	{name: "a read joins those on their way", breaks: "Loader", catch: "apart", pkg: ".", parent: "TestReadsOnTheirWay", edits: []edit{{
		"share.go", `	s.mutex.Lock()
	s.leaves(b)
	s.flying++
	s.mutex.Unlock()
	b.outcomes = s.request(b)`, `	b.outcomes = s.request(b)
	s.mutex.Lock()
	s.leaves(b)
	s.flying++
	for len(b.outcomes) < len(b.requests) { // as if its election had been read with the others
		b.outcomes = append(b.outcomes, backends.Outcome{})
	}
	s.mutex.Unlock()`}}},
	{name: "what a read overlaps with counted when it is answered", breaks: "3", catch: "seen_meanwhile", pkg: ".", parent: "TestReadsSent", edits: []edit{{
		"share.go", `	if s.sent != nil {`, `	outcomes := s.send(b.ctx, b.requests)
	if s.sent != nil {`}, {
		"share.go", `	outcomes := s.send(b.ctx, b.requests)
	if len`, `	if len`}}},
	{name: "what a read overlaps with counted when it joins", breaks: "3", catch: "seen_before", pkg: ".", parent: "TestReadsSent", edits: []edit{{
		"reads.go", `	o, together := s.share(`, `	l.sent()
	l.sent = func() {}
	o, together := s.share(`}}},
	{name: "the wait for others counted as a round trip", breaks: "J", catch: "round_trip", pkg: ".", parent: "TestReadsSent", edits: []edit{{
		"request.go", `		var start time.Duration`, `		start := e.clock.Now().Mono`}, {
		"request.go", `mark, start = e.view.mark(), e.clock.Now().Mono }`, `mark = e.view.mark() }`}}},
	{name: "the read-back of an acquisition shares", breaks: "7", catch: "of_an_acquisition", pkg: ".", parent: "TestReadBacks", edits: []edit{{
		"campaign.go", `		r, readBack := e.load(ctx, e.o.RequestTimeout, reading)`, `		r, readBack := e.loadTogether(ctx, reading, loadsOf(e.backend), &e.shares, false)`}}},
	{name: "the read-back of a renewal shares", breaks: "7", catch: "of_a_renewal", pkg: ".", parent: "TestReadBacks", edits: []edit{{
		"renew.go", `	r, readBack := e.load(ctx, l.limit(), reading)`, `	r, readBack := e.loadTogether(ctx, reading, loadsOf(e.backend), &e.shares, false)`}}},
	{name: "the read-back of a release shares", breaks: "7", catch: "of_a_release", pkg: ".", parent: "TestReadBacks", edits: []edit{{
		"release.go", `		r, readBack := e.load(ctx, e.o.RequestTimeout, reading)`, `		r, readBack := e.loadTogether(ctx, reading, loadsOf(e.backend), &e.shares, false)`}}},
	{name: "the read-back of a cancelled campaign shares", breaks: "7", catch: "of_a_campaign_that_was_cancelled", pkg: ".", parent: "TestReadBacks", edits: []edit{{
		"campaign.go", `		r, f := e.load(ctx, e.o.RequestTimeout, reading)`, `		r, f := e.loadTogether(ctx, reading, loadsOf(e.backend), &e.shares, false)`}}},
	{name: "a request for many refused for good ends each campaign", breaks: "Loader", catch: "requests_for_many_are_denied", pkg: ".", parent: "TestReadsSpoilt", edits: []edit{{
		"reads.go", `	case together > 1 && kindOf(o.Err).hopeless():`, `	case false:`}}},
	{name: "requests for many tried for ever", breaks: "Loader", catch: "requests_for_many_are_hanging", pkg: ".", parent: "TestReadsSpoilt", edits: []edit{{
		"reads.go", `	shares.outcome(f)
	if f != nil`, `	if f != nil`}}},
	{name: "a row in doubt read with others", breaks: "7", catch: "in_doubt", pkg: "./backends/postgres", parent: "TestLoadMany", edits: []edit{{
		"backends/postgres/loads.go", `; doubtful[i] {`, `; false {`}}},
	{name: "an unprocessed key taken for absence", breaks: "Loader", catch: "some_are_unprocessed", pkg: "./backends/dynamodb", parent: "TestLoadMany", edits: []edit{{
		"backends/dynamodb/dynamodb.go", `found[name] = backends.Outcome{Err: errUnprocessed}`, `found[name] = backends.Outcome{}`}}},

	// The guards.
	{name: "a guard without the index that makes takeovers wait", breaks: "Guard", catch: "index", pkg: "./backends/postgres", parent: "TestGuard", edits: []edit{{
		"backends/postgres/guard.go", `case !b.guarded:`, `case false:`}}},
	{name: "a guard with a transaction that may stand idle for ever", breaks: "Guard", catch: "bound", pkg: "./backends/postgres", parent: "TestGuard", edits: []edit{{
		"backends/postgres/guard.go", `max(a.Remaining.Milliseconds(), 1)`, `a.Remaining.Milliseconds()`}}},

	{name: "a release sent again after its answer", breaks: "8", catch: "elector/res/run-waits", pkg: suite, parent: "TestMemory", edits: []edit{{
		"release.go", `a.record, a.next("", "")); f == nil {`, `a.record, a.next("", "")); f == nil {
				e.swap(ctx, e.o.RequestTimeout, writing, e.backend.Swap, a.record, a.next("", ""))`}}},

	// The portable layer.
	{name: "a call goes on after Close", breaks: "10", catch: "under_way", pkg: "./backends", parent: "TestHandleClosed", edits: []edit{{
		"backends/handle.go", `(*cancel)()`, `_ = cancel`}}},
	{name: "a request through a closed handle", breaks: "10", catch: "later", pkg: "./backends", parent: "TestHandleClosed", edits: []edit{{
		"backends/handle.go", `if h.closed {`, `if false {`}}},
	{name: "the connection of a call that Close ended stays", breaks: "10", catch: "of_a_call_that_ends_late", pkg: "./backends/dynamodb", parent: "TestConnectionsEnd", edits: []edit{{
		"backends/dynamodb/errors.go", `		b.idle()`, `		_ = ctx`}}},
	{name: "the connections of a handle on Kubernetes stay", breaks: "10", catch: "TestClose", pkg: "./backends/kubernetes", edits: []edit{{
		"backends/kubernetes/open.go", `		all.close()
`, ``}}},

	// Kubernetes.
	{name: "a load balancer's 404 taken for an election without a record", breaks: "1", catch: "TestWhoAnswers", pkg: "./backends/kubernetes", edits: []edit{{
		"backends/kubernetes/request.go", `s.Kind == "Status" && s.Code == code && s.Reason == reason && s.Details.Kind == "leases" && s.Details.Name == object`, `s.Code == code`}}},
	{name: "a read from the API server's cache", breaks: "1", catch: "TestRequests", pkg: "./backends/kubernetes", edits: []edit{{
		"backends/kubernetes/kubernetes.go", `http.MethodGet, b.path(object), nil`, `http.MethodGet, b.path(object)+"?resourceVersion=0", nil`}}},
	{name: "a watch that reports what is older than what was read", breaks: "Watcher", catch: "TestWatchBeginsWithWhatIsNew", pkg: "./backends/kubernetes", edits: []edit{{
		"backends/kubernetes/watch.go", `if newer > 0 {`, `if newer > -1 {`}}},
	{name: "a redirection sends a write again", breaks: "7", catch: "redirected", pkg: "./backends/kubernetes", parent: "TestNothingIsSentTwice", edits: []edit{{
		"backends/kubernetes/request.go", `	r.GetBody = nil
`, ``}, {
		"backends/kubernetes/kubernetes.go", `return http.ErrUseLastResponse }`, `return nil }`}}},
	{name: "a token that is read once", breaks: "Kubernetes", catch: "TestTokenIsRotated", pkg: "./backends/kubernetes", edits: []edit{{
		"backends/kubernetes/open.go", `	b.token = c.token
`, `	token, err := c.token()
	b.token = func() (string, error) { return token, err }
`}}},
	{name: "a refusal by a server that was not ready", breaks: "Kubernetes", catch: "TestErrors", pkg: "./backends/kubernetes", edits: []edit{{
		"backends/kubernetes/request.go", `	if s.starting = b.starting(ctx, through, s.Code); s.starting {
		return nil, s
	}
`, ``}}},
	{name: "a write without the uid that was read", breaks: "Kubernetes", catch: "TestRequests", pkg: "./backends/kubernetes", edits: []edit{{
		"backends/kubernetes/lease.go", `	l := s.lease
`, `	l := s.lease
	l.Metadata.UID = ""
`}}},
	{name: "names in the order of the store", breaks: "Lister", catch: "backend/list/names", pkg: suite, parent: "TestMemory", edits: []edit{{
		"backends/handle.go", `	slices.Sort(names)
`, ``}}},
	{name: "a name that was only looked up is listed", breaks: "Lister", catch: "backend/list/names", pkg: suite, parent: "TestMemory", edits: []edit{{
		"backends/memory/memory.go", `if e.content != nil {`, `if e != nil {`}}},

	// Package electorhttp.
	{name: "a forwarded request forwarded again", breaks: "forwarding", catch: "loop", pkg: "./electorhttp", parent: "TestForward", edits: []edit{{
		"electorhttp/forward.go", `if slices.Contains(r.Header.Values(forwardedHeader), o.e.Name()) {`, `if slices.Contains([]string(nil), o.e.Name()) {`}}},
	{name: "a process serves because the record names it", breaks: "forwarding", catch: "to_a_former_leader", pkg: "./electorhttp", parent: "TestForward", edits: []edit{{
		"electorhttp/forward.go", `if _, err := o.e.Token(); err == nil {`, `if o.leader.ID == o.e.ID() {`}}},
	{name: "forwarded to a leader that is known no longer", breaks: "forwarding", catch: "unknown_leader", pkg: "./electorhttp", parent: "TestForward", edits: []edit{{
		"electorhttp/forward.go", `	case err != nil:
		return nil, &refusal{http.StatusServiceUnavailable`, `	case err != nil && l.ID == "":
		return nil, &refusal{http.StatusServiceUnavailable`}, {
		"electorhttp/forward.go", `	o.leader, o.err, o.seen = l, err, o.seen || err == nil`, `	if o.err = err; err == nil {
		o.leader, o.seen = l, true
	}`}}},
	{name: "an answer older than the request", breaks: "forwarding", catch: "shares_reads", pkg: "./electorhttp", parent: "TestLeader", edits: []edit{{
		"electorhttp/leader.go", `if h.started.Load() == before {`, `if h.started.Load() == max(before, 1)-1 {`}}},

	// What guards in the store compare.
	{name: "a value before the attempt", breaks: "Stem", catch: "in_all_states_of_an_acquisition", pkg: "./backends", parent: "TestStem", edits: []edit{
		{"backends/codec.go", "`json:\"attempt\"`\n\tValue      string `json:\"value\"`", "`json:\"value\"`\n\tValue      string `json:\"attempt\"`"},
		{"backends/codec.go", `r.Attempt.String(), r.Value})`, `r.Value, r.Attempt.String()})`},
		{"backends/codec.go", `0","value":""}`, `0"}`}}},
	{name: "a stem that ends in the nonce", breaks: "Stem", catch: "in_no_other_state", pkg: "./backends", parent: "TestStem", edits: []edit{{
		"backends/codec.go", `0","value":""}`, `.0","value":""}`}}},
	{name: "a guard of etcd without a lower end", breaks: "Stem", catch: "acquired_anew,_sorted_before", pkg: "./backends/etcd", parent: "TestGuard", edits: []edit{{
		"backends/etcd/guard.go", `">", c.stem)`, `">", "")`}}},
	{name: "a guard of etcd without an upper end", breaks: "Stem", catch: "acquired_anew,_sorted_after", pkg: "./backends/etcd", parent: "TestGuard", edits: []edit{{
		"backends/etcd/guard.go", `c.stem+"\xff"`, `"\xff"`}}},
	{name: "a guard of Consul that an acquisition leaves", breaks: "Guard", catch: "acquired_anew", pkg: "./backends/consul", parent: "TestCommit", edits: []edit{{
		"backends/consul/guard.go", `operations := []Operation{{Verb: "delete-tree", Key: b.guards(name)}}`, `var operations []Operation`}}},
	{name: "a guard of Consul that a release leaves", breaks: "Guard", catch: "vacant", pkg: "./backends/consul", parent: "TestCommit", edits: []edit{{
		"backends/consul/consul.go", `return !next.Vacant() && !prev.Vacant() &&`, `return`}}},
	{name: "every refusal of Consul a conflict", breaks: "Errors", catch: "no_right_to_write", pkg: "./backends/consul", parent: "TestOnlyAStaleIndexIsAConflict", edits: []edit{{
		"backends/consul/errors.go", `ok && r.says(0, staleIndex)`, `ok && r != nil`}}},
	{name: "a proxy's 404 no record on Consul", breaks: "Errors", catch: "a_404_of_a_proxy", pkg: "./backends/consul", parent: "TestMissing", edits: []edit{{
		"backends/consul/request.go", `	index, err := a.index() // which`, `	index, err := a.index()
	if a.status == http.StatusNotFound {
		err = nil
	}
	// which`}}},
	{name: "a write of Consul that follows redirects", breaks: "Swap", catch: "307", pkg: "./backends/consul", parent: "TestNothingIsSentTwice", edits: []edit{{
		"backends/consul/consul.go", `func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }`, `nil`}}},
	{name: "a read in Consul's default mode", breaks: "Load", catch: "Load", pkg: "./backends/consul", parent: "TestConsistent", edits: []edit{{
		"backends/consul/request.go", `query.Set(consistent, "")`, ``}}},
	{name: "extensions left out of the comparison on MySQL", breaks: "Swap", catch: "TestWholeRow", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/mysql.go", `strings.Join(fields, " = ? and "))`, `strings.Join(fields[:6], " = ? and "))`}, {
		"backends/mysql/mysql.go", `row(was)...`, `row(was)[:6]...`}}},
	{name: "every failed insert on MySQL a conflict", breaks: "Errors", catch: "TestNothingIsSentTwice", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/mysql.go", `if number(err) == duplicate {`, `if number(err) != 0 {`}}},
	{name: "a read from a replica of MySQL", breaks: "Load", catch: "TestReadOfReplica", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/mysql.go", `case on(readOnly) || on(engineReadOnly):`, `case on(readOnly) && on(engineReadOnly):`}}},
	{name: "a cluster of Galera for MySQL", breaks: "Open", catch: "a_node_of_Galera", parent: "TestSettle", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/connect.go", `case on(is["wsrep_on"]) && !b.options.OneNode:`, `case on(is["wsrep_on"]) && b.options.OneNode:`}}},
	{name: "a configuration for MySQL without autocommit", breaks: "Open", catch: "TestNewRefuses", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/open.go", `"autocommit") && !on(`, `"autocommit") && value == "" && !on(`}}},
	{name: "a write that no replica of MySQL has acknowledged", breaks: "Swap", catch: "TestSemiSync", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/connect.go", `case !on(status):`, `case status == "":`}}},
	{name: "a write to MySQL repeated after it was sent", breaks: "Swap", catch: "TestSemiSync", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/connect.go", `replica has the write: %v"`, `replica has the write: %w"`}}},
	{name: "a guard of MySQL without a lock", breaks: "Guard", catch: "TestGuard", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/guard.go", ` lock in share mode)"`, `)"`}}},
	{name: "a guard of MySQL that a release leaves", breaks: "Guard", catch: "TestTerm", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/mysql.go", `	if r.Vacant() {
		return fmt`, `	if false {
		return fmt`}}},

	// The door of a resource.
	{name: "a higher token enters before older writes have left", breaks: "Fence", catch: "older_writes_leave_first", pkg: ".", parent: "TestFence", edits: []edit{{
		"fencing.go", `case r.older > 0 || r.raising:`, `case r.raising:`}}},
	{name: "a token not remembered while its write waits", breaks: "Fence", catch: "a_token_counts_while_its_write_waits", pkg: ".", parent: "TestFence", edits: []edit{{
		"fencing.go", `case token < r.highest:`, `case token < r.highest && r.older == 0:`}, {
		"fencing.go", `case r.older > 0 || r.raising:`, `case token == r.highest && (r.older > 0 || r.raising):`}}},
	{name: "a token forgotten whose write gave up", breaks: "Fence", catch: "a_token_counts_although_its_write_fails", pkg: ".", parent: "TestFence", edits: []edit{{
		"fencing.go", `		case err != nil:
			return nil, nil, err`, `		case err != nil:
			r.highest = 0
			return nil, nil, err`}}},
	{name: "equal tokens one after the other", breaks: "Fence", catch: "equal_tokens_enter_together", pkg: ".", parent: "TestFence", edits: []edit{{
		"fencing.go", `case r.older > 0 || r.raising:`, `case len(r.inside) > 0 || r.older > 0 || r.raising:`}}},
	{name: "equal tokens refused", breaks: "Fence", catch: "equal_tokens_enter_together", pkg: ".", parent: "TestFence", edits: []edit{{
		"fencing.go", `case token < r.highest:`, `case token < r.highest || len(r.inside) > 0:`}}},
	{name: "a write that panics never leaves", breaks: "Fence", catch: "a_write_panics", pkg: ".", parent: "TestFence", edits: []edit{{
		"fencing.go", `	defer leave()
	return write(ctx)`, `	err = write(ctx)
	leave()
	return err`}}},
	{name: "a Keeper that raises after the write", breaks: "Keeper", catch: "kept_before_the_write", pkg: ".", parent: "TestFence", edits: []edit{{
		"fencing.go", `case f.Keeper != nil && r.kept < token:`, `case false:`}, {
		"fencing.go", `return inside, func() { f.leave(r, v) }, nil`, `return inside, func() {
				if f.Keeper != nil {
					f.Keeper.Raise(ctx, name, token)
				}
				f.leave(r, v)
			}, nil`}}},
	{name: "a write while its token is being kept", breaks: "Keeper", catch: "the_Keeper_hangs_with_an_older_token", pkg: ".", parent: "TestFence", edits: []edit{{
		"fencing.go", `case r.older > 0 || r.raising:`, `case r.older > 0:`}, {
		"fencing.go", `f.Keeper != nil && r.kept < token:`, `f.Keeper != nil && r.kept < token && !r.raising:`}}},
	{name: "a Keeper that hangs for an older token keeps a newer one out", breaks: "Keeper", catch: "the_Keeper_hangs_with_an_older_token", pkg: ".", parent: "TestFence", edits: []edit{{
		"fencing.go", `f.Keeper.Raise(inside, name, token)`, `f.Keeper.Raise(context.WithoutCancel(inside), name, token)`}}},
	{name: "MaxAhead ignored", breaks: "MaxAhead", catch: "too_far_ahead", pkg: ".", parent: "TestFence", edits: []edit{{
		"fencing.go", `if f.MaxAhead > 0 &&`, `if f.MaxAhead < 0 &&`}}},
	{name: "what a Keeper refuses reported as the Fence's own refusal", breaks: "Trace", catch: "a_fence", pkg: ".", parent: "TestTrace", edits: []edit{{
		"fencing.go", `		case err != nil:
			return nil, nil, err`, `		case err != nil:
			refused = &StaleError{name, token, r.highest}
			return nil, nil, err`}}},
	{name: "HTTP: admit, then handle", breaks: "Fence", catch: "served_first", pkg: "./fence/fencehttp", parent: "TestOlder", edits: []edit{{
		"fence/fencehttp/fencehttp.go", `	defer leave()
`, `	leave()
`}}},
	{name: "HTTP: a leader that was stopped in a body keeps others out", breaks: "Handler", catch: "stopped_in_the_middle", pkg: "./fence/fencehttp", parent: "TestBody", edits: []edit{{
		"fence/fencehttp/fencehttp.go", `if errors.Is(context.Cause(b.inside), elector.ErrStale) {`, `if false {`}}},
	{name: "HTTP: the end of a body ends all later requests on its connection", breaks: "Handler", catch: "on_the_connection_of_an_older_request", pkg: "./fence/fencehttp", parent: "TestNotServed", edits: []edit{{
		"fence/fencehttp/fencehttp.go", `if b.reading > 0 {`, `if b.reading >= 0 {`}, {
		"fence/fencehttp/fencehttp.go", `if b.cut && `, `if false && `}}},
	{name: "HTTP: a request with an ended context answered with 200, and not served", breaks: "Handler", catch: "its_context_has_ended", pkg: "./fence/fencehttp", parent: "TestNotServed", edits: []edit{{
		"fence/fencehttp/fencehttp.go", `if r.Context().Err() != nil && r.ProtoMajor == 1 {`, `if r.Context().Err() != nil {
			return
		}
		if r.Context().Err() != nil && r.ProtoMajor == 1 {`}}},
	{name: "HTTP: a redirect carries the token to another host", breaks: "Transport", catch: "redirects/there", pkg: "./fence/fencehttp", parent: "TestTransport", edits: []edit{{
		"fence/fencehttp/fencehttp.go", `if r.URL.Host == origin(r).URL.Host {`, `if r == origin(r) || true {`}}},
	{name: "gRPC: the token looked at when a stream opens", breaks: "Fence", catch: "message", pkg: "./fence/fencegrpc", parent: "TestOlder", edits: []edit{{
		"fence/fencegrpc/fencegrpc.go", `if refused := f.enter(); refused`, `if refused := error(nil); refused`}}},
	{name: "gRPC: what a stream writes at its end is not fenced", breaks: "Fence", catch: "end", pkg: "./fence/fencegrpc", parent: "TestOlder", edits: []edit{{
		"fence/fencegrpc/fencegrpc.go", `	if refused := f.enter(); refused`, `	if errors.Is(err, io.EOF) {
		return err
	}
	if refused := f.enter(); refused`}}},
	{name: "gRPC: what a stream writes after an error is not fenced", breaks: "Fence", catch: "inside", pkg: "./fence/fencegrpc", parent: "TestBrokenMessage", edits: []edit{{
		"fence/fencegrpc/fencegrpc.go", `	if refused := f.enter(); refused`, `	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if refused := f.enter(); refused`}}},
	{name: "gRPC: a refused stream's context goes on", breaks: "Fence", catch: "overtaken", pkg: "./fence/fencegrpc", parent: "TestBrokenMessage", edits: []edit{{
		"fence/fencegrpc/fencegrpc.go", `		f.cancel(err)
`, ``}}},
	{name: "gRPC: an idle stream keeps others out", breaks: "Server", catch: "stream", pkg: "./fence/fencegrpc", parent: "TestIdle", edits: []edit{{
		"fence/fencegrpc/fencegrpc.go", `	f.exchange(func() {})
	err := f.ServerStream.RecvMsg(message)`, `	err := f.ServerStream.RecvMsg(message)`}}},

	// The fences of the clouds' stores.
	{name: "the tokens of objects compared as texts", breaks: "Fencing", catch: "a_longer_token", pkg: "./backends/gcs", parent: "TestFence", edits: []edit{{
		"backends/gcs/fence.go", `case token > a.Record.Token:`, `case token > 0 && digits > strconv.FormatUint(a.Record.Token, 10):`}}},
	{name: "an object fenced by two elections", breaks: "Fencing", catch: "another_election", pkg: "./backends/gcs", parent: "TestFence", edits: []edit{{
		"backends/gcs/fence.go", `election != a.Election {`, `election == "" {`}}},
	{name: "the caller's condition taken for the fence of an item", breaks: "Fencing", catch: "no_item", pkg: "./backends/dynamodb", parent: "TestPutRefused", edits: []edit{{
		"backends/dynamodb/fence.go", `failed.Item == nil && input.ConditionExpression == nil`, `failed.Item == nil`}}},
	{name: "a claim by an earlier leader", breaks: "Fencing", catch: "claim", pkg: "./backends/dynamodb", parent: "TestTenure", edits: []edit{{
		"backends/dynamodb/fence.go", `#token < :token`, `#token <> :token`}}},
	{name: "the caller's reason taken for the term's", breaks: "Fencing", catch: "None_ConditionalCheckFailed", pkg: "./backends/dynamodb", parent: "TestTenure", edits: []edit{{
		"backends/dynamodb/fence.go", `i == len(items) && reason`, `i == 0 && reason`}}},
}
