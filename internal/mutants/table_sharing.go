package main

// sharingMutants share requests wrongly.
var sharingMutants = []mutant{
	// Renewals that share a request.
	{name: "a shared renewal counted from the answer", breaks: "2", catch: "elector/batch/shared", pkg: suite, parent: "TestMemory", edits: []edit{{
		"renew.go", `return l.adopt(r), false`, `a.sent[len(a.sent)-1].start = e.clock.Now()
		return l.adopt(r), false`}}},
	{name: "a renewal takes the outcome of its neighbour", breaks: "2", catch: "elector/batch/shared", pkg: suite, parent: "TestMemory", edits: []edit{{
		"internal/store/batch.go", `h.outcome(l, b, r, outcomes[i], refused, now)`, `h.outcome(l, b, r, outcomes[(i+1)%len(all)], refused, now)`}, {
		"internal/store/batch.go", `o.Record.Attempt != r.change.Next.Attempt {`, `o.Record.Attempt != o.Record.Attempt {`}}},
	{name: "a backend believed that answers with another renewal", breaks: "2", catch: "another's_outcomes", pkg: ".", parent: "TestBatchRefused", edits: []edit{{
		"internal/store/batch.go", `o.Record.Attempt != r.change.Next.Attempt {`, `o.Record.Attempt != o.Record.Attempt {`}}},
	{name: "a renewal joins a batch that has left", breaks: "BatchSwapper", catch: "elector/batch/shared", pkg: suite, parent: "TestMemory", edits: joinsLater(`Err: backends.ErrUnavailable`)},
	{name: "a batch given up for all by the first", breaks: "BatchSwapper", catch: "TestGivenUp", pkg: storing, edits: []edit{{
		"internal/store/batch.go", `last := b.waiting == 1`, `last := b.waiting > 0`}}},
	{name: "a batch refused for good taken as each one's refusal", breaks: "BatchSwapper", catch: "refused_for_good", pkg: ".", parent: "TestBatchRefused", edits: []edit{{
		"internal/store/batch.go", `case notTried(o.Err), backends.Permanent(o.Err) && (r.build == nil || r.change.Prev.Exists()):`, `case notTried(o.Err):`}, {
		"internal/store/batch.go", `	case backends.Permanent(o.Err):`, `	case false:`}}},
	{name: "a creation refused together with others written again", breaks: "BatchSwapper", catch: "TestRefusedTogether", pkg: storing, edits: []edit{{
		"internal/store/batch.go", `backends.Permanent(o.Err) && (r.build == nil || r.change.Prev.Exists()):`, `backends.Permanent(o.Err):`}}},
	{name: "a renewal not tried taken for one that failed", breaks: "BatchSwapper", catch: "not_tried", pkg: ".", parent: "TestBatchRefused", edits: []edit{{
		"internal/store/batch.go", `case notTried(o.Err), backends`, `case backends`}}},
	{name: "an error of a whole batch shared again", breaks: "BatchSwapper", catch: "nobody_knows_why", pkg: ".", parent: "TestBatchRefused", edits: []edit{{
		"internal/store/batch.go", `		l.failed(b, refused, now)
	}`, `		_ = refused
	}`}}},
	{name: "fewer together only after an answer", breaks: "BatchSwapper", catch: "large_requests", pkg: ".", parent: "TestHang", edits: []edit{{
		"internal/store/batch.go", `if !b.landed && !b.late {`, `if false {`}}},
	{name: "one that was deposed takes its batch along", breaks: "BatchSwapper", catch: "elector/batch/one-lost", pkg: suite, parent: "TestMemory", edits: []edit{{
		"internal/store/batch.go", `		h.outcome(l, b, r, outcomes[i], refused, now)`, `		o := outcomes[i]
		for _, other := range outcomes {
			if errors.Is(other.Err, backends.ErrDeposed) {
				o = other
			}
		}
		h.outcome(l, b, r, o, refused, now)`}}},
	{name: "one denied name fails the renewals of all others", breaks: "BatchSwapper", catch: "TestOneDenied", pkg: ".", edits: []edit{{
		"internal/store/batch.go", `case notTried(o.Err), backends.Permanent(o.Err) && (r.build == nil || r.change.Prev.Exists()):`, `case notTried(o.Err):`}}},
	{name: "Close does not wait for a batch", breaks: "10", catch: "elector/batch/closed", pkg: suite, parent: "TestMemory", edits: []edit{{
		"internal/store/batch.go", `	r.client.active.Add(1)
`, ``}, {
		"internal/store/batch.go", `		r.left = true
		r.client.active.Done()`, `		r.left = true`}, {
		"internal/store/batch.go", `		if !r.left { // it was not given up while others waited
`, `		if false {
`}}},

	// Reads that share a request.
	{name: "a read joins those on their way", breaks: "BatchLoader", catch: "apart", pkg: ".", parent: "TestReadsOnTheirWay", edits: joinsLater(``)}, // as if its election had been read with the others
	{name: "what a read overlaps with counted when it is answered", breaks: "3", catch: "seen_meanwhile", pkg: ".", parent: "TestReadsSent", edits: []edit{{
		"internal/store/batch.go", `			r.sent()
`, ``}, {
		"internal/store/batch.go", `		h.land(l, b, all, outcomes, ctx.Err())`, `		for _, r := range all {
			if r.sent != nil {
				r.sent()
			}
		}
		h.land(l, b, all, outcomes, ctx.Err())`}}},
	{name: "what a read overlaps with counted when it begins to wait", breaks: "3", catch: "seen_before", pkg: ".", parent: "TestReadsSent", edits: []edit{{
		"internal/store/client.go", `	r := &Request{Ask: a, client: c, ctx: ctx, name: name, sent: sent,`, `	sent()
	r := &Request{Ask: a, client: c, ctx: ctx, name: name, sent: func() {},`}}},
	{name: "the wait for others counted as a round trip", breaks: "J", catch: "round_trip", pkg: ".", parent: "TestReadsSent", edits: []edit{{
		"request.go", `		var start time.Duration`, `		start := e.clock.Now().Mono`}, {
		"request.go", `mark, start = e.view.Mark(), e.clock.Now().Mono }`, `mark = e.view.Mark() }`}}},
	{name: "the read-back of an acquisition shares", breaks: "7", catch: "of_an_acquisition", pkg: ".", parent: "TestReadBacks", edits: []edit{{
		"acquire.go", `r, readBack := e.load(ctx, e.asks(loading, store.Gain).alone()`, `r, readBack := e.load(ctx, e.asks(loading, store.Gain).gathers(true)`}}},
	{name: "the read-back of a renewal shares", breaks: "7", catch: "of_a_renewal", pkg: ".", parent: "TestReadBacks", edits: []edit{{
		"renew.go", `read.Alone = !many`, `read.Gather = true`}}},
	{name: "the read-back of a release shares", breaks: "7", catch: "of_a_release", pkg: ".", parent: "TestReadBacks", edits: []edit{{
		"acquisition.go", `r, readBack := e.load(ctx, e.asks(loading, store.Gain).alone()`, `r, readBack := e.load(ctx, e.asks(loading, store.Gain).gathers(true)`}}},
	{name: "the read-back of a cancelled campaign shares", breaks: "7", catch: "of_a_campaign_that_was_cancelled", pkg: ".", parent: "TestReadBacks", edits: []edit{{
		"acquire.go", `r, f := e.load(ctx, e.asks(loading, store.Gain).alone()`, `r, f := e.load(ctx, e.asks(loading, store.Gain).gathers(true)`}}},
	{name: "a campaign that has ended counts as a reader", breaks: "BatchLoader", catch: "TestReadsAlone", pkg: ".", edits: []edit{{
		"campaign.go", `	c.place.Leave()`, ``}}},
	{name: "an observer that has left counts as a reader", breaks: "BatchLoader", catch: "TestReadsAlone", pkg: ".", edits: []edit{{
		"observe.go", `		defer place.Leave()`, `		_ = place`}}},
	{name: "a request for many refused for good ends each campaign", breaks: "BatchLoader", catch: "TestRefusedTogether", pkg: storing, edits: []edit{{
		"internal/store/batch.go", `(r.build == nil || r.change.Prev.Exists()):`, `r.change.Prev.Exists():`}, {
		"internal/store/batch.go", `	case backends.Permanent(o.Err):`, `	case backends.Permanent(o.Err) && r.build != nil:`}}},
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
