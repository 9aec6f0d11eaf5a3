package main

func init() {
	const module = "integrations/electorcontroller"
	for _, m := range controllerMutants {
		m.pkg, m.module = ".", module
		for i := range m.edits {
			m.edits[i].File = module + "/" + m.edits[i].File
		}
		mutants = append(mutants, m)
	}
}

// controllerMutants are the known ways for two managers to work at once.
var controllerMutants = []mutant{
	{name: "a manager that outlives the lease", breaks: "end with the lease", catch: "the_context_ends_with_the_lease", parent: "TestLock", edits: []edit{{
		"lock.go", `stop(context.Cause(term))`, `_ = term`}}},
	{name: "an Update that does not look at the lease", breaks: "one term", catch: "one_term", parent: "TestLock", edits: []edit{{
		"lock.go", `	case <-l.led:
		return l.lease.Check()
	case <-l.over:`, `	case <-l.led:
		return nil
	case <-l.over:`}}},
	{name: "a lock that leads again in the same manager", breaks: "one term", catch: "one_term", parent: "TestLock", edits: []edit{{
		"lock.go", `	case <-l.led:
		return l.lease.Check()
	case <-l.over:`, `	case <-l.led:
		if l.lease.Check() != nil {
			again, err := l.elector.TryCampaign(ctx)
			if err == nil {
				l.lease = again
			}
			return err
		}
		return nil
	case <-l.over:`}}},
	{name: "a holder shown after its lease is over", breaks: "who leads", catch: "one_term", parent: "TestLock", edits: []edit{{
		"lock.go", `_, err := l.Lease(); err == nil && `, `_, err := l.Lease(); (err == nil || l.lease != nil) && `}}},
	{name: "a Get that always returns the same bytes", breaks: "who leads", catch: "one_term", parent: "TestLock", edits: []edit{{
		"lock.go", `l.reads.Add(1)`, `l.reads.Load()`}}},
	{name: "another process with the same ID taken for this one", breaks: "who leads", catch: "another_process_with_the_same_ID", parent: "TestLock", edits: []edit{{
		"lock.go", `	r := &resourcelock.LeaderElectionRecord{}
`, `	r := &resourcelock.LeaderElectionRecord{}
	if leader, err := l.elector.Leader(context.Background()); err == nil {
		r.HolderIdentity = leader.ID
	}
`}}},
	{name: "the lease resigned while the manager stops", breaks: "release order", catch: "told_when_the_manager_has_stopped", parent: "TestLock", edits: []edit{{
		"lock.go", `		l.released.Store(true)
		return nil`, `		l.released.Store(true)
		return l.lease.Release(ctx)`}}},
	{name: "a second term after a release", breaks: "one term", catch: "told_when_the_manager_has_stopped", parent: "TestLock", edits: []edit{{
		"lock.go", `		l.released.Store(true)
`, ``}}},
	{name: "a lock without Start", breaks: "end with the lease", catch: "refused_outside_of_Start", parent: "TestLock", edits: []edit{{
		"lock.go", `	case !l.started.Load():`, `	case false:`}}},
	{name: "the store told although the manager under a lock failed", breaks: "release order", catch: "not_told_after_an_error", parent: "TestLock", edits: []edit{{
		"lock.go", `		return result
	})`, `		return nil
	})`}}},
	{name: "a lock that does not count as a sign of life", breaks: "stalls", catch: "client-go_hangs", parent: "TestLock", edits: []edit{{
		"lock.go", `	case <-l.led:
		return l.lease.Check()
	case <-l.over:`, `	case <-l.led:
		return context.Cause(l.lease.Context())
	case <-l.over:`}}},
	{name: "a manager that goes on when its campaign has failed", breaks: "end with the lease", catch: "a_campaign_that_cannot_succeed", parent: "TestLock", edits: []edit{{
		"lock.go", `	stop(err)
`, ``}}},
	{name: "the store told although the manager failed", breaks: "release order", catch: "not_told_after_an_error", parent: "TestRun", edits: []edit{{
		"run.go", `failed != nil {
			panic(failed)`, `failed != nil && false {
			panic(failed)`}}},
	{name: "a further term beside what is left of the last", breaks: "one manager", catch: "no_further_term_after_an_error", parent: "TestRun", edits: []edit{{
		"run.go", `failed != nil {
			panic(failed)`, `failed != nil && false {
			panic(failed)`}}},
}
