package main

func init() {
	const module = "integrations/electorgocron"
	for _, m := range gocronMutants {
		m.pkg, m.module = ".", module
		for i := range m.edits {
			m.edits[i].File = module + "/" + m.edits[i].File
		}
		mutants = append(mutants, m)
	}
}

// gocronMutants are the known ways to run a tick twice, or to miss one.
var gocronMutants = []mutant{
	{name: "a lock released with the job", breaks: "minimum hold", catch: "kept_for_the_minimum_hold", parent: "TestLocker", edits: []edit{{
		"locker.go", `left > 0 {`, `left > 1<<62 {`}}},
	{name: "a minimum hold that keeps the holder from its next tick", breaks: "minimum hold", catch: "no_hindrance_to_the_own_next_tick", parent: "TestLocker", edits: []edit{{
		"locker.go", `if j.lease == nil || j.lease.Check() != nil {
		if j.lease, err`, `if true {
		if j.lease, err`}}},
	{name: "a job locked twice in one process", breaks: "lock", catch: "kept_while_the_job_runs", parent: "TestLocker", edits: []edit{{
		"locker.go", `	if j.running {
		return fmt`, `	if false {
		return fmt`}}},
	{name: "a job locked with a lease that is about to end", breaks: "minimum hold", catch: "refused_with_a_short_lease", parent: "TestLocker", edits: []edit{{
		"locker.go", `j.lease.CheckFor(j.minHold)`, `j.lease.Check()`}}},
	{name: "the tick after a crash missed too", breaks: "takeover", catch: "taken_over_at_the_next_tick_after_a_crash", parent: "TestLocker", edits: []edit{{
		"locker.go", `			j.watch()
`, ``}}},
	{name: "a Locker closed with the job", breaks: "minimum hold", catch: "closed_when_the_minimum_hold_is_over", parent: "TestLocker", edits: []edit{{
		"locker.go", `time.Sleep(time.Until(until))`, `_ = until`}}},
	{name: "a leader that resigns right after a tick", breaks: "minimum hold", catch: "planned_stop", parent: "TestElector", edits: []edit{{
		"elector.go", `time.Sleep(hold)`, `_ = hold`}}},
	{name: "a leader that runs ticks while it stops", breaks: "minimum hold", catch: "planned_stop", parent: "TestElector", edits: []edit{{
		"elector.go", `	x.lease = nil
	hold`, `	hold`}}},
	{name: "a tick with a lease that is about to end", breaks: "minimum hold", catch: "short_lease", parent: "TestElector", edits: []edit{{
		"elector.go", `x.lease.CheckFor(x.minHold)`, `x.lease.Check()`}}},
	{name: "two jobs with one election", breaks: "names", catch: "of_every_name_of_six_bytes", parent: "TestTwoJobs", edits: []edit{{
		"name.go", `plain = !(i+2 < len(job) && digit(job[i+1]) && digit(job[i+2]))`, `plain = digit(c) || true`}}},
}
