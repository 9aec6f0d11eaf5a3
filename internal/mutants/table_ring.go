package main

// ringMutants break how a group finds out that members have died, and how partitions move.
var ringMutants = []mutant{
	ring("only deputies watch seats", "polled/60/first/30", edit{
		"partition/ring.go", `len(seats) < n; i++ {`, `len(seats) < n-9; i++ {`}),
	ring("seats are hardly ever watched", "pushed/60/first/6", edit{
		"partition/follow.go", `return f.group.challenge() * 3 / 5`, `return f.group.challenge() * 30`}),
	ring("seats are not read when their holders may be replaced", "pushed/60/first/30", edit{
		"partition/follow.go", `f.seatsAt = min(f.seatsAt, free)`, `_ = free`}),
	ring("nobody but a deputy looks for other members that have died", "pushed/60/first/30", edit{
		"partition/ring.go", `	case !gone:
`, `	case !gone || true:
`}),
	ring("who looks for other members reads as rarely as a deputy", "pushed/60/first/30", edit{
		"partition/follow.go", `	case !planned, f.mends != 0:`, `	case !planned:`}),
	ring("a holder that another member has replaced is replaced again", "polled/60/last/1", edit{
		"partition/govern.go", `	g.loadSeats(ctx, due) // another`, `	// another`}),
	{name: "an owner stops before the next one can know", breaks: "partitions 5", catch: "polled", pkg: "./partition", parent: "TestMoveGap", edits: []edit{{
		"partition/move.go", `s.follower.isAlone() || s.follower.pushes() {`, `true {`}}},
	{name: "a Watch that ignores its context holds up Run", breaks: "partitions", catch: "TestDeafWatch", pkg: "./partition", edits: []edit{{
		"partition/sit.go", `g.active.Go(func() { s.follower.watch(`, `helpers.Go(func() { s.follower.watch(`}}},
}

// ring makes a mutant that a disaster must catch.
func ring(name, disaster string, edits ...edit) mutant {
	return mutant{name: name, breaks: "partitions 10", catch: disaster, pkg: "./partition", parent: "TestAnyMayDie", edits: edits}
}
