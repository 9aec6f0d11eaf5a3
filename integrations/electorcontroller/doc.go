// Package electorcontroller runs Kubernetes controllers, and other programs of
// client-go's leader election, under elections of package elector, on any store.
//
// [Run] is for most controllers: it makes a manager for each term, and the manager's
// context ends with the lease. All of the manager, its caches and webhooks too, runs
// on the leader alone.
//
// [Lock] is for a manager that runs on each replica, and whose controllers alone run
// on the leader: its caches are warm when it takes over, and its webhooks answer
// everywhere. It is client-go's resourcelock.Interface.
//
// # What is promised
//
// The manager's context ends when the lease ends, by the local clock, whether or not
// the store answers. client-go's own election only asks its lock, every RetryPeriod,
// and goes on for RenewDeadline after the first refusal; a process that was stopped
// and continued counts RenewDeadline from then.
//
// The store is told that the election is vacant only after the manager has stopped
// without an error. A manager that returns an error may have left reconcilers
// running, which only the end of the process stops: then the store is never told, and
// another process leads TTL*(1+ClockDrift) after the last renewal.
//
// Set the manager's GracefulShutdownTimeout to -1, so that Start waits for its
// reconcilers; elector.Options.ReleaseTimeout bounds for how long the lease waits for
// them. After the default, 30 s, Start returns an error; with 0 it returns nil at once
// while reconcilers still run, and another process may lead beside them.
//
// # Reconcilers
//
// A reconciler that is paused before a write sends it late. It calls Check of the lease
// between its read and its write, and sends the resource version of the read, or the
// fencing token: see docs/kubernetes.md.
package electorcontroller
