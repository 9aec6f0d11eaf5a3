// Package backends is the boundary between the elector and the stores that it runs
// on. It imports only the standard library, and so can your own backend.
//
// A backend keeps one [Record] for each election and changes it only by
// compare-and-swap. It has no clock, no retry, no loop, and does not decide who
// leads: expiry, renewal, waiting, tokens and the reading back of ambiguous
// outcomes are in package elector, once, for every store. In particular a store's
// own lease or session is never evidence, neither that a holder is alive nor that it
// is gone: stores were measured to break both promises during their own failovers.
//
// # A checklist for authors
//
// docs/backend.md leads from an empty folder to a backend that passes the suite of
// package conformance. The easy way is a [Base]: it checks names, refuses calls
// after Close, ends the calls under way at Close, joins contexts and gives errors
// their form. A backend without one does all of that itself.
//
// Load:
//
//   - It reflects every Swap that was acknowledged before it began, through any
//     handle on the store. It does not read from a cache or from a replica that lags.
//   - An election without a record is the zero Record and no error. Nothing else is:
//     a read that fails, or whose context has ended, returns an error, because an
//     empty record means that the election has no leader.
//   - Content that is not a valid record is [ErrForeignRecord]: see [Decode] and
//     Record.Validate. It takes bounded memory and is never changed.
//   - Every field reads as it was written, to the byte, and so do extensions. A
//     record that did not change keeps its [Version].
//
// Swap:
//
//   - It compares and writes in one atomic step of the store. It never reads first
//     and then writes without a condition.
//   - It compares the Version, not the holder or the token. An empty prev.Version
//     means that there must be no record.
//   - It returns next with a new Version, also if only the attempt or an extension
//     differs. A Version is never used again, not even after the record was deleted
//     and created anew with the same content.
//   - It returns without error only when the write is applied and durable.
//   - [ErrConflict] means that the store holds another version, and nothing else. No
//     other error is reported as a conflict.
//   - It writes the extensions that it was given, and no others.
//   - It does not retry, and the client library does not retry writes.
//
// Every call:
//
//   - It returns when its context ends, and never reports that as a permanent error.
//     For a client library that ignores contexts there is [WithContext]. The handle works
//     afterwards.
//   - A name that [CheckName] refuses is [ErrName], before any request. No name reaches
//     another election's record.
//   - It may run at the same time as any other, for the same name too, and never
//     panics.
//   - Errors wrap those of the client library and say what to do. No error and no
//     Description has a password: see [Redact].
//   - After Close it returns an error and writes nothing. Close may be called again
//     and concurrently, and leaves no goroutine and no connection behind.
//
// In the packages of this module the constructor on a client of the caller is
// New(ctx, client, *Options) (*Backend, error). For a client or options that it cannot use
// it returns [ErrOptions], before any request.
//
// Opening makes a request. A store that is set up wrongly is refused then, with
// [ErrMisconfigured], [ErrDenied], [ErrReadOnly], [ErrUnavailable] or [ErrURL].
//
// A handle that was opened for reading alone, see [OpenReadOnly], needs only the right to
// read. It creates nothing, and a replica that lags will do. Its Description has ReadOnly
// set, and its Swaps return [ErrReadOnly].
//
// The suite also needs access to the store without the backend, the type Raw of
// package conformance: its Get returns nil if there is no record, and only then. Its
// Harness.Slow is for every store where a write costs milliseconds, and a longer
// Harness.TTL is for a busy machine or a distant store.
//
// [Watcher], [SameWriter], [PresenceWatcher], [BatchSwapper], [BatchLoader], [Lister] and [Inspector] are for
// stores that can do more.
//
// LoadMany, of a [BatchLoader], reads each record as Load does:
//
//   - What Load promises holds for each name: no cache, no replica that lags, every
//     field to the byte, the same Version.
//   - Each name has its own Outcome, at its own place, also if a name repeats. A
//     foreign record is an error for its name alone.
//   - Only a record that does not exist is the zero Record without an error. A name
//     that the store left out, because it throttles or its answer is full, is an
//     error.
//   - A record that must be read in another way than the others, because a write has
//     had no answer for example, is [ErrNotTried].
package backends
