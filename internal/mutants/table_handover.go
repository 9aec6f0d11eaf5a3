package main

// handoverMutants hand over wrongly.
var handoverMutants = []mutant{
	// Handover: a successor, and requests to resign.
	{name: "everybody takes the successor's way", breaks: "successor", catch: "named_by_the_leader", pkg: ".", parent: "TestSuccessor", edits: []edit{{
		"succession.go", `return e.successor(s.Record) == e.o.ID`, `return e.successor(s.Record) != ""`}, {
		"succession.go", `id == "" || id == e.o.ID ||`, `id == id ||`}}},
	{name: "a successor taken for evidence of a vacancy", breaks: "3", catch: "after_a_crash", pkg: ".", parent: "TestSuccessor", edits: []edit{{
		"internal/rule/view.go", `	case v.record.Vacant(), v.claim`, `	case v.record.Vacant(), v.record.Extensions.Names("{\"t_bid\":\"\"}"), v.claim`}}},
	{name: "a successor used after a crash", breaks: "successor", catch: "after_a_crash", pkg: ".", parent: "TestSuccessor", edits: []edit{{
		"succession.go", `if !r.Vacant() {`, `if !r.Exists() {`}}},
	{name: "a successor that swaps on a record that does not exist", breaks: "successor", catch: "of_a_record_that_is_gone", pkg: ".", parent: "TestSuccessor", edits: []edit{{
		"internal/annex/annex.go", `if !r.Exists() || r.Extensions == "" {`, `if r.Extensions == "" {`}, {
		"internal/rule/view.go", `	if Critical(v.record) == "" {`, `	if !v.record.Exists() {
		s.Record.Extensions = v.last.Extensions
	}
	if Critical(v.record) == "" {`}}},
	{name: "a dead successor waited for without end", breaks: "successor", catch: "dead,_pushed_true", pkg: ".", parent: "TestSuccessor", edits: []edit{{
		"succession.go", `start := free + e`, `start := e.now() + e`}}},
	{name: "a dead successor waited for by those who never saw the leader", breaks: "successor", catch: "dead,_for_those_who_come_later", pkg: ".", parent: "TestSuccessor", edits: []edit{{
		"succession.go", `s.Record.Vacant() && s.Followed {`, `s.Record.Vacant() {`}}},
	{name: "a preference that means nothing after a crash", breaks: "Priority", catch: "after_a_crash,_pushed_false", pkg: ".", parent: "TestPriority", edits: []edit{{
		"succession.go", `b.Rank > 0 {`, `b.Rank > 1<<40 {`}}},
	{name: "StallTimeout counted while Standby stops", breaks: "Standby", catch: "TestStandbyStalls", pkg: ".", edits: []edit{{
		"run.go", `l.liveFor(e.o.ReleaseTimeout)`, `l.live()`}}},
	{name: "TryCampaign waits for a head start while the leader lives", breaks: "Priority", catch: "TryCampaign_while_the_leader_lives", pkg: ".", parent: "TestPriority", edits: []edit{{
		"succession.go", `!s.Record.Vacant() && s.Free > e.now():`, `false:`}}},
	{name: "a dead successor waited for as long as the TTL", breaks: "successor", catch: "dead,_with_a_long_TTL", pkg: ".", parent: "TestSuccessor", edits: []edit{{
		"succession.go", `min(vacancy.RenewEvery, longestHeadStart)`, `vacancy.TTL`}}},
	{name: "a bid that is not due", breaks: "successor", catch: "of_a_record_that_is_gone", pkg: ".", parent: "TestSuccessor", edits: []edit{{
		"succession.go", `if e.now() < p.due {`, `if false {`}}},
	{name: "a dead successor waited for through two intervals", breaks: "successor", catch: "dead,_pushed_false", pkg: ".", parent: "TestSuccessor", edits: []edit{{
		"succession.go", `min(vacancy.RenewEvery, longestHeadStart)`, `min(2*vacancy.RenewEvery, longestHeadStart)`}}},
	{name: "a release forgets the successor", breaks: "successor", catch: "named_by_the_leader", pkg: ".", parent: "TestSuccessor", edits: []edit{{
		"internal/annex/annex.go", `if !next.None() {`, `if false {`}}},
	{name: "a request ends a lease at once", breaks: "rec/request", catch: "drains", pkg: ".", parent: "TestRequestResign", edits: []edit{{
		"renew.go", `l.drain(requested, fmt.Errorf("%w: %q", ErrRequested, q.By))`, `l.move(resigned, requested, l.resignedBecause(fmt.Errorf("%w: %q", ErrRequested, q.By)))`}}},
	{name: "requests to resign that hang counted with renewals", breaks: "rec/request", catch: "that_hang", pkg: ".", parent: "TestRequestStorm", edits: []edit{{
		"addition.go", `e.asks(swapping, store.Look)`, `e.asks(swapping, store.Keep)`}}},
	{name: "a lease that drains ended by another campaign", breaks: "rec/request", catch: "Campaign,_again", pkg: ".", parent: "TestRequestResign", edits: []edit{{
		"calls.go", `if l := e.current.Load(); e.busy ||`, `if l := e.current.Load(); l != nil && l.status.Load().phase == draining {
		l.giveUp()
	}
	if l := e.current.Load(); e.busy ||`}}},
	{name: "a request for another token obeyed", breaks: "rec/request", catch: "yesterday", pkg: ".", parent: "TestRequestResign", edits: []edit{{
		"internal/annex/request.go", `f[0] != strconv.FormatUint(r.Token, 10)`, `f[0] == ""`}}},
	{name: "a leader that was requested to resign comes back at once", breaks: "rec/request", catch: "stands_back", pkg: ".", parent: "TestRequestResign", edits: []edit{{
		"release.go", `e.standBack(l.own.nonce)`, `_ = e`}}},
	{name: "a leader that was requested to resign stands back although another one has led", breaks: "rec/request", catch: "drains", pkg: ".", parent: "TestRequestResign", edits: []edit{{
		"standing.go", `b.term == s.Term && `, ``}, {
		"standing.go", `e.now() + rule.Challenge(`, `e.now() + 100*rule.Challenge(`}}},
	{name: "a leader that was requested to resign stands back for ever", breaks: "rec/request", catch: "stands_back", pkg: ".", parent: "TestRequestResign", edits: []edit{{
		"standing.go", `e.now() + rule.Challenge(`, `e.now() + 100*rule.Challenge(`}}},
	{name: "a request written over another", breaks: "rec/request", catch: "renewed", pkg: ".", parent: "TestRequestStorm", edits: []edit{{
		"resignrequest.go", `case q.Token == 0:`, `case q.Nonce != p.nonce:`}, {
		"resignrequest.go", `if p.taken > 0 {`, `if false {`}}},
	{name: "Run returns after a request", breaks: "rec/request", catch: "drains", pkg: ".", parent: "TestRequestResign", edits: []edit{{
		"run.go", ` && s.why != requested`, ``}}},

	{name: "Run returns after a request when the worker resigns", breaks: "rec/request", catch: "the_worker_resigns", pkg: ".", parent: "TestRequestResign", edits: []edit{{
		"release.go", `why = requested //`, `why = stop //`}}},
	{name: "C restarted by each request", breaks: "rec/request", catch: "the_leader_is_gone,_and_a_request_comes_every_second", pkg: ".", parent: "TestRequestUnanswered", edits: []edit{{
		"internal/rule/view.go", `if !v.any || !v.amended(r, v.record) {`, `if true {`}}},
	{name: "a request without room beside the history", breaks: "rec/request", catch: "escapes", pkg: ".", parent: "TestRequestRoom", edits: []edit{{
		"internal/annex/request.go", `if _, has := x.Get(name); err == nil || !has {`, `if err == nil || err != nil {`}}},

	{name: "extensions decoded for each question", breaks: "successor", catch: "TestDecodedOnce", pkg: ".", edits: []edit{{
		"internal/annex/annex.go", `a != nil && a.of == of`, `a != nil && a.of == of && false`}}},
	{name: "a request decoded for one leader shown to the next", breaks: "rec/request", catch: "TestReader", pkg: "./internal/annex", edits: []edit{{
		"internal/annex/annex.go", `question{r.Extensions, r.Token, r.Vacant()}`, `question{r.Extensions, 0, r.Vacant()}`}}},
	{name: "what was decoded for a leader said of its vacancy", breaks: "pause", catch: "TestReader", pkg: "./internal/annex", edits: []edit{{
		"internal/annex/annex.go", `question{r.Extensions, r.Token, r.Vacant()}`, `question{r.Extensions, r.Token, false}`}}},

	// Volunteers.
	{name: "a bid taken for evidence that its candidate may lead", breaks: "3", catch: "mx/two-valid", edits: []edit{{
		"internal/rule/view.go", `	case v.record.Vacant(), v.claim`, `	case v.record.Vacant(), v.record.Extensions.Names("{\"t_bid\":\"\"}"), v.claim`}}},
	{name: "a campaign that is cancelled while it waits is not woken", breaks: "Campaign", catch: "the_campaign_ends", pkg: ".", parent: "TestPriority", edits: []edit{{
		"watch.go", `context.AfterFunc(w.ctx, func() { w.wake(); w`, `context.AfterFunc(w.ctx, func() { w`}}},
	{name: "a bid of another term", breaks: "successor", catch: "named_by_the_leader", pkg: ".", parent: "TestSuccessor", edits: []edit{{
		"internal/annex/annex.go", `into(prev.Extensions.Class('k'))`, `into(prev.Extensions)`}}},
	{name: "all who wait bid", breaks: "successor", catch: "10_waiting", pkg: ".", parent: "TestVolunteer", edits: []edit{{
		"succession.go", `return b, rank > highest`, `return b, rank > highest || rank == 0 && there.ID != b.ID`}}},
	{name: "a bid kept after the campaign", breaks: "successor", catch: "the_campaign_ends", pkg: ".", parent: "TestVolunteer", edits: []edit{{
		"campaign.go", `c.bidding.withdraw(ctx)`, `_ = ctx`}}},
	{name: "a volunteer that is not healthy keeps its bid", breaks: "successor", catch: "sick_later", pkg: ".", parent: "TestVolunteer", edits: []edit{{
		"succession.go", `rank != noBid && e.checkHealth`, `rank > 0 && e.checkHealth`}}},
	{name: "a leader bids in its own record", breaks: "successor", catch: "its_bid_is_slow,_and_it_wins_meanwhile", pkg: ".", parent: "TestVolunteer", edits: []edit{{
		"succession.go", ` && !s.Own && rule`, ` && rule`}}},
	{name: "a candidate that stands back bids", breaks: "successor", catch: "stands_back", pkg: ".", parent: "TestVolunteer", edits: []edit{{
		"succession.go", ` && !e.standsBack(s) &&`, ` &&`}, {
		"succession.go", `s.Record.Exists() && !s.Record.Vacant() && !s.Own && rule`, `s.Record.Exists() && rule`}, {
		"succession.go", ` && now < s.Free`, ``}}},
	{name: "a volunteer where the others would wait for it", breaks: "successor", catch: "not_where_others_would_wait_for_it", pkg: ".", parent: "TestVolunteer", edits: []edit{{
		"succession.go", `(!e.listens || annex.CheckID(e.o.ID) != nil)`, `annex.CheckID(e.o.ID) != nil`}}},
	{name: "the health of a candidate that waits asked on its campaign's goroutine", breaks: "successor", catch: "slow_to_tell_its_health", pkg: ".", parent: "TestVolunteer", edits: []edit{{
		"succession.go", `	p.later(func() {
		rank`, `	func(f func()) { f() }(func() {
		rank`}}},
	{name: "the health of a candidate that has bid asked again before it leads", breaks: "successor", catch: "slow_to_tell_its_health", pkg: ".", parent: "TestVolunteer", edits: []edit{{
		"health.go", `if e.now() < time.Duration(e.wellUntil.Load()) {`, `if time.Duration(e.wellUntil.Load()) < 0 {`}}},

	// Priorities.
	{name: "a lower priority replaces a higher one", breaks: "Priority", catch: "the_highest_leads_next", pkg: ".", parent: "TestPriority", edits: []edit{{
		"succession.go", `p.own(there) && p.lowered.Load() != b.Rank`, `rank > 0`}}},
	{name: "all candidates with a priority write", breaks: "Priority", catch: "one_write,_pushed_true", pkg: ".", parent: "TestPriority", edits: []edit{{
		"succession.go", `return b, rank > highest`, `return b, rank > highest || rank > 0 && there.ID != b.ID`}}},
	{name: "a priority announced without a pause", breaks: "Priority", catch: "restless", pkg: ".", parent: "TestPriority", edits: []edit{{
		"succession.go", `p.term == s.Term && p.again > now`, `p.again < 0`}}},
	{name: "a place kept with priority 0", breaks: "Priority", catch: "withdrawn", pkg: ".", parent: "TestPriority", edits: []edit{{
		"succession.go", `p.own(there) && p.lowered.Load() != b.Rank`, `false`}}},
	{name: "an announcement in doubt forgotten", breaks: "Priority", catch: "the_campaign_ends", pkg: ".", parent: "TestPriority", edits: []edit{{
		"succession.go", ` || p.term == s.Term) {`, `) {`}}},
	{name: "a withdrawal that failed taken for done", breaks: "Priority", catch: "withdrawn,_and_the_write_fails", pkg: ".", parent: "TestPriority", edits: []edit{{
		"succession.go", `f == nil && lowers`, `f == nil || lowers`}}},
	{name: "a successor that is not healthy keeps its place", breaks: "Priority", catch: "sick_later", pkg: ".", parent: "TestPriority", edits: []edit{{
		"succession.go", `!write && (e.o.Healthy == nil || !p.own(e.annex.Of(r).Bid))`, `!write`}}},
	{name: "two candidates with one ID overwrite each other without end", breaks: "Priority", catch: "twins", pkg: ".", parent: "TestPriority", edits: []edit{{
		"succession.go", ` && p.lowered.Load() != b.Rank`, ``}}},
	{name: "a priority announced to what was pushed late", breaks: "Priority", catch: "pushed_late", pkg: ".", parent: "TestPriority", edits: []edit{{
		"succession.go", `	if _, f := e.load(ctx, a); f != nil {
		return
	}
`, ``}}},
	{name: "an announced successor beats a named one", breaks: "successor", catch: "named_beats_announced", pkg: ".", parent: "TestPriority", edits: []edit{{
		"internal/annex/annex.go", `if successor != "" {`, `if successor != "" && next.None() {`}}},

	{name: "a successor forgotten when its caller does not wait", breaks: "successor", catch: "named,_and_the_caller_does_not_wait", pkg: ".", parent: "TestSuccessor", edits: []edit{{
		"resign.go", `err != nil && l.status.Load().phase == held {`, `err != nil {`}}},
	{name: "a successor kept when the lease goes on", breaks: "successor", catch: "named_in_vain", pkg: ".", parent: "TestSuccessor", edits: []edit{{
		"resign.go", `l.release.named.CompareAndSwap(&id, nil)`, ``}}},
	{name: "a request that is dropped written without end", breaks: "rec/request", catch: "TestRequestDropped", pkg: ".", edits: []edit{{
		"resignrequest.go", `p.taken == mostTaken || !backoff.pause(ctx, p.fault)`, `false`}}},
	{name: "a request refused by another version of Go", breaks: "rec/request", catch: "TestRequestOfAnotherUnicode", pkg: ".", edits: []edit{{
		"internal/annex/request.go", `!shown(f[2])`, `f[2] != Legible(f[2])`}}},

	// The history.
	{name: "a term that an older version left open goes on", breaks: "rec/kept", catch: "a_crash,_and_a_version_that_keeps_no_history", pkg: ".", parent: "TestHistory", edits: []edit{{
		"internal/annex/history.go", `case i < len(h)-1 || r.Vacant():`, `case i < len(h)-1:
		case r.Vacant():`}}},
	{name: "a term that begins with its attempt", breaks: "rec/kept", catch: "a_store_that_takes_no_writes", pkg: ".", parent: "TestHistory", edits: []edit{{
		"acquisition.go", `annex.Acquired(prev, holder, a.token, now)`, `annex.Acquired(prev, holder, a.token, now.Add(-15*time.Minute))`}}},
	{name: "a history refused by another version of Go", breaks: "rec/kept", catch: "a_rune_that_is_not_printed", pkg: ".", parent: "TestHistory", edits: []edit{{
		"internal/annex/history.go", `!shown(f[4])`, `f[4] != Legible(f[4])`}}},
	{name: "a time that JSON cannot hold", breaks: "rec/kept", catch: "times_that_JSON_cannot_hold", pkg: ".", parent: "TestHistory", edits: []edit{{
		"internal/annex/history.go", ` && ms > 0 && t.UTC().Year() < 9999`, ``}}},
	{name: "a history that grows", breaks: "rec/kept", catch: "bounds", pkg: ".", parent: "TestHistory", edits: []edit{{
		"internal/annex/history.go", `len(text) <= MaxHistory`, `len(text) > 0`}}},
	{name: "a history without a bound on its terms", breaks: "rec/kept", catch: "bounds", pkg: ".", parent: "TestHistory", edits: []edit{{
		"internal/annex/history.go", `h[max(0, len(h)-MaxTerms):]`, `h[0:]`}}},
	{name: "a term that expired stays open", breaks: "rec/kept", catch: "ends", pkg: ".", parent: "TestHistory", edits: []edit{{
		"internal/annex/history.go", `h[n-1].Reason, h[n-1].End = Expired, now`, `h[n-1].End = now`}}},
	{name: "a version without a history leaves no gap", breaks: "rec/kept", catch: "other_versions", pkg: ".", parent: "TestHistory", edits: []edit{{
		"internal/annex/history.go", `	if len(h) == 0 || h[len(h)-1].Token < r.Token {`, `	if len(h) == 0 {`}}},
	{name: "a start that is not in the token is lost", breaks: "rec/kept", catch: "the_token_has_the_start", pkg: ".", parent: "TestHistory", edits: []edit{{
		"internal/annex/history.go", `if !start.IsZero() && (t.Start.IsZero() ||`, `if !start.IsZero() && (t.Start.IsZero() && `}}},
	{name: "each record keeps its first term", breaks: "rec/kept", catch: "the_token_has_the_start", pkg: ".", parent: "TestHistory", edits: []edit{{
		"internal/annex/history.go", `if start == "" && t.Reason == "" && i == len(h)-1 {`, `if i < 0 {`}}},

	// A removed mark of presence.
	{name: "a removed mark ignored", breaks: "PresenceWatcher", catch: "deposed_at_once,_told_later,_and_stands_back", pkg: ".", parent: "TestPresence", edits: []edit{{
		"presence.go", `if f.kind == presenceLost {`, `if false {`}}},
	{name: "a renewal without the mark tried again", breaks: "PresenceWatcher", catch: "found_by_a_renewal", pkg: ".", parent: "TestPresence", edits: []edit{{
		"renew.go", `if f.kind == presenceLost {`, `if false {`}}},
	{name: "deposed and back at once", breaks: "PresenceWatcher", catch: "deposed_at_once,_told_later,_and_stands_back", pkg: ".", parent: "TestPresence", edits: []edit{{
		"release.go", `if phase == deposed || `, `if `}}},
	{name: "everybody who was replaced stands back", breaks: "PresenceWatcher", catch: "replaced_is_not_deposed", pkg: ".", parent: "TestPresence", edits: []edit{{
		"release.go", `if phase == deposed || `, `if phase >= lost || `}, {
		"standing.go", `b.term == s.Term && `, ``}}},
	{name: "writes as quickly as they come", breaks: "MinWriteInterval", catch: "apart", pkg: ".", parent: "TestMinWriteInterval", edits: []edit{{
		"timing.go", `if e.o.writeInterval == 0 || wrote == 0 {`, `if true {`}}},
	{name: "Run goes on after Resign and a loss", breaks: "Resign", catch: "deposed_while_it_resigns_in_Run", pkg: ".", parent: "TestPresence", edits: []edit{{
		"run.go", `if l.status.Load().why != stop {`, `if true {`}}},
}
