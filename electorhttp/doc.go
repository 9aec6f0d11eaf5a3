// Package electorhttp has HTTP handlers for processes that elect a leader: who
// leads, health, and forwarding to the leader. A service that only its leader can
// serve, behind a load balancer that knows no leader, needs five lines:
//
//	o := electorhttp.Observe(ctx, e)
//	http.Handle("GET /ready", o.Ready())
//	http.Handle("GET /leader", electorhttp.Leader(e))
//	http.Handle("/", o.Forward(api))
//	err := o.Serve(ctx, &http.Server{ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}, listener, work)
//
// where each candidate publishes its own address in [elector.Options.Value]. Requests
// wait while the lead moves, and Serve stops a process so that a deploy costs none.
//
// A [Router] does the same for each partition of a group.
//
// What a handler shows may be out of date. Only a lease shows that this process leads: a
// handler that changes something gets it from [LeaseFrom], calls [elector.Lease.Check]
// before, and sends the fencing token with the write.
package electorhttp
