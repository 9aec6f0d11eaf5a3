package main

// recordMutants get the record wrong, its tokens, or what an answer means.
var recordMutants = []mutant{
	// Lost answers.
	{name: "acquisition believed without an answer", breaks: "7", catch: "amb/acquire", edits: []edit{{
		"acquire.go", `		r, readBack := e.load(`, `		if f.kind != conflicting {
			return backends.Record{Holder: e.o.ID, Token: a.token, TTL: e.o.TTL, RenewEvery: e.o.RenewEvery, Value: e.o.Value,
				Attempt: backends.Attempt{Nonce: a.nonce, Sequence: a.number}, Extensions: a.sent[len(a.sent)-1].critical, Version: "guessed"}, nil, nil
		}
		r, readBack := e.load(`}}},
	{name: "renewal believed without an answer", breaks: "2", catch: "amb/renew", edits: []edit{{
		"renew.go", `		return &failure{max(f.kind, readBack.kind)`, `		l.extend(a.sent[len(a.sent)-1].start)
		return &failure{max(f.kind, readBack.kind)`}}},
	{name: "conflict taken as a loss without reading back", breaks: "7", catch: "amb/conflict-is-mine", edits: []edit{{
		"renew.go", `	if f.kind == presenceLost {`, `	if f.kind == conflicting {
		l.move(lost, none, l.lostBecause(f.err))
		return f, false
	}
	if f.kind == presenceLost {`}}},
	{name: "renewal read back with a later t0", breaks: "7", catch: "amb/two-unresolved", edits: []edit{{
		"renew.go", `switch w, _ := a.sent.of(r.Attempt.Sequence); {`, `switch w := a.sent[len(a.sent)-1]; {`}}},
	{name: "acquisition read back with a later t0", breaks: "7", catch: "amb/two-unresolved", edits: []edit{{
		"acquire.go", `won, _ := own.sent.of(own.record.Attempt.Sequence)`, `won := own.sent[len(own.sent)-1]`}}},
	{name: "renewal on its way forgotten when it is not there yet", breaks: "7", catch: "is_adopted", pkg: ".", parent: "TestLateRenewal", edits: []edit{{
		"renew.go", `	case r.Version == a.record.Version:
		err = l.valid() // nothing was applied so far, and any write still can be
	case r.Attempt == a.record.Attempt:`, `	case false:`}}},
	{name: "only the last attempt recognised", breaks: "7", catch: "amb/two-unresolved", edits: []edit{{
		"acquisition.go", `	case !sent:`, `	case !sent || r.Attempt.Sequence != a.number:`}}},
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
		"errors.go", `case s.phase == lost, s.phase == overran:`, `case s.phase == overran:`}}},
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
		"acquisition.go", `case r.Vacant(), r.Attempt.Nonce != a.nonce: //`, `case r.Vacant(): //`}, {
		"acquisition.go", `			case err != nil:
				return fmt.Errorf("the record still`, `			case err != nil && false:
				return fmt.Errorf("the record still`}, {
		"acquisition.go", `return clock.Elapsed(clk, w.start) < hold`, `return true || clock.Elapsed(clk, w.start) < hold`}}},
	{name: "told while the worker still runs", breaks: "8", catch: "overrun", pkg: ".", parent: "TestOverrun", edits: []edit{{
		"release.go", `case on == leaseEnded && phase != resigned, on != leaseEnded`, `case on != leaseEnded`}}},
	{name: "told twice", breaks: "8", catch: "lost/run_true", pkg: ".", parent: "TestOpaqueErrors", edits: []edit{{
		"release.go", `on != leaseEnded && phase == resigned, !l`, `!l`}, {
		"release.go", `		return l.release.begun.CompareAndSwap(false, true)`, `		if l.release.begun.Swap(true) {
			l.release.done = make(chan struct{})
		}
		return true`}}},
	{name: "told after a panic", breaks: "8", catch: "panic", pkg: ".", parent: "TestOverrun", edits: []edit{{
		"run.go", `l.writeRelease(workPanicked)`, `l.giveUp()`}}},
	{name: "never released after an overrun", breaks: "8", catch: "overrun", pkg: ".", parent: "TestOverrun", edits: []edit{{
		"release.go", `case on == leaseEnded, on == workReturned && phase != lost:`, `case on == leaseEnded:`}}},
	{name: "released after a loss", breaks: "8", catch: "a_loss_is_not_released", pkg: ".", parent: "TestReleaseInTime", edits: []edit{{
		"release.go", `on == workReturned && phase != lost:`, `on == workReturned:`}}},
	{name: "released after H", breaks: "8", catch: "the_worker_returns_late", pkg: ".", parent: "TestReleaseInTime", edits: []edit{{
		"acquisition.go", `return clock.Elapsed(clk, w.start) < hold`, `return clock.Elapsed(clk, w.start) < 9*hold`}}},
	{name: "released after H by the queue", breaks: "8", catch: "TestLate", pkg: storing, edits: []edit{{
		"internal/store/batch.go", `change, may := r.build(); may {`, `change, may := r.build(); may || !may {`}}},
	{name: "a release given up at the first thing that it meets", breaks: "8", catch: "a_request", pkg: ".", parent: "TestReleaseMeets", edits: []edit{{
		"acquisition.go", `case moved && !overtaken: //`, `case moved && !overtaken && false: //`}}},
	{name: "what Open has read used for each attempt", breaks: "requests", catch: "twice", pkg: ".", parent: "TestFirstAttempt", edits: []edit{{
		"acquire.go", `	e.opened = 0
`, ``}}},
	{name: "what Open has read used however old it is", breaks: "requests", catch: "a_second_later", pkg: ".", parent: "TestFirstAttempt", edits: []edit{{
		"acquire.go", `e.now()-opened < time.Second`, `e.now()-opened < time.Hour`}}},
	{name: "a release tried until ReleaseTimeout", breaks: "8", catch: "no_longer_than_that", pkg: ".", parent: "TestReleaseInTime", edits: []edit{{
		"acquisition.go", `case a.outlived():`, `case false:`}}},
	{name: "a renewal without an answer forgotten by the release", breaks: "8", catch: "a_younger_renewal", pkg: ".", parent: "TestReleaseInTime", edits: []edit{{
		"acquisition.go", `		r, readBack := e.load(`, `		if a.record.Exists() && !a.timely()() {
			return why.err
		}
		r, readBack := e.load(`}}},
	{name: "what is over not taken at once", breaks: "7", catch: "30s", pkg: ".", parent: "TestStoodStill", edits: []edit{{
		"internal/rule/claim.go", `return c.state == over && nonce == c.nonce ||`, `return`}}},
	{name: "what is over forgotten when the next acquisition begins", breaks: "7", catch: "writes_queue_for_20s", pkg: ".", parent: "TestOverAgain", edits: []edit{{
		"internal/rule/claim.go", `if c.state == over {`, `if false {`}}},
	{name: "what was over stays so although another leader was seen", breaks: "7", catch: "TestOverNext", pkg: "./internal/rule", edits: []edit{{
		"internal/rule/claim.go", `c.state, c.earlier = contested, nil`, `c.state = contested`}}},
	{name: "a reason to stop forgotten", breaks: "Resign", catch: "resigned", pkg: ".", parent: "TestResignWhileDraining", edits: []edit{{
		"lease.go", `next.why = max(s.why, why)`, `next.why = max(s.why, why*reason(1-min(1, s.phase)))`}}},
	{name: "a published value proclaimed again", breaks: "Proclaim", catch: "impatient", pkg: ".", parent: "TestMinWriteInterval", edits: []edit{{
		"renew.go", `case p.value == l.value && p.value == l.own.record.Value && len(l.own.sent) == 1:`, `case false:`}}},
	{name: "a proposal answered while another write may count", breaks: "Proclaim", catch: "TestProclaimedBack", pkg: ".", edits: []edit{{
		"renew.go", ` && len(l.own.sent) == 1:`, `:`}}},
	{name: "a user's error decides how a lease ends", breaks: "Errors", catch: "deposed/run_false", pkg: ".", parent: "TestOpaqueErrors", edits: []edit{{
		"health.go", `err = usersError{err}`, `_ = usersError{err}`}}},
	{name: "a conflict believed beside another error", breaks: "7", catch: "stands_alone", pkg: ".", parent: "TestKindOf", edits: []edit{{
		"errors.go", `if matches > 1 && !found.permanent() {`, `if false {`}}},

	// The open record.
	{name: "ours without its holder", breaks: "rec/edited", catch: "holder_emptied", pkg: ".", parent: "TestEdited", edits: []edit{{
		"acquisition.go", `r.Holder != holder || `, ``}, {
		"acquisition.go", `		holder = ""
`, `		holder = holder + ""
`}}},
	{name: "ours without its TTL", breaks: "rec/edited", catch: "TTL_lowered", pkg: ".", parent: "TestEdited", edits: []edit{{
		"acquisition.go", `r.TTL != o.TTL || r.RenewEvery != o.RenewEvery || `, ``}}},
	{name: "attempts that follow each other", breaks: "rec/edited", catch: "attempt", pkg: ".", parent: "TestEdited", edits: []edit{{
		"acquisition.go", `const strides = 1 << 16`, `const strides = 1`}}},
	{name: "a critical extension ignored by a challenger", breaks: "rec/critical", catch: "held", pkg: ".", parent: "TestCritical", edits: []edit{{
		"internal/rule/view.go", `	case Critical(v.record) != "":`, `	case false:`}}},
	{name: "a critical extension forgotten when an older state is pushed", breaks: "rec/critical", catch: "pushed_late", pkg: "./internal/rule", parent: "TestPushed", edits: []edit{{
		"internal/rule/view.go", `return !v.amended(r, v.record) || v.record.Extensions.Names(r.Extensions)`, `return false`}}},
	{name: "a critical extension of a vacant record ignored", breaks: "rec/critical", catch: "vacant", pkg: ".", parent: "TestCritical", edits: []edit{{
		"internal/rule/view.go", `	case Critical(v.record) != "":`, `	case Critical(v.record) != "" && !v.record.Vacant():`}}},
	{name: "a critical extension ignored by a holder", breaks: "rec/critical", catch: "a_critical_extension", pkg: ".", parent: "TestEdited", edits: []edit{{
		"acquisition.go", `case r.Extensions.Class('c') != w.critical:`, `case false:`}}},
	{name: "a kept extension dropped", breaks: "rec/kept", catch: "of_a_leader", pkg: ".", parent: "TestRequest", edits: []edit{{
		"internal/annex/annex.go", `prev.Extensions.Class('k')`, `prev.Extensions.Class('x')`}}},
	{name: "an extension of the term passed on", breaks: "rec/term", catch: "of_a_leader", pkg: ".", parent: "TestRequest", edits: []edit{{
		"acquisition.go", `a.e.annex.Released(prev, a.why, a.successor, a.pause, now)`, `prev.Extensions`}}},
	{name: "a renewal drops what belongs to the term", breaks: "rec/term", catch: "of_a_leader", pkg: ".", parent: "TestRequest", edits: []edit{{
		"acquisition.go", `a.e.annex.Renewed(prev)`, `prev.Extensions.Class('k')`}}},
	{name: "a requester writes an attempt", breaks: "rec/request", catch: "of_a_dead_leader", pkg: ".", parent: "TestRequest", edits: []edit{{
		"holder_test.go", `change(t, s.store, set(t, "t_request", time.Now().String()))`, `change(t, s.store, func(r *backends.Record) { r.Attempt.Sequence++ })`}}},
	{name: "C restarted by an extension", breaks: "rec/request", catch: "of_a_dead_leader", pkg: ".", parent: "TestRequest", edits: []edit{{
		"internal/rule/view.go", `if !v.any || !v.amended(r, v.record) {`, `if true {`}}},
	{name: "a touch prolongs a dead leader", breaks: "rec/touched", catch: "after_a_crash", pkg: ".", parent: "TestTouched", edits: []edit{{
		"internal/rule/view.go", `if !v.any || !v.amended(r, v.record) {`, `if !v.any || r.Extensions == v.record.Extensions || !v.amended(r, v.record) {`}}},
	{name: "a restored record taken for a touched one", breaks: "rec/touched", catch: "restored_after_a_crash", pkg: ".", parent: "TestTouched", edits: []edit{{
		"internal/rule/view.go", `same := v.SameWrite != nil && v.SameWrite(s.Version, r.Version)`, `same := true`}}},
	{name: "a release over an older state", breaks: "rec/touched", catch: "an_older_state_and_resigned", pkg: ".", parent: "TestTouched", edits: []edit{{
		"acquisition.go", `			case err != nil:
				return fmt.Errorf("the record still`, `			case err != nil && false:
				return fmt.Errorf("the record still`}}},
	{name: "a request costs a renewal", breaks: "rec/request", catch: "of_a_leader", pkg: ".", parent: "TestRequest", edits: []edit{{
		"renew.go", `if overtaken && l`, `if overtaken && false && l`}}},
	{name: "a higher major schema taken for ours", breaks: "bad/newer", catch: "backend/bad/newer", pkg: suite, parent: "TestMemory", edits: []edit{{
		"backends/codec.go", `case n > Schema:`, `case n > Schema+1:`}}},

	{name: "token restarted after a release", breaks: "5", catch: "tok/clock", edits: []edit{{
		"internal/rule/view.go", `	if token = Token(max(v.highest, v.record.Token), min, wall); token != 0 {`, `	if v.record.Vacant() {
		v.highest, v.record.Token = 0, 0
	}
	if token = Token(max(v.highest, v.record.Token), min, wall); token != 0 {`}}},
}
