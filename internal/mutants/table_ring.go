package main

// ringMutants break how a group finds out that members have died, and how partitions move.
var ringMutants = []mutant{
	ring("only deputies watch seats", "polled/60/first/30", edit{
		"partition/ring.go", `len(seats) < n; i++ {`, `len(seats) < n-9; i++ {`}),
	ring("seats are hardly ever watched", "pushed/60/first/30", edit{
		"partition/reads.go", `return f.group.challenge() * 3 / 5`, `return f.group.challenge() * 30`}, edit{
		"partition/reads.go", `f.seatsAt = min(f.seatsAt, free)`, `_ = free`}),
	ring("nobody but a deputy looks for other members that have died", "pushed/60/first/30", edit{
		"partition/ring.go", `	case !gone:
`, `	case !gone || true:
`}),
	ring("a holder that another member has replaced is replaced again", "polled/60/last/1", edit{
		"partition/govern.go", `	g.loadSeats(ctx, seats) // another`, `	// another`}),
	ring("each look at a member that is gone begins the wait anew", "polled/60/first/3/settle_20s", edit{
		"partition/ring.go", `min(f.changed, f.mends-g.o.Settle)`, `now - g.o.Settle`}),
	{name: "an owner stops before the next one can know", breaks: "partitions 5", catch: "polled", pkg: "./partition", parent: "TestMoveGap", edits: []edit{{
		"partition/move.go", `r.alone || r.live {`, `true {`}}},
	{name: "a worker that hangs keeps its partition", breaks: "StallTimeout", catch: "TestOneStalls", pkg: "./partition", edits: []edit{{
		"partition/lease.go", `if at == 0 || l.group.options.StallTimeout == 0 {`, `if at == 0 || l.group.options.StallTimeout >= 0 {`}}},
	{name: "a Watch that ignores its context holds up Run", breaks: "partitions", catch: "TestDeafWatch", pkg: "./partition", edits: []edit{{
		"partition/sit.go", `g.active.Go(func() { s.follower.watch(`, `helpers.Go(func() { s.follower.watch(`}}},
}

// ring makes a mutant that a disaster must catch.
func ring(name, disaster string, edits ...edit) mutant {
	return mutant{name: name, breaks: "partitions 10", catch: disaster, pkg: "./partition", parent: "TestAnyMayDie", edits: edits}
}
