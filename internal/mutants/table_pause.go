package main

// pauseMutants lead paused elections, or pause them wrongly.
var pauseMutants = []mutant{
	{name: "a paused election led", breaks: "pause", catch: "TestPause", pkg: ".", edits: []edit{{
		"succession.go", `until > e.now() && !e.resumes {`, `until < 0 {`}}},
	{name: "a candidate that leads before a pause is over", breaks: "pause", catch: "TestPauseFor", pkg: ".", edits: []edit{{
		"leader.go", `return s.Since + p.For`, `return s.Since + p.For - time.Minute`}}},
	{name: "a pause without an end that is over at once", breaks: "pause", catch: "TestPause", pkg: ".", edits: []edit{{
		"leader.go", `	case p.For == 0:
		return rule.Never
`, ``}}},
	{name: "the mark of a pause that is not critical", breaks: "pause", catch: "TestPauseEdited", pkg: ".", edits: []edit{{
		"internal/annex/pause.go", `const PauseName = "c_pause"`, `const PauseName = "k_pause"`}}},
	{name: "a mark that cannot be read taken for none", breaks: "pause", catch: "TestPauseEdited", pkg: ".", edits: []edit{{
		"internal/annex/pause.go", `return &Pause{Reason: "the mark`, `return nil
		_ = &Pause{Reason: "the mark`}}},
	{name: "a pause that does not stand reported as one", breaks: "pause", catch: "TestPauserDies", pkg: ".", edits: []edit{{
		"deputy.go", `	case err != nil:
		return fmt.Errorf("the pause may`, `	case err != nil:
		return nil
		return fmt.Errorf("the pause may`}}},
	{name: "a pause without room refused after the leader has resigned", breaks: "pause", catch: "TestPauseRefused", pkg: ".", edits: []edit{{
		"deputy.go", `		if _, err := annex.Pauses(r, *pause); err != nil {`, `		if _, err := annex.Pauses(r, *pause); err != nil && r.Vacant() {`}}},
	{name: "the worker called beside Standby", breaks: "Standby", catch: "TestStandby", pkg: ".", edits: []edit{{
		"run.go", `	case <-done:
		return l, err
	case <-late.Done():`, `	default:
		return l, err
	case <-late.Done():`}}},
	{name: "a lease held while Standby does not return", breaks: "Standby", catch: "TestStandby", pkg: ".", edits: []edit{{
		"run.go", `l.move(resigned, unhealthy, l.resignedBecause(late))`, `_ = late`}}},
	{name: "a pause of a name that was never used", breaks: "pause", catch: "TestPauseRefused", pkg: ".", edits: []edit{{
		"deputy.go", `case pause != nil && !r.Exists():`, `case pause != nil && r.Token == 1:`}}},
	{name: "a pauser that misses its head start", breaks: "pause", catch: "TestPauseHeadStart", pkg: ".", edits: []edit{{
		"resignrequest.go", `min(interval(r), longestHeadStart)/4`, `interval(r)/4`}}},
	{name: "a pauser that requests a leader whose lease has lapsed again and again", breaks: "pause", catch: "TestPauseDistrusted", pkg: ".", edits: []edit{{
		"deputy.go", `s.Own, now >= s.Lapse:`, `s.Own, now < 0:`}}},
	{name: "a resumer that does not wait until the pause may be ended", breaks: "pause", catch: "TestPauseDistrusted", pkg: ".", edits: []edit{{
		"deputy.go", `case !e.resumes && e.leader(s.Record).Pause != nil,`, `case e.leader(s.Record).Pause != nil,`}}},
	{name: "a pauser that requests its own acquisition to resign", breaks: "pause", catch: "TestPauseInDoubt", pkg: ".", edits: []edit{{
		"deputy.go", `		var f *failure
		l, err := e.exclusive(`, `		var f *failure
		if err := e.request(ctx); err != nil {
			return nil, err
		}
		l, err := e.exclusive(`}}},
	{name: "a pause that the record does not have reported as one", breaks: "pause", catch: "TestPauseGone", pkg: ".", edits: []edit{{
		"deputy.go", `	return e.confirm(`, `	return nil
	return e.confirm(`}}},
}
