package main

// suite is the package of the conformance suite.
const suite = "./conformance"

// mutants are the known ways to get it wrong, most of them seen in other
// libraries. The texts to change are short, so that they survive changes around
// them; one that is gone is an error.
var mutants = []mutant{
	// The holder's clock.
	{name: "H counted from the response of a renewal", breaks: "2", catch: "exp/from-send", edits: []edit{{
		"keep.go", `return l.adopt(r)`, `l.sent[l.number] = clock.Mark(e.clock)
		return l.adopt(r)`}}},
	{name: "H counted from the response of the acquisition", breaks: "2", catch: "pause/inflight", edits: []edit{{
		"lease.go", `start := sent[r.Attempt.Sequence]`, `start := clock.Mark(e.clock)`}}},
	{name: "no drift margin for the holder", breaks: "1", catch: "mx/two-valid", edits: []edit{{
		"options.go", `return o.TTL - time.Duration(float64(o.TTL)*o.ClockDrift)`, `return o.TTL`}}},
	{name: "valid at H", breaks: "2", catch: "exp/exact", edits: []edit{{
		"lease.go", `t.start) < l.hold {`, `t.start) <= l.hold {`}}},
	{name: "loss only by timer", breaks: "6", catch: "exp/no-timer", edits: []edit{
		{"lease.go", `t.start) < l.hold {`, `t.start) < 1<<62 {`},
		{"lease.go", `if l.valid() == nil {
			l.expireLater()`, `if l.Remaining() == 0 {
			l.end(l.lostBecause(errors.New("the timer has fired")))
		} else {
			l.expireLater()`}}},
	{name: "late acknowledgement accepted after H", breaks: "2", catch: "exp/late-ack", edits: []edit{{
		"campaign.go", `start) >= e.o.hold() {`, `start) < 0 {`}}},
	{name: "lapsed lease resurrected by a late renewal", breaks: "2", catch: "ren/resurrect", edits: []edit{{
		"lease.go", `func (l *Lease) extend(start clock.Reading) error {`, `func (l *Lease) extend(start clock.Reading) error {
	if l.term.Load().over == nil {
		l.term.Store(&term{start: start})
	}`}, {"lease.go", `l.replace(t, l.lostBecause(fmt`, `return errors.Join(nil, l.lostBecause(fmt`}}},
	{name: "renewal capped by the new deadline", breaks: "6", catch: "ren/slow-then-cut", edits: []edit{{
		"keep.go", `min(l.e.o.RequestTimeout, l.Remaining())`, `min(l.e.o.RequestTimeout, l.hold)`}}},
	{name: "a dead worker kept in office", breaks: "StallTimeout", catch: "ren/stall", edits: []edit{{
		"keep.go", `if l.stalled() {`, `if false {`}}},

	// The challenger's clock.
	{name: "challenger's clock started before the read", breaks: "3", catch: "mx/two-valid", edits: []edit{{
		"request.go", `if e.note(r, before) {`, `e.mutex.Lock()
		fresh := r.Version != e.sighting.record.Version
		e.mutex.Unlock()
		if e.note(r, before) {
			if fresh {
				e.mutex.Lock()
				e.sighting.since = start
				e.mutex.Unlock()
			}`}}},
	{name: "no drift margin for the challenger", breaks: "1", catch: "clk/drift", edits: []edit{{
		"options.go", `return ttl + time.Duration(float64(ttl)*o.ClockDrift)`, `return ttl`}}},
	{name: "challenger waits for twice the TTL", breaks: "tau", catch: "mx/takeover-bound", edits: []edit{{
		"options.go", `return ttl + time.Duration(float64(ttl)*o.ClockDrift)`, `return 2 * ttl`}}},
	{name: "vanished record taken as vacant at once", breaks: "3", catch: "mx/vanished", edits: []edit{{
		"sighting.go", `(!r.Exists() || r.Token < s.last.Token)`, `r.Exists() && r.Token < s.last.Token`}}},
	{name: "acquisition goes on after a winner came and went", breaks: "3", catch: "mx/vanished", edits: []edit{{
		"campaign.go", `if !e.mayRetry(prev, next) {`, `if false {`}}},
	{name: "acquisition believed after a winner came and went", breaks: "3", catch: "mx/vanished", edits: []edit{{
		"campaign.go", `return s.rival || next.Token < s.highest || s.held > e.clock.Now().Mono`, `return s == nil`}}},
	{name: "late creation believed although a winner was seen", breaks: "3", catch: "while_it_is_on_its_way", pkg: ".", parent: "TestLateCreation", edits: []edit{{
		"campaign.go", `return s.rival || next.Token`, `return next.Token`}}},
	{name: "late creation retaken although a winner was seen before it was given up", breaks: "3", catch: "before_it_was_given_up", pkg: ".", parent: "TestLateCreation", edits: []edit{{
		"sighting.go", `s.trying || s.rival || slices`, `s.trying || slices`}}},
	{name: "an old creation abandoned again by the next campaign", breaks: "3", catch: "retaken_late", pkg: ".", parent: "TestAbandonedOnce", edits: []edit{{
		"sighting.go", `if nonce != s.trying || s.rival || slices`, `if nonce == s.trying && s.rival || slices`}}},
	{name: "a winner forgotten whose token was lower", breaks: "3", catch: "with_a_lower_token", pkg: ".", parent: "TestPushedRival", edits: []edit{{
		"follow.go", `if !believed && r.Exists() {`, `if false {`}}},
	{name: "late creation retaken although a winner was seen after it was given up", breaks: "3", catch: "after_it_was_given_up", pkg: ".", parent: "TestLateCreation", edits: []edit{{
		"sighting.go", `s.rival, s.abandoned = true, nil`, `s.rival = true`}}},
	{name: "a vanished record forgotten by the next push", breaks: "3", catch: "mx/vanished", pkg: ".", parent: "TestPushed", edits: []edit{{
		"follow.go", `f.e.vanished()`, `f.e.wakeNobody()`}, {
		"follow.go", `func (f *follower) wake() {`, `func (e *Elector) wakeNobody() {}

func (f *follower) wake() {`}}},
	{name: "a vacancy written to unread, so that nobody gives way", breaks: "J", catch: "sim/release-writes", edits: []edit{{
		"campaign.go", `r, err := e.load(ctx, e.o.RequestTimeout)`, `e.mutex.Lock()
	r, err := e.sighting.record, error(nil)
	e.mutex.Unlock()
	if !r.Exists() {
		r, err = e.load(ctx, e.o.RequestTimeout)
	}`}}},
	{name: "a leader forgotten when the one before is shown late", breaks: "3", catch: "mx/vanished-late", pkg: ".", parent: "TestPushed", edits: []edit{{
		"sighting.go", `max(s.last.TTL, s.before)`, `s.last.TTL`}}},
	{name: "lower token not held", breaks: "3", catch: "mx/rollback", edits: []edit{{
		"sighting.go", `(!r.Exists() || r.Token < s.last.Token)`, `!r.Exists()`}}},

	// The other clocks.
	{name: "wall clock ignored", breaks: "Clocks", catch: "clk/suspend", edits: []edit{{
		"internal/clock/clock.go", `return max(mono, wall)`, `return mono`}}},
	{name: "boot-time clock ignored", breaks: "Clocks", catch: "clk/suspend", edits: []edit{{
		"internal/clock/clock.go", `mono = max(mono, c.Boot()-start.Boot)`, `mono = max(mono, 0)`}}},
	{name: "wall clock alone", breaks: "Clocks", catch: "clk/wall-step", edits: []edit{{
		"internal/clock/clock.go", `return max(mono, wall)`, `return wall`}}},

	// Lost answers.
	{name: "acquisition believed without an answer", breaks: "7", catch: "amb/acquire", edits: []edit{{
		"campaign.go", `r, readErr := e.load(ctx, e.o.RequestTimeout)`, `if !errors.Is(err, backends.ErrConflict) {
			next.Version = "guessed"
			return won(next)
		}
		r, readErr := e.load(ctx, e.o.RequestTimeout)`}}},
	{name: "renewal believed without an answer", breaks: "2", catch: "amb/renew", edits: []edit{{
		"keep.go", `return fmt.Errorf("%w; reading back: %w", err, readErr)`, `l.extend(l.sent[l.number])
		return fmt.Errorf("%w; reading back: %w", err, readErr)`}}},
	{name: "conflict taken as a loss without reading back", breaks: "7", catch: "amb/conflict-is-mine", edits: []edit{{
		"keep.go", `r, err := e.swapBy(context.Background(), l.limit(), l.sender(), l.record, next)`, `r, err := e.swap(context.Background(), l.limit(), l.record, next)
	if errors.Is(err, backends.ErrConflict) {
		l.end(l.lostBecause(err))
		return err
	}`}}},
	{name: "renewal read back with a later t0", breaks: "7", catch: "amb/two-unresolved", edits: []edit{{
		"keep.go", `known := l.sent[r.Attempt.Sequence]`, `known := l.sent[l.number]`}}},
	{name: "acquisition read back with a later t0", breaks: "7", catch: "amb/two-unresolved", edits: []edit{{
		"lease.go", `sent[r.Attempt.Sequence]`, `sent[l.number]`}}},
	{name: "renewal on its way forgotten when it is not there yet", breaks: "7", catch: "is_adopted", pkg: ".", parent: "TestLateRenewal", edits: []edit{{
		"keep.go", `if r.Version == l.record.Version {`, `if false {`}}},
	{name: "only the last attempt recognised", breaks: "7", catch: "amb/two-unresolved", edits: []edit{{
		"keep.go", `r.Attempt.Nonce == l.nonce`, `r.Attempt.Nonce == l.nonce && r.Attempt.Sequence == l.number`}}},
	{name: "a store that does not compare", breaks: "8", catch: "amb/delayed-write", edits: []edit{{
		"backends/memory/memory.go", `if e.version != prev.Version {`, `if e.version == "" && prev.Version != "" {`}, {
		"backends/memory/memory.go", `case renews && e.present != present:`, `case renews && e.version == "":`}}},

	// Release and tokens.
	{name: "release before the local loss", breaks: "8", catch: "amb/release", edits: []edit{{
		"lease.go", `l.end(l.resigned(nil))`, `next := l.record
		next.Holder, next.Value, next.Attempt.Sequence = "", "", 1<<40
		l.e.swap(context.Background(), l.e.o.RequestTimeout, l.record, next)
		l.end(l.resigned(nil))`}}},
	{name: "unconditional release", breaks: "8", catch: "amb/release", edits: []edit{{
		"keep.go", `if !l.ours(r) || r.Vacant() {`, `if r.Vacant() {`}}},
	{name: "token restarted after a release", breaks: "5", catch: "tok/clock", edits: []edit{{
		"sighting.go", `token = max(s.highest+1, s.record.Token+1, uint64(o.MinToken), 1)`, `token = max(s.highest+1, s.record.Token+1, uint64(o.MinToken), 1)
	if s.record.Vacant() {
		token = 1
	}`}}},

	// A removed mark of presence.
	{name: "a removed mark ignored", breaks: "PresenceWatcher", catch: "deposed_at_once,_told_later,_and_stands_back", pkg: ".", parent: "TestPresence", edits: []edit{{
		"presence.go", `if errors.Is(err, ErrDeposed) {`, `if false {`}}},
	{name: "a renewal without the mark tried again", breaks: "PresenceWatcher", catch: "found_by_a_renewal", pkg: ".", parent: "TestPresence", edits: []edit{{
		"keep.go", `if errors.Is(err, ErrDeposed) {`, `if false {`}}},
	{name: "deposed and back at once", breaks: "PresenceWatcher", catch: "deposed_at_once,_told_later,_and_stands_back", pkg: ".", parent: "TestPresence", edits: []edit{{
		"presence.go", `if e.sighting.record.Attempt.Nonce == l.nonce {`, `if false {`}}},
	{name: "everybody who was replaced stands back", breaks: "PresenceWatcher", catch: "replaced_is_not_deposed", pkg: ".", parent: "TestPresence", edits: []edit{{
		"presence.go", `if e.sighting.record.Attempt.Nonce == l.nonce {`, `if true {`}}},
	{name: "store told of a deposed leader whose worker runs", breaks: "8", catch: "told_after_the_worker_has_returned", pkg: ".", parent: "TestPresence", edits: []edit{{
		"keep.go", `	if errors.Is(over, ErrResigned) {
		l.vacate()`, `	if errors.Is(over, ErrResigned) || errors.Is(over, ErrDeposed) {
		l.down.Do(func() {})
		l.vacate()`}}},
	{name: "store not told of a deposed leader", breaks: "PresenceWatcher", catch: "told_after_the_worker_has_returned", pkg: ".", parent: "TestPresence", edits: []edit{{
		"presence.go", `if !l.deposed() {`, `if true {`}}},
	{name: "writes as quickly as they come", breaks: "MinWriteInterval", catch: "apart", pkg: ".", parent: "TestMinWriteInterval", edits: []edit{{
		"request.go", `if e.o.writeInterval == 0 {`, `if true {`}}},
	{name: "Run goes on after Resign and a loss", breaks: "Resign", catch: "deposed_while_it_resigns_in_Run", pkg: ".", parent: "TestPresence", edits: []edit{{
		"run.go", `if l.asked.Load() && !ailing {`, `if false {`}}},

	// Renewals that share a request.
	{name: "a shared renewal counted from the answer", breaks: "2", catch: "elector/batch/shared", pkg: suite, parent: "TestMemory", edits: []edit{{
		"keep.go", `return l.adopt(r)`, `l.sent[l.number] = clock.Mark(e.clock)
		return l.adopt(r)`}}},
	{name: "a renewal takes the outcome of its neighbour", breaks: "2", catch: "elector/batch/shared", pkg: suite, parent: "TestMemory", edits: []edit{{
		"batch.go", `b.outcomes[i]`, `b.outcomes[(i+1)%len(b.outcomes)]`}, {
		"batch.go", `o.Record.Attempt != r.Next.Attempt {`, `o.Record.Attempt != o.Record.Attempt {`}}},
	{name: "a backend believed that tells of another renewal", breaks: "2", catch: "elector/batch/ambiguous", pkg: suite, parent: "TestMemory", edits: []edit{{
		"batch.go", `o.Record.Attempt != r.Next.Attempt {`, `o.Record.Attempt != o.Record.Attempt {`}}},
	{name: "a renewal joins a batch that has left", breaks: "Batcher", catch: "elector/batch/shared", pkg: suite, parent: "TestMemory", edits: []edit{{
		"batch.go", `	s.mutex.Lock()
	s.leaves(b)
	s.mutex.Unlock()
	b.outcomes = s.request(b)`, `	b.outcomes = s.request(b)
	s.mutex.Lock()
	s.leaves(b)
	for len(b.outcomes) < len(b.renewals) {
		b.outcomes = append(b.outcomes, backends.Outcome{Err: ErrUnavailable})
	}
	s.mutex.Unlock()`}}},
	{name: "a batch given up for all by the first", breaks: "Batcher", catch: "elector/batch/ambiguous", pkg: suite, parent: "TestMemory", edits: []edit{{
		"batch.go", `b.waiting > 0 {`, `b.waiting < 0 {`}}},
	{name: "a batch refused for good taken as each one's refusal", breaks: "Batcher", catch: "elector/batch/ambiguous", pkg: suite, parent: "TestMemory", edits: []edit{{
		"batch.go", `errors.Is(o.Err, backends.ErrNotTried) || backends.Permanent(o.Err)`, `errors.Is(o.Err, backends.ErrNotTried)`}}},
	{name: "a renewal not tried taken for one that failed", breaks: "Batcher", catch: "elector/batch/ambiguous", pkg: suite, parent: "TestMemory", edits: []edit{{
		"batch.go", `errors.Is(o.Err, backends.ErrNotTried) ||`, `errors.Is(o.Err, nil) && false ||`}}},
	{name: "an error of a whole batch shared again", breaks: "Batcher", catch: "elector/batch/ambiguous", pkg: suite, parent: "TestMemory", edits: []edit{{
		"keep.go", `l.alone = errors.As(err, &shared)`, `l.alone = errors.As(err, &shared) && false`}}},
	{name: "one that was deposed takes its batch along", breaks: "Batcher", catch: "elector/batch/one-lost", pkg: suite, parent: "TestMemory", edits: []edit{{
		"batch.go", `	o := b.outcomes[i]`, `	o := b.outcomes[i]
	for _, other := range b.outcomes {
		if errors.Is(other.Err, backends.ErrDeposed) {
			o = other
		}
	}`}}},
	{name: "Close does not wait for a batch", breaks: "10", catch: "elector/batch/closed", pkg: suite, parent: "TestMemory", edits: []edit{{
		"batch.go", `	e.active.Add(1)
`, ``}, {
		"batch.go", `		b.electors[i].active.Done()
`, ``}, {
		"batch.go", `			e.active.Done()`, `			_ = e`}}},
}
