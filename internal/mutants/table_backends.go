package main

// backendMutants break an adapter or what all adapters use.
var backendMutants = []mutant{
	// The guards.
	{name: "a guard without the index that makes takeovers wait", breaks: "Guard", catch: "index", pkg: "./backends/postgres", parent: "TestGuard", edits: []edit{{
		"backends/postgres/guard.go", `err == nil && !b.guarded {`, `false {`}}},
	{name: "a guard with a transaction that may stand idle for ever", breaks: "Guard", catch: "bound", pkg: "./backends/postgres", parent: "TestGuard", edits: []edit{{
		"backends/postgres/guard.go", `max(a.Remaining.Milliseconds(), 1)`, `a.Remaining.Milliseconds()`}}},
	{name: "a new term that waits for others that notify as for a row", breaks: "Watch", catch: "TestNotifyTimeout", pkg: "./backends/postgres", edits: []edit{{
		"backends/postgres/postgres.go", `lockTimeout(ctx, time.Minute, 2)`, `lockTimeout(ctx, 300*time.Millisecond, 4)`}}},

	{name: "a release sent again after its answer", breaks: "8", catch: "elector/res/run-waits", pkg: suite, parent: "TestMemory", edits: []edit{{
		"acquisition.go", `store.Gain), release); f == nil {`, `store.Gain), release); f == nil {
				e.swap(ctx, e.asks(swapping, store.Gain), release)`}}},

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
	{name: "a Service that leads to a former leader", breaks: "Service", catch: "a_former_leader_is_late", pkg: "./backends/kubernetes", parent: "TestPointService", edits: []edit{{
		"backends/kubernetes/service.go", `case token > p.token:`, `case token > p.token && token < 0:`}}},
	{name: "a Service that leads to a leader which is about to end", breaks: "Service", catch: "the_lease_is_about_to_end", pkg: "./backends/kubernetes", parent: "TestPointService", edits: []edit{{
		"backends/kubernetes/service.go", `p.lease.Remaining()-p.ttl/4`, `p.ttl`}}},
	{name: "a Service that leads to a leader after its term", breaks: "Service", catch: "a_late_write", pkg: "./backends/kubernetes", parent: "TestPointService", edits: []edit{{
		"backends/kubernetes/service.go", `		p.sent = true
`, ``}}},
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
	{name: "a process serves under a lease that is lost", breaks: "forwarding", catch: "lost", pkg: "./electorhttp", parent: "TestObserver", edits: []edit{{
		"electorhttp/hub.go", `d == nil || d.lease.Context().Err() != nil || d.lease.Remaining() == 0`, `d == nil`}}},
	{name: "forwarded to a leader that is known no longer", breaks: "forwarding", catch: "unknown_leader", pkg: "./electorhttp", parent: "TestForward", edits: []edit{{
		"electorhttp/forward.go", `planned: o.err == nil && !o.leader.Vacant()`, `planned: !o.leader.Vacant()`}, {
		"electorhttp/trip.go", `	case v.err != nil:`, `	case v.err != nil && !v.planned:`}, {
		"electorhttp/forward.go", `o.leader, o.err, o.seen = l, err, o.seen || err == nil`, `if o.err = err; err == nil { o.leader, o.seen = l, true }`}}},
	{name: "an answer older than the request", breaks: "forwarding", catch: "shares_reads", pkg: "./electorhttp", parent: "TestLeader", edits: []edit{{
		"electorhttp/leader.go", `if h.started.Load() == before {`, `if h.started.Load() == max(before, 1)-1 {`}}},
	{name: "a request that may have had an effect is sent again", breaks: "routing", catch: "may_have_had_an_effect", pkg: "./electorhttp", parent: "TestRoute", edits: []edit{{
		"electorhttp/trip.go", `final = t.broke != nil || !t.parcel.idempotent()`, `final = t.broke != nil`}}},
	{name: "a body is sent again without its beginning", breaks: "routing", catch: "bodies", pkg: "./electorhttp", parent: "TestRoute", edits: []edit{{
		"electorhttp/trip.go", `return refused, !t.parcel.back() || final`, `t.parcel.back()
	return refused, final`}}},
	{name: "a routed request routed again", breaks: "routing", catch: "loop", pkg: "./electorhttp", parent: "TestRoute", edits: []edit{{
		"electorhttp/trip.go", `	case t.forwarded:`, `	case t.forwarded && !v.planned:`}}},
	{name: "the next owner does not wait for requests", breaks: "routing", catch: "drain", pkg: "./electorhttp", parent: "TestRoute", edits: []edit{{
		"electorhttp/hub.go", `d.inside.Wait() }()`, `}()`}}},
	{name: "a request that may have had an effect is said to have had none", breaks: "routing", catch: "broken,_then_gone", pkg: "./electorhttp", parent: "TestRouteHostile", edits: []edit{{
		"electorhttp/trip.go", `if t.broke != nil {`, `if t.broke != nil && false {`}}},
	{name: "a request that net/http has repeated is said to have had no effect", breaks: "routing", catch: "repeated_by_net-http", pkg: "./electorhttp", parent: "TestRouteHostile", edits: []edit{{
		"electorhttp/trip.go", `unsent(err) && !(written.Load() > 0 && t.parcel.idempotent())`, `unsent(err)`}}},
	{name: "a request that was served counts as refused", breaks: "routing", catch: "TestRefusalPassedOn", pkg: "./electorhttp", edits: []edit{{
		"electorhttp/trip.go", `if r.Header[tryHeader] != nil {`, `if false {`}}},
	{name: "a request outlives a lease that drains", breaks: "routing", catch: "timeout_while_it_drains", pkg: "./electorhttp", parent: "TestRouteHostile", edits: []edit{{
		"electorhttp/trip.go", `			if !until(ctx, nil, min(left, longestPause), nil) {
				return
			}
`, `			return
`}}},
	{name: "a partition that moves lets requests in", breaks: "routing", catch: "slow_worker", pkg: "./electorhttp", parent: "TestRoute", edits: []edit{{
		"electorhttp/hub.go", `d.lease.Context().Err() != nil || `, ``}}},
	{name: "resigns before the requests inside are served", breaks: "deploy", catch: "order", pkg: "./electorhttp", parent: "TestServe", edits: []edit{{
		"electorhttp/hub.go", `d.inside.Wait() }()`, `}()`}}},
	{name: "the server is shut down at once", breaks: "deploy", catch: "order", pkg: "./electorhttp", parent: "TestServe", edits: []edit{{
		"electorhttp/serve.go", `h.linger(s, told, served)`, `_ = told`}}},
	{name: "a deadline is set after the handler", breaks: "waiting", catch: "deadline_at_the_end", pkg: "./electorhttp", parent: "TestObserver", edits: []edit{{
		"electorhttp/parcel.go", `<-fired //`, `//`}}},
	{name: "a withheld body has no end", breaks: "waiting", catch: "withheld", pkg: "./electorhttp", parent: "TestObserver", edits: []edit{{
		"electorhttp/parcel.go", `time.Until(until)`, `time.Until(until)+time.Hour`}}},
	{name: "a withheld body takes a place", breaks: "waiting", catch: "withheld", pkg: "./electorhttp", parent: "TestObserver", edits: []edit{{
		"electorhttp/trip.go", `if waits && pause == shortestPause {`, `if pause == shortestPause {`}, {
		"electorhttp/trip.go", `waits := t.wait > 0 && !final`, `t.waiting.Add(1)
		defer t.waiting.Add(-1)
		waits := t.wait > 0 && !final`}}},
	{name: "each request has a line in the log", breaks: "waiting", catch: "one_line", pkg: "./electorhttp", parent: "TestObserver", edits: []edit{{
		"electorhttp/refusals.go", `now.Sub(t.logged) < logEvery`, `now.Before(t.logged)`}}},
	{name: "requests wait for less than a crash takes", breaks: "waiting", catch: "crash", pkg: "./electorhttp", parent: "TestObserver", edits: []edit{{
		"electorhttp/trip.go", `failover+2*time.Second`, `failover/2`}}},
	{name: "shuts down as soon as another process leads", breaks: "deploy", catch: "late", pkg: "./electorhttp", parent: "TestServe", edits: []edit{{
		"electorhttp/serve.go", `least, quiet := s.linger, silence`, `least, quiet := s.linger, time.Duration(0)`}}},
	{name: "lingers only until another process leads", breaks: "deploy", catch: "follower", pkg: "./electorhttp", parent: "TestServe", edits: []edit{{
		"electorhttp/serve.go", `shown && time.Since(came) >= quiet && (moved || h.waiting.Load() == 0)`, `(shown || quiet >= 0) && moved`}}},
	{name: "does not wait for the next leader", breaks: "deploy", catch: "alone", pkg: "./electorhttp", parent: "TestServe", edits: []edit{{
		"electorhttp/serve.go", `moved || h.waiting.Load() == 0`, `moved || true`}}},
	{name: "ready although it stops", breaks: "deploy", catch: "order", pkg: "./electorhttp", parent: "TestServe", edits: []edit{{
		"electorhttp/health.go", ` && !h.stopping`, ``}}},
	{name: "clients keep connections to a process that stops", breaks: "deploy", catch: "order", pkg: "./electorhttp", parent: "TestServe", edits: []edit{{
		"electorhttp/serve.go", `w.Header().Set("Connection", "close")`, ``}}},
	{name: "observes no longer than until it is told to stop", breaks: "deploy", catch: "follower", pkg: "./electorhttp", parent: "TestServe", edits: []edit{{
		"electorhttp/serve.go", `kept := h.keep()`, `kept := true`}}},
	{name: "a request that may have had an effect goes to the next leader", breaks: "deploy", catch: "may_have_had_an_effect", pkg: "./electorhttp", parent: "TestObserver", edits: []edit{{
		"electorhttp/trip.go", `final = t.broke != nil || !t.parcel.idempotent()`, `final = t.broke != nil`}}},
	{name: "requests enter although the worker was told to stop", breaks: "deploy", catch: "slow_worker", pkg: "./electorhttp", parent: "TestObserver", edits: []edit{{
		"electorhttp/hub.go", `d.lease.Context().Err() != nil || `, ``}}},
	{name: "a worker that panics waits for requests", breaks: "deploy", catch: "panic", pkg: "./electorhttp", parent: "TestObserver", edits: []edit{{
		"electorhttp/hub.go", `	defer shut()
`, `	defer func() { shut(); d.inside.Wait() }()
`}}},
	{name: "a request that does not end keeps the lead for good", breaks: "deploy", catch: "long_inside", pkg: "./electorhttp", parent: "TestObserver", edits: []edit{{
		"electorhttp/hub.go", `case <-time.After(longestInside):`, `case <-time.After(1 << 62):`}}},
}
