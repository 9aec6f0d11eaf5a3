package main

// backendMutants break an adapter or what all adapters use.
var backendMutants = []mutant{
	// The guards.
	{name: "a guard without the index that makes takeovers wait", breaks: "Guard", catch: "index", pkg: "./backends/postgres", parent: "TestGuard", edits: []edit{{
		"backends/postgres/guard.go", `err == nil && !b.guarded {`, `false {`}}},
	{name: "a guard with a transaction that may stand idle for ever", breaks: "Guard", catch: "bound", pkg: "./backends/postgres", parent: "TestGuard", edits: []edit{{
		"backends/postgres/guard.go", `max(a.Remaining.Milliseconds(), 1)`, `a.Remaining.Milliseconds()`}}},

	{name: "a release sent again after its answer", breaks: "8", catch: "elector/res/run-waits", pkg: suite, parent: "TestMemory", edits: []edit{{
		"acquire.go", `a.record, a.next(a.record, "", "")); f == nil {`, `a.record, a.next(a.record, "", "")); f == nil {
				e.swap(ctx, e.o.RequestTimeout, swapping, false, a.record, a.next(a.record, "", ""))`}}},

	// The portable layer.
	{name: "a call goes on after Close", breaks: "10", catch: "under_way", pkg: "./backends", parent: "TestHandleClosed", edits: []edit{{
		"backends/base.go", `(*cancel)()`, `_ = cancel`}}},
	{name: "a request through a closed handle", breaks: "10", catch: "later", pkg: "./backends", parent: "TestHandleClosed", edits: []edit{{
		"backends/base.go", `if h.closed {`, `if false {`}}},
	{name: "the connection of a call that Close ended stays", breaks: "10", catch: "of_a_call_that_ends_late", pkg: "./backends/dynamodb", parent: "TestConnectionsEnd", edits: []edit{{
		"backends/dynamodb/errors.go", `		b.idle()`, `		_ = ctx`}}},
	{name: "the connections of a handle on Kubernetes stay", breaks: "10", catch: "TestClose", pkg: "./backends/kubernetes", edits: []edit{{
		"backends/kubernetes/open.go", `		b.connections.close()
`, ``}}},

	// Kubernetes.
	{name: "a load balancer's 404 taken for an election without a record", breaks: "1", catch: "TestWhoAnswers", pkg: "./backends/kubernetes", edits: []edit{{
		"backends/kubernetes/request.go", `s.Kind == "Status" && s.Code == code && s.Reason == reason && s.Details.Kind == "leases" && s.Details.Name == object`, `s.Code == code`}}},
	{name: "a read from the API server's cache", breaks: "1", catch: "TestRequests", pkg: "./backends/kubernetes", edits: []edit{{
		"backends/kubernetes/kubernetes.go", `http.MethodGet, b.path(object), nil`, `http.MethodGet, b.path(object)+"?resourceVersion=0", nil`}}},
	{name: "a watch that reports what is older than what was read", breaks: "Watcher", catch: "TestWatchBeginsWithWhatIsNew", pkg: "./backends/kubernetes", edits: []edit{{
		"backends/kubernetes/watch.go", `if newer > 0 {`, `if newer > -1 {`}}},
	{name: "a redirection sends a write again", breaks: "7", catch: "redirected", pkg: "./backends/kubernetes", parent: "TestNothingIsSentTwice", edits: []edit{{
		"backends/kubernetes/request.go", `	r.GetBody = nil
`, ``}, {
		"backends/kubernetes/kubernetes.go", `return http.ErrUseLastResponse }`, `return nil }`}}},
	{name: "a token that is read once", breaks: "Kubernetes", catch: "TestTokenIsRotated", pkg: "./backends/kubernetes", edits: []edit{{
		"backends/kubernetes/open.go", `	b.token = c.token
`, `	token, err := c.token()
	b.token = func() (string, error) { return token, err }
`}}},
	{name: "a refusal by a server that was not ready", breaks: "Kubernetes", catch: "TestErrors", pkg: "./backends/kubernetes", edits: []edit{{
		"backends/kubernetes/request.go", `	if s.starting = b.starting(ctx, through, s.Code); s.starting {
		return nil, s
	}
`, ``}}},
	{name: "a write without the uid that was read", breaks: "Kubernetes", catch: "TestRequests", pkg: "./backends/kubernetes", edits: []edit{{
		"backends/kubernetes/lease.go", `	l := s.lease
`, `	l := s.lease
	l.Metadata.UID = ""
`}}},
	{name: "names in the order of the store", breaks: "Lister", catch: "backend/list/names", pkg: suite, parent: "TestMemory", edits: []edit{{
		"backends/base.go", `	slices.Sort(names)
`, ``}}},
	{name: "a name that was only looked up is listed", breaks: "Lister", catch: "backend/list/names", pkg: suite, parent: "TestMemory", edits: []edit{{
		"backends/memory/memory.go", `if e.content != nil {`, `if e != nil {`}}},

	// Package electorhttp.
	{name: "a forwarded request forwarded again", breaks: "forwarding", catch: "loop", pkg: "./electorhttp", parent: "TestForward", edits: []edit{{
		"electorhttp/forward.go", `return election == o.e.Name()`, `return false`}}},
	{name: "a process serves because the record names it", breaks: "forwarding", catch: "to_a_former_leader", pkg: "./electorhttp", parent: "TestForward", edits: []edit{{
		"electorhttp/forward.go", `if _, err := o.e.Token(); err == nil {`, `if o.leader.ID == o.e.ID() {`}}},
	{name: "forwarded to a leader that is known no longer", breaks: "forwarding", catch: "unknown_leader", pkg: "./electorhttp", parent: "TestForward", edits: []edit{{
		"electorhttp/forward.go", `	case err != nil:
		return nil, &refusal{http.StatusServiceUnavailable`, `	case err != nil && l.ID == "":
		return nil, &refusal{http.StatusServiceUnavailable`}, {
		"electorhttp/forward.go", `	o.leader, o.err, o.seen = l, err, o.seen || err == nil`, `	if o.err = err; err == nil {
		o.leader, o.seen = l, true
	}`}}},
	{name: "an answer older than the request", breaks: "forwarding", catch: "shares_reads", pkg: "./electorhttp", parent: "TestLeader", edits: []edit{{
		"electorhttp/leader.go", `if h.started.Load() == before {`, `if h.started.Load() == max(before, 1)-1 {`}}},
	{name: "a request that may have had an effect is sent again", breaks: "routing", catch: "may_have_had_an_effect", pkg: "./electorhttp", parent: "TestRoute", edits: []edit{{
		"electorhttp/route.go", `final = t.broke != nil || !t.parcel.idempotent()`, `final = t.broke != nil`}}},
	{name: "a body is sent again without its beginning", breaks: "routing", catch: "bodies", pkg: "./electorhttp", parent: "TestRoute", edits: []edit{{
		"electorhttp/route.go", `final || !t.parcel.whole()`, `final`}}},
	{name: "a routed request routed again", breaks: "routing", catch: "loop", pkg: "./electorhttp", parent: "TestRoute", edits: []edit{{
		"electorhttp/route.go", `	case t.forwarded:`, `	case t.forwarded && !v.planned:`}}},
	{name: "the next owner does not wait for requests", breaks: "routing", catch: "drain", pkg: "./electorhttp", parent: "TestRoute", edits: []edit{{
		"electorhttp/route.go", `			d.inside.Wait()
`, ``}}},
	{name: "a request that may have had an effect is said to have had none", breaks: "routing", catch: "broken,_then_gone", pkg: "./electorhttp", parent: "TestRouteHostile", edits: []edit{{
		"electorhttp/route.go", `if t.broke != nil {`, `if t.broke != nil && false {`}}},
	{name: "a request that net/http has repeated is said to have had no effect", breaks: "routing", catch: "repeated_by_net-http", pkg: "./electorhttp", parent: "TestRouteHostile", edits: []edit{{
		"electorhttp/route.go", `unsent(err) && !(written.Load() && t.parcel.idempotent())`, `unsent(err)`}}},
	{name: "a request that was served counts as refused", breaks: "routing", catch: "nested", pkg: "./electorhttp", parent: "TestRouteHostile", edits: []edit{{
		"electorhttp/route.go", `if t.forwarded && !t.inside {`, `if t.forwarded {`}}},
	{name: "a request outlives a lease that drains", breaks: "routing", catch: "timeout_while_it_drains", pkg: "./electorhttp", parent: "TestRouteHostile", edits: []edit{{
		"electorhttp/route.go", `			if !until(ctx, nil, min(left, longestPause), nil) {
				return
			}
`, `			return
`}}},
	{name: "a partition that moves lets requests in", breaks: "routing", catch: "slow_worker", pkg: "./electorhttp", parent: "TestRoute", edits: []edit{{
		"electorhttp/route.go", `d.lease.Context().Err() == nil && `, ``}}},
}
