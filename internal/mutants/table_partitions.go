package main

// hazardous makes a mutant that a hazard of partitions must catch, by a rule of
// docs/design-partitions.md.
func hazardous(name, rule, hazard string, edits ...edit) mutant {
	return mutant{name: name, breaks: "partitions " + rule, catch: hazard, pkg: simulation, parent: "TestHazards", edits: edits}
}

// partitionMutants break the rules of partitions.
var partitionMutants = []mutant{
	hazardous("a partition's lease valid without its seat's", "1", "deposed-asleep", edit{
		"partition/lease.go", `	if err := l.seat.Check(); err != nil {
		return err
	}
`, ``}, edit{"partition/lease.go", `	left := l.seat.Remaining()`, `	left := time.Hour`}),
	hazardous("a partition's lease valid although its record cannot be read", "1", "audit-ends", edit{
		"partition/lease.go", `	if l.unaudited() > 0 {
		return nil
	}`, `	if true {
		return nil
	}`}, edit{"partition/lease.go", `min(left, max(0, l.unaudited()))`, `left`}),
	hazardous("an incarnation over at the first sight of another", "3", "seat-deleted", edit{
		"internal/rule/partition.go", `	if end := a.since + Challenge(ttl, s.drift); a.sent < end {`, `	if end := a.since; a.sent < end-1e12 {`}),
	hazardous("no partition of an absent incarnation is ever free", "3", "many-incarnations", edit{
		"internal/rule/partition.go", `	if end := a.since + Challenge(ttl, s.drift); a.sent < end {
		return max(end, now+1)
	}
	return 0`, `	_ = a
	return Never`}),
	hazardous("a missing record is free", "4", "deleted-and-moved", edit{
		"internal/rule/partition.go", `	if !r.Exists() {
		return held, nil
	}
	i, err`, `	if !r.Exists() {
		return 0, nil
	}
	i, err`}),
	hazardous("a record that ordinary elections take", "4", "ordinary-election", edit{
		"internal/rule/partition.go", `SeatName = "c_seat"`, `SeatName = "k_seat"`}),
	hazardous("a record of a newer version taken", "4", "newer-partition", edit{
		"internal/rule/partition.go", `if other := r.Extensions.Critical(SeatName); other != "" {`, `if other := r.Extensions.Critical(SeatName); other == "never" {`}),
	hazardous("a drain that is not awaited", "5", "slow-drain", edit{
		"partition/move.go", `			x.lease.stop("the partition moves to another member of the group")`, `			x.lease.end(elector.ErrResigned)
			x.enter(ended, now)`}),
	hazardous("a worker that stays keeps its partition", "5", "worker-stays", edit{
		"partition/move.go", `			x.until = s.deadline(now)
			x.next = min(`, `			x.until = now + 1000*g.options.ReleaseTimeout
			x.next = min(`}),
	hazardous("a partition told to be vacant while its worker stays", "5", "worker-stays", edit{
		"partition/move.go", `	x.until = g.now() + g.challenge()
`, `	x.until = g.now()
`}),
	hazardous("a release that the store loses", "6", "release-lost", edit{
		"partition/settle.go", `	x.enter(told, s.group.now())
	x.next = s.group.now() + s.auditEvery()
`, `	delete(s.slots, x.partition)
`}),
	hazardous("a deleted record not written again", "8", "record-deleted", edit{
		"partition/settle.go", `case !r.Exists() && x.lease.Remaining() > 0:`, `case r.TTL < 0 && x.lease.Remaining() > 0:`}),
	hazardous("a lost acquisition not seen", "8", "take-lost", edit{
		"partition/settle.go", `		case r.Attempt == x.record.Attempt && r.Token`, `		case r.Exists() || r.Attempt == x.record.Attempt && r.Token`}),
	hazardous("the holder of a seat never replaced", "9", "next-owner-dies", edit{
		"partition/govern.go", `		if f.deposable(i) <= g.now() {`, `		if f.deposable(i) <= g.now() && false {`}),
	hazardous("settled at once", "12", "start-together", edit{
		"partition/group.go", `		g.o.Settle = g.options.RenewEvery`, `		g.o.Settle = 1`}),
	hazardous("a leaver that counts", "12", "leaver", edit{
		"partition/reads.go", `!f.foreign[i] && !n.leaving && n.partitions`, `!f.foreign[i] && n.partitions`}),
	hazardous("members replaced as soon as the store is back", "14", "all-lapse", edit{
		"partition/ring.go", `return max(s.Free+late, f.steady+2*f.group.options.RenewEvery)`, `return s.Free + late`}),
	hazardous("a plan of a newer version followed", "15", "foreign-plan", edit{
		"partition/records.go", `form != planForm {`, `form == "" {`}),
	hazardous("a foreign seat that stops all plans", "15", "foreign-seat", edit{
		"partition/reads.go", `ok = ok && (o.Err == nil || f.foreign[i])`, `ok = ok && o.Err == nil`}),
	hazardous("founding for ever", "founding", "plan-deleted", edit{
		"partition/govern.go", `founding := p.founding && !f.allWhole(p)`, `founding := p.founding`}),
	hazardous("a plan that is founding again", "founding", "plan-deleted", edit{
		"partition/govern.go", `again.founding = false`, `again.founding = true`}),
	hazardous("a sick member that stays", "Healthy", "unhealthy", edit{
		"partition/seat.go", `	o.Value, o.StallTimeout = "", 0
`, `	o.Value, o.StallTimeout, o.Healthy = "", 0, nil
`}),
	hazardous("a seat that is asked for is left without a handover", "requests", "asked-to-resign", edit{
		"partition/sit.go", `ctx.Err() != nil || s.lease.Context().Err() != nil ||`, `ctx.Err() != nil ||`}),
	hazardous("a slow worker that holds up others", "moves", "slow-drain", edit{
		"partition/move.go", `	requests, cancel := context.WithCancel(s.ctx)
`, `	requests, cancel := context.WithCancel(s.ctx)
	for _, x := range s.slots {
		if x.state == draining && x.next > now && !x.returned.Load() {
			cancel()
			return g.now() + g.options.RenewEvery
		}
	}
`}),
	hostile("a seat that drains ends all workers at once", "5", "TestSeatDrains", edit{
		"partition/settle.go", `context.WithCancelCause(s.ctx)`, `context.WithCancelCause(s.lease.Context())`}),
	hostile("a release to confirm forgotten when the plan gives the partition back", "5", "TestReleaseForgotten", edit{
		"partition/move.go", `, owes: true}`, `}`}),
	hostile("a dead seat behind a gap not seen", "9", "TestSeatBehindGap", edit{
		"partition/reads.go", `case named > f.top:`, `case named > maxSeats:`}),
	hostile("all seats read up to any that a partition names", "9", "TestSeatFarAway", edit{
		"partition/take.go", `if !o.Record.Vacant() { // otherwise`, `if true { // otherwise`}),
	hostile("all seats read for ever by who waited for one behind a gap", "9", "TestReadsAfterGap", edit{
		"partition/reads.go", `case f.beyond && !waits:`, `case f.beyond && f.s == nil:`}),
	hostile("a foreign record read again and again by who gave it up", "5", "TestReadsOfForeign", edit{
		"partition/settle.go", `case x.gaveUp() && isForeign(o.Err):`, `case x.state == ended && isForeign(o.Err):`}),
	hostile("a release that waits for a foreign record", "5", "TestReadsOfForeign", edit{
		"partition/settle.go", `case x.gaveUp() && isForeign(o.Err):`, `case x.state == told && isForeign(o.Err):`}),
	hostile("a release that one read confirms, whatever it shows", "5", "TestReleaseHidden", edit{
		"partition/settle.go", `case x.state == told && named && in != s.own:`, `case x.state == told:`}),
	hostile("a lease that is not audited while it drains", "8", "TestLongDrain", edit{
		"partition/move.go", `		case x.state == held, x.state == draining, x.state == told:
			checks`, `		case x.state == draining:
			x.next = x.until
		case x.state == held, x.state == told:
			checks`}),
	hostile("requests without an answer that hold up a leaver", "5", "TestLeave", edit{
		"partition/move.go", `		defer context.AfterFunc(ctx, cancel)()
`, ``}),
	hostile("seats too old to plan by once all are read", "11", "TestSlowSeats", edit{
		"partition/govern.go", `f.sight < now-`, `f.counted < now-`}),
	hostile("a foreign seat planned by some and not by others", "15", "TestForeignSeatFlaps", edit{
		"partition/reads.go", `f.foreign[at.seat] {
				members`, `false {
				members`}),
	hostile("a foreign record that keeps a group founding", "founding", "TestFoundingEnds", edit{
		"partition/move.go", `rule.Unconfirmed(x.record)) && !x.foreign {`, `rule.Unconfirmed(x.record)) {`}),
	hostile("a record that another creation may have replaced counts as any other", "4", "TestLateCreationOfTheDead", edit{
		"internal/rule/partition.go", `	_, is := r.Extensions.Get(NewName)
	return is`, `	return false`}),
	hostile("no record is ever confirmed", "4", "TestFoundingEnds", edit{
		"partition/move.go", `x.leased() && rule.Unconfirmed(x.record):`, `false:`}, edit{
		"partition/settle.go", `if s.auditLater(x); rule.Unconfirmed(r) {`, `if s.auditLater(x); false { // and looks later`}),
	hostile("a plan that counts before it is confirmed", "founding", "TestLateFoundingPlan", edit{
		"partition/govern.go", `created := !f.record.Exists()`, `created := false`}),
	hostile("an edited plan not followed", "the table", "TestPlanEdited", edit{
		"partition/reads.go", ` || before.Value != o.Record.Value // also`, ` // also`}),
	{name: "a seat written in less time than two writes are apart", breaks: "liveness", catch: "TestSlowWriting", pkg: "./partition", edits: []edit{{
		"partition/follow.go", `g.options.RenewEvery+g.options.RequestTimeout`, `g.options.RequestTimeout`}}},
}

// hostile makes a mutant that one of the package's own tests must catch.
func hostile(name, rule, test string, edits ...edit) mutant {
	return mutant{name: name, breaks: "partitions " + rule, catch: test, pkg: "./partition", edits: edits}
}
