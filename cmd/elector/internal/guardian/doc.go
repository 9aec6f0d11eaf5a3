// Package guardian runs a command so that none of its descendants outlives a
// deadline.
//
//	elector run ── the wrapper: holds the lease, knows when it ends
//	 └─ guardian ── the same program: knows the deadlines, kills
//	     └─ command, and everything that it starts
//
// The wrapper starts the guardian with [Start] and sends it each new deadline
// through a pipe. The guardian is the parent of the command and the subreaper of
// its descendants, also of those that made a session of their own. It ends them
// when the first of these happens:
//
//   - The command ends: what it has left is killed.
//   - The wrapper says so: SIGTERM to the command, and SIGKILL to all after a grace.
//   - Time is up: SIGTERM at the deadline less Kill less Grace, SIGKILL to all at
//     the deadline less Kill. A later deadline does not take a SIGTERM back.
//   - The pipe closes, because the wrapper is gone: the same, at once.
//
// It then waits until the last descendant is gone, and reports that.
//
// Deadlines are in the time since boot, suspends included: see [Now]. So they hold
// while the wrapper is stopped or hangs. The wrapper does the guardian's work if
// that is killed, or stopped or late by a quarter of Kill: it is a subreaper too.
//
// To kill all, both look for descendants again and again, until wait(2) shows that
// none is left. What is alive long after SIGKILL is reported: see [Guarded.Survivors].
//
// With Command.Isolate the guardian is process 1 of a PID namespace. When it ends,
// however that comes, the kernel kills all of the namespace: so a guardian that is
// killed while the wrapper is stopped leaves nothing, which nothing else could see
// to. The guardian itself kills the namespace in one step, and the wrapper
// learns from the kernel, with the guardian's end, that the namespace is empty.
// No process inside can end or stop the guardian. Both the guardian and the wrapper
// stopped is still not covered.
//
// On systems other than Linux there is no subreaper: the guardian kills the process
// group of the command, and what has left that is out of reach.
package guardian
