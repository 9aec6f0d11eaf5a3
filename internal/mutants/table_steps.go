package main

// stepMutants break the rules of the specification. The replays of the simulation catch
// each of them alone.
var stepMutants = []mutant{
	{name: "step: a takeover after H", breaks: "C", catch: "TestSteps", pkg: simulation, alone: true, edits: []edit{{
		"internal/rule/view.go", `return max(v.held, v.since+Challenge(v.record.TTL, v.Drift))`, `return max(v.held, v.since+Hold(v.record.TTL, v.Drift))`}}},
	{name: "step: another attempt that does not make challengers wait anew", breaks: "C", catch: "TestSteps", pkg: simulation, alone: true, edits: []edit{{
		"internal/rule/view.go", `if !v.any || !v.amended(r, v.record) {`, `if !v.any {`}}},
	{name: "step: a lease for longer than H", breaks: "H", catch: "TestSteps", pkg: simulation, alone: true, edits: []edit{{
		"internal/rule/rule.go", `return ttl - time.Duration(float64(ttl)*drift)`, `return ttl`}}},
	{name: "step: a lease from the answer to the acquisition", breaks: "H", catch: "TestSteps", pkg: simulation, alone: true, edits: []edit{{
		"acquire.go", `	start := won.start
`, `	start := clock.Mark(e.clock)
`}}},
	{name: "step: a lease from the answer to a renewal", breaks: "H", catch: "TestSteps", pkg: simulation, alone: true, edits: []edit{{
		"renew.go", `if err = l.extend(w.start); err == nil {`, `if err = l.extend(clock.Mark(l.e.clock)); err == nil {`}, {
		"renew.go", `	"github.com/elector-go/elector/backends"
`, `	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/clock"
`}}},
	{name: "step: a record that vanished or went back trusted", breaks: "distrust", catch: "TestSteps", pkg: simulation, alone: true, edits: []edit{{
		"internal/rule/view.go", `	if v.last.Exists() && (!r.Exists() || r.Token < v.last.Token) {
		v.distrust(0, now)
	}
`, ``}}},
	{name: "step: a contested acquisition believed", breaks: "claim", catch: "mx/vanished", alone: true, edits: []edit{{
		"internal/rule/view.go", `believed := v.claim.believed() && won.Token >= v.highest && v.held <= now`, `believed := true`}}},
	{name: "step: a contested acquisition written again", breaks: "claim", catch: "mx/vanished", alone: true, edits: []edit{{
		"acquire.go", `return ctx.Err() == nil && e.view.MayRetry(prev, a.nonce, a.token, e.now())`, `return true`}}},
	{name: "step: a creation that is never in doubt", breaks: "claim", catch: "TestSteps", pkg: simulation, alone: true, edits: []edit{{
		"internal/rule/claim.go", `c.state = doubtful
`, `c.state = trying
`}}},
	{name: "step: a contested record retaken at once", breaks: "claim", catch: "TestSteps", pkg: simulation, alone: true, edits: []edit{{
		"internal/rule/claim.go", `return c.state == over && nonce == c.nonce ||`, `return c.state != trying && nonce == c.nonce ||`}}},
	{name: "step: a token that does not grow", breaks: "tokens", catch: "TestSteps", pkg: simulation, alone: true, edits: []edit{{
		"internal/rule/rule.go", `max(highest+1, min, 1)`, `max(highest, min, 1)`}, {
		"internal/rule/rule.go", `if Plausible(wall) {`, `if false {`}}},
	{name: "step: a newer state ignored", breaks: "see", catch: "TestSteps", pkg: simulation, alone: true, edits: []edit{{
		"internal/rule/view.go", `return r.Token < v.last.Token || v.earlier(r)`, `return r.Token != v.last.Token || v.earlier(r)`}}},
	{name: "step: a lease that is over extended", breaks: "lost for good", catch: "TestSteps", pkg: simulation, alone: true, edits: []edit{{
		"lease.go", `		next.start = start
		return l.valid() == nil`, `		next.start = start
		return true`}}},
	{name: "step: a release while the worker drains", breaks: "release", catch: "TestSteps", pkg: simulation, alone: true, edits: []edit{{
		"release.go", `case on == leaseEnded && phase != resigned, on`, `case on`}, {
		"renew.go", `	for l.valid() == nil && l.due() {
		l.renewNow()
	}
	if l.valid() == nil {`, `	for l.valid() == nil && l.due() {
		l.renewNow()
	}
	if l.valid() == nil && l.status.Load().phase != draining {`}}},
	{name: "step: a lost lease released", breaks: "release", catch: "TestSteps", pkg: simulation, alone: true, edits: []edit{{
		"release.go", `on == workReturned && phase != lost:`, `on == workReturned:`}}},
	{name: "step: a release after H", breaks: "release", catch: "TestSteps", pkg: simulation, alone: true, edits: []edit{{
		"acquisition.go", `return clock.Elapsed(clk, w.start) < hold`, `return clock.Elapsed(clk, w.start) < 9*hold`}}},
	{name: "step: a release written twice", breaks: "release", catch: "TestSteps", pkg: simulation, alone: true, edits: []edit{{
		"release.go", `on != leaseEnded && phase == resigned, !l`, `!l`}, {
		"release.go", `		return l.release.begun.CompareAndSwap(false, true)`, `		if l.release.begun.Swap(true) {
			l.release.done = make(chan struct{})
		}
		return true`}}},
}
