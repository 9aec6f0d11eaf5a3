package main

// sharingMutants share requests wrongly.
var sharingMutants = []mutant{
	// Renewals that share a request.
	{name: "a shared renewal counted from the answer", breaks: "2", catch: "elector/batch/shared", pkg: suite, parent: "TestMemory", edits: []edit{{
		"renew.go", `return l.adopt(r), false`, `w := a.sent[a.number]
		w.start = e.clock.Now()
		a.sent[a.number] = w
		return l.adopt(r), false`}}},
	{name: "a renewal takes the outcome of its neighbour", breaks: "2", catch: "elector/batch/shared", pkg: suite, parent: "TestMemory", edits: []edit{{
		"internal/batcher/line.go", `return b.outcomes[i], len`, `return b.outcomes[(i+1)%len(b.outcomes)], len`}, {
		"internal/batcher/batcher.go", `o.Record.Attempt != c.Next.Attempt:`, `o.Record.Attempt != o.Record.Attempt:`}}},
	{name: "a backend believed that answers with another renewal", breaks: "2", catch: "elector/batch/ambiguous", pkg: suite, parent: "TestMemory", edits: []edit{{
		"internal/batcher/batcher.go", `o.Record.Attempt != c.Next.Attempt:`, `o.Record.Attempt != o.Record.Attempt:`}}},
	{name: "a renewal joins a batch that has left", breaks: "BatchSwapper", catch: "elector/batch/shared", pkg: suite, parent: "TestMemory", edits: []edit{{
		"internal/batcher/line.go", `	l.mutex.Lock()
	l.leaves(b)
	l.flying++
	l.mutex.Unlock()
	b.outcomes = l.request(b)`, `	b.outcomes = l.request(b)
	l.mutex.Lock()
	l.leaves(b)
	l.flying++
	for len(b.outcomes) < len(b.requests) {
		b.outcomes = append(b.outcomes, backends.Outcome{Err: backends.ErrUnavailable})
	}
	l.mutex.Unlock()`}}},
	{name: "a batch given up for all by the first", breaks: "BatchSwapper", catch: "elector/batch/ambiguous", pkg: suite, parent: "TestMemory", edits: []edit{{
		"internal/batcher/line.go", `b.waiting > 0 {`, `b.waiting < 0 {`}}},
	{name: "a batch refused for good taken as each one's refusal", breaks: "BatchSwapper", catch: "elector/batch/ambiguous", pkg: suite, parent: "TestMemory", edits: []edit{{
		"internal/batcher/batcher.go", `case notTried(o.Err), backends.Permanent(o.Err) && c.Prev.Exists():`, `case notTried(o.Err):`}, {
		"internal/batcher/batcher.go", `	case backends.Permanent(o.Err):`, `	case false:`}}},
	{name: "a creation refused together with others written again", breaks: "BatchSwapper", catch: "creations", pkg: "./internal/batcher", parent: "TestRefusedTogether", edits: []edit{{
		"internal/batcher/batcher.go", `backends.Permanent(o.Err) && c.Prev.Exists():`, `backends.Permanent(o.Err):`}}},
	{name: "a renewal not tried taken for one that failed", breaks: "BatchSwapper", catch: "elector/batch/ambiguous", pkg: suite, parent: "TestMemory", edits: []edit{{
		"internal/batcher/batcher.go", `case notTried(o.Err), backends`, `case backends`}}},
	{name: "an error of a whole batch shared again", breaks: "BatchSwapper", catch: "elector/batch/ambiguous", pkg: suite, parent: "TestMemory", edits: []edit{{
		"internal/batcher/batcher.go", `		t.alone = t.penalty`, `		t.alone = 0`}}},
	{name: "alone only after an answer", breaks: "BatchSwapper", catch: "large_requests", pkg: ".", parent: "TestHang", edits: []edit{{
		"internal/batcher/batcher.go", `	m.swaps.outcome(o.Err)`, `	if o.Err == nil || ctx.Err() == nil {
		m.swaps.outcome(o.Err)
	}`}, {
		"internal/batcher/line.go", `if l.hanging >= mostHanging+l.members/l.most {`, `if false {`}}},
	{name: "one that was deposed takes its batch along", breaks: "BatchSwapper", catch: "elector/batch/one-lost", pkg: suite, parent: "TestMemory", edits: []edit{{
		"internal/batcher/line.go", `	return b.outcomes[i], len(b.requests)`, `	for _, other := range b.outcomes {
		if other.Err == backends.ErrDeposed {
			return other, len(b.requests)
		}
	}
	return b.outcomes[i], len(b.requests)`}}},
	{name: "Close does not wait for a batch", breaks: "10", catch: "elector/batch/closed", pkg: suite, parent: "TestMemory", edits: []edit{{
		"internal/batcher/line.go", `	m.active.Add(1)
`, ``}, {
		"internal/batcher/line.go", `		b.active[i].Done()
`, ``}, {
		"internal/batcher/line.go", `			active.Done()`, `			_ = active`}}},

	// Reads that share a request.
	{name: "a read joins those on their way", breaks: "BatchLoader", catch: "apart", pkg: ".", parent: "TestReadsOnTheirWay", edits: []edit{{
		"internal/batcher/line.go", `	l.mutex.Lock()
	l.leaves(b)
	l.flying++
	l.mutex.Unlock()
	b.outcomes = l.request(b)`, `	b.outcomes = l.request(b)
	l.mutex.Lock()
	l.leaves(b)
	l.flying++
	for len(b.outcomes) < len(b.requests) { // as if its election had been read with the others
		b.outcomes = append(b.outcomes, backends.Outcome{})
	}
	l.mutex.Unlock()`}}},
	{name: "what a read overlaps with counted when it is answered", breaks: "3", catch: "seen_meanwhile", pkg: ".", parent: "TestReadsSent", edits: []edit{{
		"internal/batcher/batcher.go", `				for _, r := range all {
					r.sent()
				}
`, `				defer func() {
					for _, r := range all {
						r.sent()
					}
				}()
`}}},
	{name: "what a read overlaps with counted when it joins", breaks: "3", catch: "seen_before", pkg: ".", parent: "TestReadsSent", edits: []edit{{
		"internal/batcher/batcher.go", `	o, together := h.loads.share(ctx, m, read{name, sent})`, `	sent()
	o, together := h.loads.share(ctx, m, read{name, func() {}})`}}},
	{name: "the wait for others counted as a round trip", breaks: "J", catch: "round_trip", pkg: ".", parent: "TestReadsSent", edits: []edit{{
		"request.go", `		var start time.Duration`, `		start := e.clock.Now().Mono`}, {
		"request.go", `mark, start = e.view.Mark(), e.clock.Now().Mono }`, `mark = e.view.Mark() }`}}},
	{name: "the read-back of an acquisition shares", breaks: "7", catch: "of_an_acquisition", pkg: ".", parent: "TestReadBacks", edits: []edit{{
		"acquire.go", `		r, readBack := e.load(ctx, e.o.RequestTimeout, loading)
		switch`, `		r, readBack := e.loadShared(ctx, e.o.RequestTimeout, loading, true)
		switch`}}},
	{name: "the read-back of a renewal shares", breaks: "7", catch: "of_a_renewal", pkg: ".", parent: "TestReadBacks", edits: []edit{{
		"renew.go", `	r, readBack := read(ctx, l.limit(), loading)`, `	_ = read
	r, readBack := e.loadShared(ctx, l.limit(), loading, true)`}}},
	{name: "the read-back of a release shares", breaks: "7", catch: "of_a_release", pkg: ".", parent: "TestReadBacks", edits: []edit{{
		"acquisition.go", `		r, readBack := e.load(ctx, e.o.RequestTimeout, loading)
		moved`, `		r, readBack := e.loadShared(ctx, e.o.RequestTimeout, loading, true)
		moved`}}},
	{name: "the read-back of a cancelled campaign shares", breaks: "7", catch: "of_a_campaign_that_was_cancelled", pkg: ".", parent: "TestReadBacks", edits: []edit{{
		"acquire.go", `		r, f := e.load(ctx, e.o.RequestTimeout, loading)`, `		r, f := e.loadShared(ctx, e.o.RequestTimeout, loading, true)`}}},
	{name: "a campaign that has ended counts as a reader", breaks: "BatchLoader", catch: "TestReadsAlone", pkg: ".", edits: []edit{{
		"campaign.go", `	c.place.Leave()`, ``}}},
	{name: "an observer that has left counts as a reader", breaks: "BatchLoader", catch: "TestReadsAlone", pkg: ".", edits: []edit{{
		"observe.go", `		defer place.Leave()`, `		_ = place`}}},
	{name: "a request for many refused for good ends each campaign", breaks: "BatchLoader", catch: "requests_for_many_are_denied", pkg: ".", parent: "TestReadsSpoilt", edits: []edit{{
		"internal/batcher/batcher.go", `if together > 1 && (notTried(o.Err) || backends.Permanent(o.Err)) {`, `if together > 1 && notTried(o.Err) {`}}},
	{name: "requests for many tried for ever", breaks: "BatchLoader", catch: "requests_for_many_are_hanging", pkg: ".", parent: "TestReadsSpoilt", edits: []edit{{
		"internal/batcher/batcher.go", `	m.loads.outcome(o.Err)
`, ``}}},
	{name: "a row in doubt read with others", breaks: "7", catch: "in_doubt", pkg: "./backends/postgres", parent: "TestLoadMany", edits: []edit{{
		"backends/postgres/postgres.go", `; doubtful[i] {`, `; false {`}}},
	{name: "an unprocessed key taken for absence", breaks: "BatchLoader", catch: "some_are_unprocessed", pkg: "./backends/dynamodb", parent: "TestLoadMany", edits: []edit{{
		"backends/dynamodb/dynamodb.go", `found[name] = backends.Outcome{Err: errUnprocessed}`, `found[name] = backends.Outcome{}`}}},
	{name: "a key without an answer taken for absence", breaks: "BatchLoader", catch: "one_is_answered_with_nothing", pkg: "./backends/etcd", parent: "TestLoadMany", edits: []edit{{
		"backends/etcd/batch.go", `case found == nil:`, `case false:`}}},
	{name: "many keys read from a member that lags", breaks: "BatchLoader", catch: "both_are_missing", pkg: "./backends/etcd", parent: "TestLoadMany", edits: []edit{{
		"backends/etcd/batch.go", `clientv3.OpGet(b.prefix + name)`, `clientv3.OpGet(b.prefix+name, clientv3.WithSerializable())`}}},
	{name: "one denied key denies all", breaks: "BatchLoader", catch: "one_is_denied", pkg: "./backends/etcd", parent: "TestLoadMany", edits: []edit{{
		"backends/etcd/batch.go", ` || is(err, rpctypes.ErrPermissionDenied)): // one`, `): // one`}}},
}
