// Package elector elects one leader among many processes, on the store that
// they already run. It is for singleton workers: schedulers, invoice senders,
// compactors, controllers.
//
// # What a lease cannot promise
//
// A process can pause between a successful [Lease.Check] and the side effect
// that follows it: for a garbage collection, a SIGSTOP, or a frozen virtual
// machine. If the pause outlasts the lease, the process acts late. Right after
// such a pause Check already fails, but the lease's context may not have ended
// yet. No lock service can prevent this. Only the protected resource can refuse
// the late write, by the fencing token: send [Lease.Token] with every write, and
// let the resource refuse tokens lower than the highest it has seen. See [Fence].
//
// # What is guaranteed
//
//   - No two processes have a valid lease on one election at the same instant,
//     while the rate of every machine's clock is right within
//     [Options.ClockDrift], 10 % by default, and the store loses no write that
//     it acknowledged. The times of day of two machines are never compared.
//   - A lease is valid for TTL*(1-ClockDrift), counted from before the last
//     acknowledged request was sent. The lease and its context end by the local
//     clock, whatever the store does.
//   - A challenger takes over only by a compare-and-swap, after the record has
//     stood unchanged for TTL*(1+ClockDrift) of the challenger's own clock.
//   - The fencing token grows with each acquisition while the record exists. It
//     also grows when the record is deleted or rolled back, if the winner had
//     seen the highest token, or if the machines' times of day differ by less
//     than the time in between.
//   - A lost answer is resolved by reading back, never by a guess. While the
//     store cannot be reached, no process is elected and no lease is extended.
//   - A release compares with the releaser's own record, so it cannot remove a
//     successor's.
//   - The holder of a record that was edited by hand loses its lease at the next
//     renewal. Until then, an edit that empties the holder or lowers the TTL can
//     make a second leader: call Resign on the first one instead.
//
// # How it works
//
// A store keeps one record for each election, and the record changes only by
// compare-and-swap; see package backends. A renewal is such a write. Elections
// do not rely on the store's own leases and sessions: in measurements, stores
// deleted keys after acknowledged keep-alives, and served sessions that they had
// expired, around their own failovers.
//
// # When a record is wrong
//
// If a record has a mistaken TTL, such as 24 h, make sure that no leader runs,
// delete the record in the store, and restart the processes that wait. A process
// that has seen the record counts the election as held for TTL*(1+ClockDrift)
// after the record has vanished; a fresh process does not. A foreign record
// (ErrForeignRecord) stays untouched until you delete it.
//
// # Tests
//
// Package electortest scripts elections for the tests of a worker. docs/testing.md
// tests one with it.
//
// Import the backend for its URL scheme:
//
//	import _ "github.com/elector-go/elector/backends/postgres"
package elector
