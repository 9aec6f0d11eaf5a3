package main

// traceMutants make a Trace of a group report what is not so.
var traceMutants = []mutant{
	hostile("a lost lease traced as given up", "Trace", "TestTrace", edit{
		"partition/sitting.go", `if info.Cause = cause; x.lease.Remaining() == 0 {`, `if info.Cause = cause; false {`}),
	hostile("a share traced after the seat is gone", "Trace", "TestTrace", edit{
		"partition/sit.go", `	g.tracePlanned(s.ctx, 0)
`, ``}),
	hostile("a drain traced from the acquisition", "Trace", "TestTraceOfWorkers", edit{
		"partition/sitting.go", `info.Drain = now - x.since`, `info.Drain = now`}),
	{name: "a drain counted as time without an owner", breaks: "partitions Trace", catch: "TestGroupSlowDrain", pkg: "./electortest", edits: []edit{{
		"partition/take.go", `			x.owned = read
`, `			_ = read
`}}},
	{name: "the end of a lease counted as a failure of its worker", breaks: "partitions Trace", catch: "TestTraceOfLoss", pkg: "./partition", edits: []edit{{
		"partition/work.go", `			<-l.ctx.Done() // the`, `			// the`}}},
}
