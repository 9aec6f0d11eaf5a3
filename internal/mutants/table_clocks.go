package main

// clockMutants get the times of a lease wrong.
var clockMutants = []mutant{
	// The holder's clock.
	{name: "H counted from the response of a renewal", breaks: "2", catch: "exp/from-send", edits: []edit{{
		"renew.go", `return l.adopt(r), false`, `a.sent[len(a.sent)-1].start = e.clock.Now()
		return l.adopt(r), false`}}},
	{name: "H counted from the response of the acquisition", breaks: "2", catch: "pause/inflight", edits: []edit{{
		"acquire.go", `start := won.start`, `start := clock.Mark(e.clock)`}}},
	{name: "no drift margin for the holder", breaks: "1", catch: "mx/two-valid", edits: []edit{{
		"internal/rule/rule.go", `return ttl - time.Duration(float64(ttl)*drift)`, `return ttl`}}},
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
		"acquire.go", `case clock.Elapsed(e.clock, w.start) >= e.o.hold():`, `case clock.Elapsed(e.clock, w.start) < 0:`}}},
	{name: "a lost lease moves back", breaks: "2", catch: "ren/resurrect", edits: []edit{{
		"lease.go", `func (l *Lease) extend(start clock.Reading) error {`, `func (l *Lease) extend(start clock.Reading) error {
	if !l.status.Load().phase.over() {
		l.status.Store(&status{start: start})
	}`}, {"lease.go", `		l.replace(s, &next)
	}
}`, `		return next.cause
	}
}`}}},
	{name: "renewal capped by the new deadline", breaks: "6", catch: "ren/slow-then-cut", edits: []edit{{
		"renew.go", `within(max(l.Remaining(), 1))`, `within(max(l.hold, 1))`}}},
	{name: "Redis: a connection is set up within a request", breaks: "setup", catch: "TestSlowSetUp", module: "backends/redis", pkg: ".", edits: []edit{{
		"backends/redis/redis.go", `if !b.free() {`, `if false {`}}},
	{name: "a sign-in ends with its request", breaks: "setup", catch: "TestOutlives", pkg: "./internal/setup", edits: []edit{{
		"internal/setup/tries.go", `		return t.late(ctx, now)
`, `		t.kill()
		return t.late(ctx, now)
`}}},
	{name: "a refusal ends a campaign that was answered", breaks: "refused", catch: "TestRefusedForAWhile", pkg: ".", edits: []edit{{
		"errors.go", `(f.kind == hopeless || !e.answered.Load())`, `(f.kind == hopeless || !e.answered.Load() || true)`}}},
	{name: "a refusal ends no campaign", breaks: "refused", catch: "TestRefusedAtOnce", pkg: ".", edits: []edit{{
		"errors.go", `(f.kind == hopeless || !e.answered.Load())`, `(f.kind == hopeless || !e.answered.Load() && false)`}}},
	{name: "a waiter ends when its reads are refused", breaks: "refused", catch: "TestRefusedForAWhile", pkg: ".", edits: []edit{{
		"campaign.go", `c.watcher.patient, c.watcher.waits = true, c`, `c.watcher.waits = c`}}},
	{name: "an observer ends when its reads are refused", breaks: "refused", catch: "TestRefusedForAWhile", pkg: ".", edits: []edit{{
		"observe.go", `shown, w.patient = l, true`, `shown = l`}}},
	{name: "refusals are tried again every few seconds", breaks: "refused", catch: "TestRefusedPauses", pkg: ".", edits: []edit{{
		"outage.go", `		longest = longestRefused
`, `		longest = longestPause
`}}},
	{name: "a refusal is logged as an outage", breaks: "refused", catch: "TestRefusedForAWhile", pkg: ".", edits: []edit{{
		"outage.go", `		level = slog.LevelError
`, `		level = slog.LevelWarn
`}}},
	{name: "a deadline hides a refusal", breaks: "refused", catch: "TestRefusedWaiter", pkg: ".", edits: []edit{{
		"candidacy.go", `		c.last = f // who leads is not known any more
`, ``}}},
	{name: "a deadline reports a refusal that is over", breaks: "refused", catch: "over", pkg: ".", parent: "TestRefusedDeadlines", edits: []edit{{
		"watch.go", `	case w.live.Load() && !w.doubt():
		w.fault = nil
`, ``}}},
	{name: "a deadline reports a Watch that is refused, and not who leads", breaks: "refused", catch: "the_watch_alone", pkg: ".", parent: "TestRefusedDeadlines", edits: []edit{{
		"watch.go", `case w.fault == nil && !w.readable.Load():`, `case w.fault == nil:`}}},
	{name: "a waiter that is refused does not show it", breaks: "refused", catch: "TestRefusedInPause", pkg: ".", edits: []edit{{
		"campaign.go", `c.watcher.patient, c.watcher.waits = true, c`, `c.watcher.patient = true`}}},
	{name: "a refusal with an id is logged again and again", breaks: "refused", catch: "TestRefusedWithIDs", pkg: ".", edits: []edit{{
		"errors.go", `return aside.Reason(strings.ReplaceAll(err.Error(), name, ""))`, `_ = aside.Reason
	return strings.ReplaceAll(err.Error(), name, "")`}}},
	{name: "a doubt that a failed read was to settle is forgotten", breaks: "refused", catch: "TestDoubtStays", pkg: ".", edits: []edit{{
		"watch.go", `	w.last = sent
`, `	w.last, w.settled = sent, doubts
`}}},
	{name: "the state hides a refusal", breaks: "refused", catch: "TestRefusedForAWhile", pkg: ".", edits: []edit{{
		"campaign.go", `e.refused.Store(f.permanent())`, `e.refused.Store(false)`}}},
	{name: "a refusal ends a member of a group", breaks: "refused", catch: "TestRefusedForAWhile", pkg: "./partition", edits: []edit{{
		"partition/errors.go", `isRefusal(err) && !worked`, `isRefusal(err)`}}},
	{name: "a release that is refused is given up", breaks: "refused", catch: "TestRefusedRelease", pkg: ".", edits: []edit{{
		"errors.go", `f.permanent() && f.kind != refused }`, `f.permanent() }`}}},
	{name: "NATS: a bucket that is made again is read as before", breaks: "refused", catch: "TestBucketMadeAgain", module: "backends/nats", pkg: ".", edits: []edit{{
		"backends/nats/request.go", `b.replicated.Store(true) // the bucket`, `b.replicated.Store(b.replicated.Load()) // the bucket`}}},
	{name: "a sign-in never gets more time", breaks: "setup", catch: "TestGrows", pkg: "./internal/setup", edits: []edit{{
		"internal/setup/tries.go", `if t.expired++; !late {`, `if late || true {`}}},
	{name: "sign-ins at the same time", breaks: "setup", catch: "TestOneAtATime", pkg: "./internal/setup", edits: []edit{{
		"internal/setup/tries.go", `if t.now == nil {`, `if true {`}}},
	{name: "the next sign-in without a pause", breaks: "setup", catch: "TestRefusals", pkg: "./internal/setup", edits: []edit{{
		"internal/setup/tries.go", `if t.failed == 0 {`, `if t.failed >= 0 {`}}},
	{name: "MySQL: a server that takes no writes keeps its connections", breaks: "setup", catch: "TestReadOnlyCostsTheConnection", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/connect.go", `refused := readOnly(err)`, `refused := readOnly(nil)`}}},
	{name: "authorities are read once", breaks: "rotation", catch: "TestAuthoritiesRotate", pkg: "./internal/tlsfiles", edits: []edit{{
		"internal/tlsfiles/tlsfiles.go", `config.InsecureSkipVerify = true`, `config.RootCAs, _ = f.authorities()`}}},
	{name: "a certificate for any name is taken", breaks: "rotation", catch: "TestAuthoritiesRotate", pkg: "./internal/tlsfiles", edits: []edit{{
		"internal/tlsfiles/tlsfiles.go", `for _, o.DNSName = range names {`, `for range names {`}}},
	{name: "a step waits for a callback until it returns", breaks: "aside", catch: "Renewed", pkg: ".", parent: "TestBlockedAcquired", edits: []edit{{
		"internal/aside/queue.go", `&Queue{patience: patience,`, `&Queue{patience: patience + 1000*time.Hour,`}}},
	{name: "a step waits for each callback behind one that does not return", breaks: "aside", catch: "TestQueue", pkg: "./internal/aside", edits: []edit{{
		"internal/aside/queue.go", `if q.stalled {`, `if false {`}}},
	{name: "a log that nobody reads stops a renewal", breaks: "aside", catch: "TestLogStalls", pkg: ".", edits: []edit{{
		"internal/aside/handler.go", `l.queue.Do(func() { handle(l.Handler, ctx, r) })`, `handle(l.Handler, ctx, r)`}}},
	{name: "calls are lost in a crowd", breaks: "aside", catch: "TestCrowd", pkg: "./internal/aside", edits: []edit{{
		"internal/aside/queue.go", `if q.stalled && len(q.calls) >= most {`, `if len(q.calls) >= most {`}}},
	{name: "a --url-file is read once", breaks: "rotation", catch: "TestURLFileIsReadAgain", module: "cmd/elector", pkg: "./internal/cli", edits: []edit{{
		"cmd/elector/internal/cli/cli.go", `ctx = storeurl.WithSource(ctx, t.address)`, `_ = storeurl.WithSource`}}},
	{name: "serve reads its list of stores once", breaks: "rotation", catch: "TestServeReadsItsFileAgain", module: "cmd/elector", pkg: "./internal/cli", edits: []edit{{
		"cmd/elector/internal/status/fleet.go", `if again := s.f.o.Again; again != nil {`, `if again := s.f.o.Again; false {`}}},
	{name: "Redis: the password is read once", breaks: "rotation", catch: "TestPasswordIsReadAgain", module: "backends/redis", pkg: ".", edits: []edit{{
		"backends/redis/open.go", `config.CredentialsProviderContext = func(context.Context) (string, string, error) { return login() }`, `user, password, err := login()
	config.CredentialsProviderContext = func(context.Context) (string, string, error) { return user, password, err }`}}},
	{name: "NATS: the password is read once", breaks: "rotation", catch: "TestCredentials", module: "backends/nats", pkg: ".", edits: []edit{{
		"backends/nats/open.go", `		options.UserInfo = func() (string, string) {
			user, password, err := login()`, `		user, password, err := login()
		options.UserInfo = func() (string, string) {`}}},
	{name: "NATS: a file of credentials that cannot be read is not named", breaks: "rotation", catch: "TestCredentials", module: "backends/nats", pkg: ".", edits: []edit{{
		"backends/nats/open.go", `if unread := b.unread.Load(); unread != nil {`, `if unread := b.unread.Load(); false {`}}},
	{name: "a dropped Watch ends as a cancelled one", breaks: "rotation", catch: "TestDrop", pkg: "./internal/listening", edits: []edit{{
		"internal/listening/listening.go", `cmp.Or(c.dropped, err)`, `cmp.Or(err, c.dropped)`}}},
	{name: "PostgreSQL: a service file moves a process to another database", breaks: "rotation", catch: "TestServiceFile", pkg: "./backends/postgres", edits: []edit{{
		"backends/postgres/open.go", `!slices.Equal(places(c), places(to))`, `len(places(c)) != len(places(to))`}}},
	{name: "lost lines of the log are not told", breaks: "aside", catch: "TestQueue", pkg: "./internal/aside", edits: []edit{{
		"internal/aside/queue.go", `q.dropped++`, `_ = q.dropped`}}},
	{name: "a dead worker kept in office", breaks: "StallTimeout", catch: "ren/stall", edits: []edit{{
		"renew.go", `return most > 0 && l.e.clock`, `return most < 0 && l.e.clock`}}},

	// The challenger's clock.
	{name: "challenger's clock started before the read", breaks: "3", catch: "mx/two-valid", edits: []edit{{
		"request.go", `if e.view.Read(r, mark, now) {`, `if e.view.Read(r, mark, start) {`}}},
	{name: "no drift margin for the challenger", breaks: "1", catch: "clk/drift", edits: []edit{{
		"internal/rule/rule.go", `return ttl + time.Duration(float64(ttl)*drift)`, `return ttl`}}},
	{name: "challenger waits for twice the TTL", breaks: "tau", catch: "mx/takeover-bound", edits: []edit{{
		"internal/rule/rule.go", `return ttl + time.Duration(float64(ttl)*drift)`, `return 2 * ttl`}}},
	{name: "vanished record taken as vacant at once", breaks: "3", catch: "mx/vanished", edits: []edit{{
		"internal/rule/view.go", `(!r.Exists() || r.Token < v.last.Token)`, `r.Exists() && r.Token < v.last.Token`}}},
	{name: "acquisition goes on after a winner came and went", breaks: "3", catch: "mx/vanished", edits: []edit{{
		"acquire.go", `return ctx.Err() == nil && e.view.MayRetry(prev, a.nonce, a.token, e.now())`, `return true`}}},
	{name: "a creation repeated with an old token", breaks: "5", catch: "TestRepeatedCreation", pkg: ".", edits: []edit{{
		"acquisition.go", `if !prev.Exists() {`, `if false {`}}},
	{name: "acquisition believed after a winner came and went", breaks: "3", catch: "mx/vanished", edits: []edit{{
		"internal/rule/view.go", `believed := v.claim.believed() && won.Token >= v.highest && v.held <= now`, `believed := true`}}},
	{name: "late creation believed although a winner was seen", breaks: "3", catch: "while_it_is_on_its_way", pkg: ".", parent: "TestLateCreation", edits: []edit{{
		"internal/rule/view.go", `believed := v.claim.believed() && won.Token >= v.highest`, `believed := won.Token >= v.highest`}}},
	{name: "late creation retaken although a winner was seen before it was given up", breaks: "3", catch: "before_it_was_given_up", pkg: ".", parent: "TestLateCreation", edits: []edit{{
		"internal/rule/claim.go", `nonce == c.nonce && c.state == trying {`, `nonce == c.nonce {`}}},
	{name: "a creation in doubt retaken", breaks: "7", catch: "amb/late-creation-twice", edits: []edit{{
		"internal/rule/claim.go", `nonce == c.nonce && c.state == trying {`, `nonce == c.nonce && c.believed() {`}}},
	{name: "a lease that was created in doubt retaken", breaks: "7", catch: "created_in_doubt", pkg: ".", parent: "TestOverrun", edits: []edit{{
		"internal/rule/claim.go", `nonce == c.nonce && c.state == trying {`, `nonce == c.nonce && c.believed() {`}}},
	{name: "a winner forgotten that a late answer shows", breaks: "3", catch: "a_late_answer", pkg: ".", parent: "TestCreationInDoubt", edits: []edit{{
		"internal/rule/view.go", `		v.doubtCreation(r)
		return false`, `		return false`}}},
	{name: "a creation in doubt adopted by the holder", breaks: "7", catch: "another_write_of_the_same", pkg: ".", parent: "TestCreationInDoubt", edits: []edit{{
		"acquire.go", `	own.sent.only(won)
`, ``}}},
	{name: "a state that was put back taken for an extended one", breaks: "3", catch: "put_back,_with_fewer_extensions", pkg: ".", parent: "TestCreationInDoubt", edits: []edit{{
		"internal/rule/view.go", `added := r.Extensions != s.Extensions && r.Extensions.Names(s.Extensions)`, `added := r.Extensions != s.Extensions`}}},
	{name: "a vanishing forgotten that a late read shows", breaks: "3", catch: "TestVanished", pkg: "./internal/rule", edits: []edit{{
		"internal/rule/view.go", `if !r.Exists() && v.appeared <= mark {`, `if false {`}}},
	{name: "a winner forgotten whose token was lower", breaks: "3", catch: "with_a_lower_token", pkg: ".", parent: "TestPushedRival", edits: []edit{{
		"internal/rule/view.go", `case !v.record.Exists() && r.Attempt.Nonce != v.last.Attempt.Nonce:`, `case false:`}, {
		"internal/rule/view.go", `if v.claim.creates && r.Exists() {`, `if false {`}}},
	{name: "a creation that was pushed and is gone does not count as vanished", breaks: "3", catch: "pushed_and_gone", pkg: "./internal/rule", parent: "TestPushed", edits: []edit{{
		"internal/rule/view.go", `v.distrust(r.TTL, now)`, `v.distrust(0, now)`}}},
	{name: "late creation retaken although a winner was seen after it was given up", breaks: "3", catch: "after_it_was_given_up", pkg: ".", parent: "TestLateCreation", edits: []edit{{
		"internal/rule/claim.go", `func (c *claim) contest() { c.state, c.earlier = contested, nil }`, `func (c *claim) contest() {
	if c.believed() {
		c.state = contested
	}
}`}, {
		"internal/rule/claim.go", `nonce == c.nonce && c.state == trying {`, `nonce == c.nonce && c.believed() {`}}},
	{name: "a vanished record forgotten by the next push", breaks: "3", catch: "mx/vanished", pkg: "./internal/rule", parent: "TestPushed", edits: []edit{{
		"internal/rule/view.go", `	case !r.Exists():
		v.distrust(0, now)`, `	case !r.Exists():`}}},
	{name: "a vacancy written to unread, so that no candidate gives way", breaks: "J", catch: "sim/release-writes", edits: []edit{{
		"acquire.go", `	if !e.fromOpen(s) && !e.succeeds(s) {`, `	if !e.fromOpen(s) && !e.succeeds(s) && !r.Exists() {`}}},
	{name: "a leader forgotten when the one before is shown late", breaks: "3", catch: "mx/vanished-late", pkg: "./internal/rule", parent: "TestPushed", edits: []edit{{
		"internal/rule/view.go", `max(v.last.TTL, v.before, ttl)`, `max(v.last.TTL, ttl)`}}},
	{name: "lower token not held", breaks: "3", catch: "mx/rollback", edits: []edit{{
		"internal/rule/view.go", `(!r.Exists() || r.Token < v.last.Token)`, `!r.Exists()`}}},

	// The other clocks.
	{name: "wall clock ignored", breaks: "Clocks", catch: "clk/suspend", edits: []edit{{
		"internal/clock/clock.go", `return max(mono, wall)`, `return mono`}}},
	{name: "boot-time clock ignored", breaks: "Clocks", catch: "clk/suspend", edits: []edit{{
		"internal/clock/clock.go", `mono = max(mono, c.Boot()-start.Boot)`, `mono = max(mono, 0)`}}},
	{name: "wall clock alone", breaks: "Clocks", catch: "clk/wall-step", edits: []edit{{
		"internal/clock/clock.go", `return max(mono, wall)`, `return wall`}}},
	{name: "an acquisition leaves its outage open", breaks: "logs", catch: "TestOutageEnds", pkg: ".", edits: []edit{{
		"acquire.go", `	r, f, pending := e.write(`, `	backoff = e.newBackoff("campaign")
	r, f, pending := e.write(`}}},
}
