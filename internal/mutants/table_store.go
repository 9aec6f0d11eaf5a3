package main

// storing is the package that makes the requests.
const storing = "./internal/store"

func init() { mutants = append(mutants, storeMutants...) }

// joinsLater lets requests join one that has left. The outcome of those is the one given.
func joinsLater(outcome string) []edit {
	return []edit{{
		"internal/store/line.go", `	members int               // places
`, `	members int               // places
	flying  *batch
`}, {
		"internal/store/handle.go", `		l.under++
`, `		l.flying = b
		l.under++
`}, {
		"internal/store/client.go", `		r.line.add(r, h.clock.Now().Mono)
`, `		if b := r.line.flying; b != nil && b.cancel != nil && !b.landed && len(b.requests) > 1 && b.takes(r) {
			if r.sent != nil {
				r.sent()
			}
			continue
		}
		r.line.add(r, h.clock.Now().Mono)
`}, {
		"internal/store/batch.go", `		outcomes = h.send(ctx, l, all)
`, `		outcomes = h.send(ctx, l, all)
		h.mutex.Lock()
		for _, r := range b.requests[len(all):] {
			all, outcomes = append(all, r), append(outcomes, backends.Outcome{` + outcome + `})
		}
		h.mutex.Unlock()
`}}
}

// stored makes a mutant that one of the package's own tests must catch.
func stored(name, breaks, test string, edits ...edit) mutant {
	for i := range edits {
		edits[i].File = "internal/store/" + edits[i].File
	}
	return mutant{name: name, breaks: breaks, catch: test, pkg: storing, edits: edits}
}

// storeMutants make the requests of a process in the wrong order, too many of them, or too
// early.
var storeMutants = []mutant{
	// Which go first.
	stored("all ranks may have the whole wire", "ranks", "TestWires", edit{
		"store.go", `return most * int(ranks-r) / int(ranks)`, `return most`}),
	stored("renewals in the order in which they came", "ranks", "TestOrder", edit{
		"line.go", `	case r.Over != other.Over:
		return r.Over < other.Over
`, ``}),
	stored("leases that can hardly be in time go first", "ranks", "TestOrder", edit{
		"line.go", `case r.Over != 0 && r.Over < now+trip && !r.last && n < len(p)-1:`, `case r.Over < 0 && !r.last:`}),
	stored("a calm renewal goes before an acquisition", "ranks", "TestOrder", edit{
		"handle.go", `case rank == Keep && l.piles[Keep][0].Urgent > now:`, `case false:`}),

	stored("a calm renewal takes the place of a release", "ranks", "TestLeavesPlaces", edit{
		"handle.go", `h.under >= Gain.share(h.wire) && h.waits(Gain, now)`, `false`}),

	// What waits is not on its way.
	stored("a timeout that counts from the call", "2", "TestUnsent", edit{
		"client.go", `		r.line.add(r, h.clock.Now().Mono)
`, `		r.line.add(r, h.clock.Now().Mono)
		h.clock.AfterFunc(r.Timeout, func() { r.GiveUp(errLate) })
`}),
	stored("a swap built at the call", "2", "TestUnsent", edit{
		"client.go", `	c.begin(swaps, r)
`, `	change, may := build()
	r.build = func() (backends.Change, bool) { return change, may }
	c.begin(swaps, r)
`}),
	stored("a withdrawn request sent", "Withdraw", "TestUnsent", edit{
		"client.go", `	r.line.remove(r)
	r.end(backends.Outcome{Err: errLate})
	return true
`, `	r.end(backends.Outcome{Err: errLate})
	return true
`}),
	stored("a swap sent again without asking", "8", "TestAskedAgain", edit{
		"batch.go", `		} else if change, may := r.build(); may {`, `		} else if r.built {
		} else if change, may := r.build(); may {`}),
	stored("a swap that stays behind after a refusal ends as one that was never sent", "8", "TestAskedAgain", edit{
		"batch.go", `r.batch, r.most, r.why = nil, again, o.Err`, `r.batch, r.most = nil, again`}),

	// Requests that are refused together.
	stored("two changes of one record in a batch", "BatchSwapper", "TestBatchOfOneElection", edit{
		"batch.go", `case r.build != nil && slices.Contains`, `case r.build == nil && slices.Contains`}),
	stored("a refused batch goes whole again", "BatchSwapper", "TestRefusedTogether", edit{
		"batch.go", `again = (n + 1) / 2`, `again = n`}, edit{
		"size.go", `part = n / 2`, `part = n`}),
	stored("each of a refused batch goes alone", "BatchSwapper", "TestRefusedTogether", edit{
		"batch.go", `again = (n + 1) / 2`, `again = 1`}),
	stored("the refused one goes with others again", "BatchSwapper", "TestRefusedTogether", edit{
		"batch.go", `*most = 1 //`, `*most = 0 //`}),
	stored("the refused one goes alone for ever", "BatchSwapper", "TestRefusedTogether", edit{
		"batch.go", `		*most = 0
`, `		_ = most
`}),

	// Requests that are too large.
	stored("the size never falls", "BatchSwapper", "TestSize", edit{
		"size.go", `s.now, s.answers = min(s.now, part), 0`, `s.answers = 0`}),
	stored("several large requests tried at once", "BatchSwapper", "TestTrial", edit{
		"size.go", ` && !s.trial &&`, ` &&`}),
	stored("large requests tried as often as ever", "BatchSwapper", "TestTrial", edit{
		"size.go", `min(2*s.patience+1, mostPatience)`, `1`}),
	stored("clients not set apart while others are answered", "BatchSwapper", "TestSize", edit{
		"size.go", `r.client.most[r.line.kind] = part`, `r.client.most[r.line.kind] = 0`}),

	stored("twice the time at the cost of a lease", "BatchSwapper", "TestTime", edit{
		"batch.go", `r.Over != 0 && r.Over-now < b.timeout`, `false`}),

	// Requests that hang.
	stored("hung requests counted by name", "hung", "TestHungOnce", edit{
		"batch.go", `other.client == r.client && other.Rank == r.Rank`, `false`}),
	stored("a request given up without its reason", "2", "TestGivenUp", edit{
		"client.go", `unanswered(b.age(h.clock.Now().Mono), why)`, `why`}),
	stored("a batch that hangs keeps its place", "hung", "TestHung", edit{
		"batch.go", `		if !b.landed {
`, `		if false {
`}),
	stored("a batch that hung gives its place up twice", "hung", "TestHung", edit{
		"batch.go", `	if !b.freed {
`, `	if true {
`}),
	stored("a handle dropped while a batch is under way", "hung", "TestHandleStays", edit{
		"handle.go", `		b.requests[0].client.enter()
		go`, `		go`}),
	{name: "a write about to be sent dropped with its campaign", breaks: "7", catch: "TestCancelledWhenSent", pkg: ".", edits: []edit{{
		"acquire.go", `ctx.Err() != nil && (pending != nil || a.number > 0) {`, `ctx.Err() != nil && a.number > 0 {`}}},
	{name: "hung requests not counted", breaks: "hung", catch: "TestHungBackend", pkg: ".", edits: []edit{{
		"internal/store/client.go", `c.hung[r.Rank] >= mostHung`, `c.hung[r.Rank] >= 1<<20`}}},
}
