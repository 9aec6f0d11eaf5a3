// Package electorhttp has HTTP handlers for processes that elect a leader: who
// leads, health, and forwarding to the leader. A service that only its leader can
// serve, behind a load balancer that knows no leader, needs three lines:
//
//	o := electorhttp.Observe(ctx, e)
//	http.Handle("GET /leader", electorhttp.Leader(e))
//	http.Handle("/", o.Forward(api))
//
// where each candidate publishes its own address in [elector.Options.Value].
//
// A [Router] does the same for each partition of a group.
//
// The answers are for display and routing. Only a lease shows that this process
// leads: a handler that changes something calls [elector.Lease.Check] before, and
// sends the fencing token with the write.
package electorhttp
