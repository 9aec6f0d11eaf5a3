// Package elector elects one leader among many processes, on the store that
// they already run. It is for singleton workers: schedulers, invoice senders,
// compactors, controllers.
//
// # What a lease cannot promise
//
// A process can be paused between a successful [Lease.Check] and the side
// effect that follows it, by the garbage collector, a stopped process or a
// frozen virtual machine, for longer than its lease; it then acts late. Right
// after such a pause the lease's context may not have ended yet although Check
// already fails. No lock service can prevent this. Only the protected resource
// can refuse the late write, by the fencing token: send [Lease.Token] with
// every write, and let the resource refuse tokens lower than the highest it has
// seen. See [Fence].
//
// # What is guaranteed
//
//   - While the rate of every machine's clock is right within
//     [Options.ClockDrift], 10 % by default, and the store loses no write that
//     it acknowledged, no two processes have a valid lease on one election at
//     the same instant. Times of day of two machines are never compared.
//   - A lease is valid for TTL*(1-ClockDrift) from before the last acknowledged
//     request was sent. It ends by the local clock, whatever the store does,
//     and its context with it.
//   - A challenger takes over only after the record stood unchanged for
//     TTL*(1+ClockDrift) of its own clock, by a compare-and-swap.
//   - The fencing token grows with each acquisition, for as long as the record
//     lives; and also beyond, if the winner had seen the highest token or the
//     machines' times of day agree better than the time in between.
//   - A lost answer is resolved by reading back, never by a guess. A store that
//     cannot be reached elects nobody and extends nothing.
//   - A release is conditional on the releaser's own record.
//   - A record that somebody edited by hand is lost to its holder at the next
//     renewal. Until then, emptying its holder or lowering its TTL can make a
//     second leader: stop the first one instead, by Resign.
//
// # How it works
//
// A store keeps one record for each election and changes it only by
// compare-and-swap; see package backends. A renewal is such a write. The store's
// own leases and sessions are not relied on: stores were measured to delete
// keys with acknowledged keep-alives, and to serve sessions that they had
// expired, around their own failovers.
//
// # When a record is wrong
//
// If a record was written with a mistaken TTL, of 24 h say, delete it in the
// store, and restart the processes that wait: a process that has seen it counts
// the election as held for TTL*(1+ClockDrift) after it has vanished, and a fresh
// one does not. Make sure first that no leader runs. What leaves a foreign record
// behind (ErrForeignRecord) is left alone until it is deleted.
//
// # Tests
//
// The memory backend works in a bubble of testing/synctest, where hours pass in a
// moment: see the example of a worker's test.
//
// Import the backend for its URL scheme:
//
//	import _ "github.com/elector-go/elector/backends/postgres"
package elector
