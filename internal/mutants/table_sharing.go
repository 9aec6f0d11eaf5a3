package main

// sharingMutants share requests wrongly.
var sharingMutants = []mutant{
	// Renewals that share a request.
	{name: "a shared renewal counted from the answer", breaks: "2", catch: "elector/batch/shared", pkg: suite, parent: "TestMemory", edits: []edit{{
		"renew.go", `return l.adopt(r), false`, `a.sent[a.number] = write{clock.Mark(e.clock), false, l.value}
		return l.adopt(r), false`}}},
	{name: "a renewal takes the outcome of its neighbour", breaks: "2", catch: "elector/batch/shared", pkg: suite, parent: "TestMemory", edits: []edit{{
		"share.go", `b.outcomes[i]`, `b.outcomes[(i+1)%len(b.outcomes)]`}, {
		"batch.go", `o.Record.Attempt != r.Next.Attempt {`, `o.Record.Attempt != o.Record.Attempt {`}}},
	{name: "a backend believed that tells of another renewal", breaks: "2", catch: "elector/batch/ambiguous", pkg: suite, parent: "TestMemory", edits: []edit{{
		"batch.go", `o.Record.Attempt != r.Next.Attempt {`, `o.Record.Attempt != o.Record.Attempt {`}}},
	{name: "a renewal joins a batch that has left", breaks: "BatchSwapper", catch: "elector/batch/shared", pkg: suite, parent: "TestMemory", edits: []edit{{
		"share.go", `	s.mutex.Lock()
	s.leaves(b)
	s.flying++
	s.mutex.Unlock()
	b.outcomes = s.request(b)`, `	b.outcomes = s.request(b)
	s.mutex.Lock()
	s.leaves(b)
	s.flying++
	for len(b.outcomes) < len(b.requests) {
		b.outcomes = append(b.outcomes, backends.Outcome{Err: ErrUnavailable})
	}
	s.mutex.Unlock()`}}},
	{name: "a batch given up for all by the first", breaks: "BatchSwapper", catch: "elector/batch/ambiguous", pkg: suite, parent: "TestMemory", edits: []edit{{
		"share.go", `b.waiting > 0 {`, `b.waiting < 0 {`}}},
	{name: "a batch refused for good taken as each one's refusal", breaks: "BatchSwapper", catch: "elector/batch/ambiguous", pkg: suite, parent: "TestMemory", edits: []edit{{
		"batch.go", `k == untried || k.hopeless()`, `k == untried`}}},
	{name: "a renewal not tried taken for one that failed", breaks: "BatchSwapper", catch: "elector/batch/ambiguous", pkg: suite, parent: "TestMemory", edits: []edit{{
		"batch.go", `k == untried || k.hopeless()`, `k.hopeless()`}}},
	{name: "an error of a whole batch shared again", breaks: "BatchSwapper", catch: "elector/batch/ambiguous", pkg: suite, parent: "TestMemory", edits: []edit{{
		"batch.go", `		s.alone = s.penalty`, `		s.alone = 0`}}},
	{name: "alone only after an answer", breaks: "BatchSwapper", catch: "large_requests", pkg: ".", parent: "TestHang", edits: []edit{{
		"renew.go", `	l.shares.outcome(f)`, `	if f == nil || !strings.Contains(f.err.Error(), "no answer") {
		l.shares.outcome(f)
	}`}, {"renew.go", `	"time"
`, `	"strings"
	"time"
`}, {"share.go", `if s.hanging >= mostUnanswered+s.members/s.most {`, `if false {`}}},
	{name: "one that was deposed takes its batch along", breaks: "BatchSwapper", catch: "elector/batch/one-lost", pkg: suite, parent: "TestMemory", edits: []edit{{
		"share.go", `	return b.outcomes[i], len(b.requests)`, `	for _, other := range b.outcomes {
		if other.Err == backends.ErrDeposed {
			return other, len(b.requests)
		}
	}
	return b.outcomes[i], len(b.requests)`}}},
	{name: "Close does not wait for a batch", breaks: "10", catch: "elector/batch/closed", pkg: suite, parent: "TestMemory", edits: []edit{{
		"share.go", `	e.active.Add(1)
`, ``}, {
		"share.go", `		b.electors[i].active.Done()
`, ``}, {
		"share.go", `			e.active.Done()`, `			_ = e`}}},

	// Reads that share a request.
	{name: "a read joins those on their way", breaks: "BatchLoader", catch: "apart", pkg: ".", parent: "TestReadsOnTheirWay", edits: []edit{{
		"share.go", `	s.mutex.Lock()
	s.leaves(b)
	s.flying++
	s.mutex.Unlock()
	b.outcomes = s.request(b)`, `	b.outcomes = s.request(b)
	s.mutex.Lock()
	s.leaves(b)
	s.flying++
	for len(b.outcomes) < len(b.requests) { // as if its election had been read with the others
		b.outcomes = append(b.outcomes, backends.Outcome{})
	}
	s.mutex.Unlock()`}}},
	{name: "what a read overlaps with counted when it is answered", breaks: "3", catch: "seen_meanwhile", pkg: ".", parent: "TestReadsSent", edits: []edit{{
		"share.go", `	if s.sent != nil {`, `	outcomes := s.send(b.ctx, b.requests)
	if s.sent != nil {`}, {
		"share.go", `	outcomes := s.send(b.ctx, b.requests)
	if len`, `	if len`}}},
	{name: "what a read overlaps with counted when it joins", breaks: "3", catch: "seen_before", pkg: ".", parent: "TestReadsSent", edits: []edit{{
		"reads.go", `	o, together := s.share(`, `	l.sent()
	l.sent = func() {}
	o, together := s.share(`}}},
	{name: "the wait for others counted as a round trip", breaks: "J", catch: "round_trip", pkg: ".", parent: "TestReadsSent", edits: []edit{{
		"request.go", `		var start time.Duration`, `		start := e.clock.Now().Mono`}, {
		"request.go", `mark, start = e.view.Mark(), e.clock.Now().Mono }`, `mark = e.view.Mark() }`}}},
	{name: "the read-back of an acquisition shares", breaks: "7", catch: "of_an_acquisition", pkg: ".", parent: "TestReadBacks", edits: []edit{{
		"acquire.go", `		r, readBack := e.load(ctx, e.o.RequestTimeout, reading)
		switch`, `		r, readBack := e.loadTogether(ctx, reading, loadsOf(e.backend), &e.shares, false)
		switch`}}},
	{name: "the read-back of a renewal shares", breaks: "7", catch: "of_a_renewal", pkg: ".", parent: "TestReadBacks", edits: []edit{{
		"renew.go", `	r, readBack := e.load(ctx, l.limit(), reading)`, `	r, readBack := e.loadTogether(ctx, reading, loadsOf(e.backend), &e.shares, false)`}}},
	{name: "the read-back of a release shares", breaks: "7", catch: "of_a_release", pkg: ".", parent: "TestReadBacks", edits: []edit{{
		"acquire.go", `		r, readBack := e.load(ctx, e.o.RequestTimeout, reading)
		moved`, `		r, readBack := e.loadTogether(ctx, reading, loadsOf(e.backend), &e.shares, false)
		moved`}}},
	{name: "the read-back of a cancelled campaign shares", breaks: "7", catch: "of_a_campaign_that_was_cancelled", pkg: ".", parent: "TestReadBacks", edits: []edit{{
		"acquire.go", `		r, f := e.load(ctx, e.o.RequestTimeout, reading)`, `		r, f := e.loadTogether(ctx, reading, loadsOf(e.backend), &e.shares, false)`}}},
	{name: "a campaign that has ended counts as a reader", breaks: "BatchLoader", catch: "TestReadsAlone", pkg: ".", edits: []edit{{
		"campaign.go", `	c.loads.leave()`, ``}}},
	{name: "an observer that has left counts as a reader", breaks: "BatchLoader", catch: "TestReadsAlone", pkg: ".", edits: []edit{{
		"observe.go", `		defer loads.leave()`, `		_ = loads`}}},
	{name: "a request for many refused for good ends each campaign", breaks: "BatchLoader", catch: "requests_for_many_are_denied", pkg: ".", parent: "TestReadsSpoilt", edits: []edit{{
		"reads.go", `	case together > 1 && kindOf(o.Err).hopeless():`, `	case false:`}}},
	{name: "requests for many tried for ever", breaks: "BatchLoader", catch: "requests_for_many_are_hanging", pkg: ".", parent: "TestReadsSpoilt", edits: []edit{{
		"reads.go", `	shares.outcome(f)
	if f != nil`, `	if f != nil`}}},
	{name: "a row in doubt read with others", breaks: "7", catch: "in_doubt", pkg: "./backends/postgres", parent: "TestLoadMany", edits: []edit{{
		"backends/postgres/loads.go", `; doubtful[i] {`, `; false {`}}},
	{name: "an unprocessed key taken for absence", breaks: "BatchLoader", catch: "some_are_unprocessed", pkg: "./backends/dynamodb", parent: "TestLoadMany", edits: []edit{{
		"backends/dynamodb/dynamodb.go", `found[name] = backends.Outcome{Err: errUnprocessed}`, `found[name] = backends.Outcome{}`}}},
}
