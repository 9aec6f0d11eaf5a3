package main

// coldMutants break what a group does when a store refuses or hangs, and what it shows.
var coldMutants = []mutant{
	hostile("a refused write of a partition not logged", "writes", "TestRefusedWrites", edit{
		"partition/settle.go", `case again && x.state == wanted && !isRefused(o.Err):`, `case again && x.state == wanted && !isRefused(o.Err) && x.tries < 0:`}),
	hostile("a refused plan not logged", "writes", "TestRefusedWrites", edit{
		"partition/govern.go", `f.complain("cannot write the plan", err)`, `f.complain("cannot write the plan", nil)`}),
	hostile("a write that is refused tried again at once", "writes", "TestRefusedForEver", edit{
		"partition/settle.go", `if s.later(x); !again && isRefused(o.Err) {`, `if s.later(x); isRefused(o.Err) {`}),
	hostile("owners by seats that were read before", "Owners", "TestOwnersNewcomer", edit{
		"partition/state.go", `now.seats[in.Seat]`, `v.seats[in.Seat]`}),
	hostile("a drained member that has left stays drained", "drained", "TestDrainedLeaves", edit{
		"partition/govern.go", `len(f.staying()) < len(f.drained)`, `len(f.staying()) < 0`}),
	hostile("a drained member that is alone owns nothing", "drained", "TestDrainedAlone", edit{
		"partition/reads.go", `		members = drained // no`, `		members = map[int]int{} // no`}),
	hostile("requests that hang are not counted", "hung", "TestDeafBackend", edit{
		"internal/store/client.go", `c.hung[r.Rank] >= mostHung`, `c.hung[r.Rank] >= 1<<20`}),
	hostile("only deputies look for the seats of a group without a plan", "10", "TestPlanAndDeputiesDeleted", edit{
		"partition/govern.go", `return leaving || gone ||`, `return leaving || gone && false ||`}),
	hostile("a creation that was in doubt is believed", "2", "TestCreationInDoubt", edit{
		"partition/settle.go", `(!again || !rule.Unconfirmed(r)):`, `(!again || !rule.Unconfirmed(r) || s.founds()):`}),
	hostile("a creation that was in doubt stays where the plan has no more use for it", "2", "TestCreationMovesOn", edit{
		"partition/settle.go", `case applied && s.founds() &&`, `case applied && s.group == nil &&`}),
	hostile("a record written again too late is released", "5", "TestLateVacancyLingers", edit{
		"partition/settle.go", `x.leased() && applied && !rule.Unconfirmed(r): // too late`, `x.leased() && applied: // too late`}),
	hostile("a record that is not confirmed counts as seen", "8", "TestAuditUnconfirmed", edit{
		"partition/settle.go", `if s.auditLater(x); rule.Unconfirmed(r) {`, `if s.auditLater(x); rule.Unconfirmed(r) && x.lease == nil {`}),
	hostile("large requests that fail repeated for ever", "batches", "TestLargeRequestsFail", edit{
		"internal/store/size.go", `s.now, s.answers = min(s.now, part), 0`, `s.answers = 0`}),
	hostile("a resize waits for a seat of a newer version", "Resize", "TestResizeNewerSeat", edit{
		"partition/resize.go", `s.Free == rule.Never`, `s.Free == 0`}),
	hostile("what Owner has shown does not count", "4", "TestPutBackAfterOwner", edit{
		"partition/state.go", `g.trail(partition).Glimpse(r)`, `g.trail(partition)`}),
	{name: "what Owner has shown since the read does not count", breaks: "partitions 4", catch: "TestGlimpseBetween", pkg: "./internal/rule", edits: []edit{{
		"internal/rule/partition.go", `case r.Exists() && r.Token < t.highest.Load():`, `case r.Exists() && r.Token < min(t.highest.Load(), 0):`}}},
}
