// Package gcs keeps election records in a bucket of Google Cloud Storage, one
// object for each election. See docs/stores/gcs.md for permissions, costs, settings of
// the bucket, limits and emulators.
//
// # URLs
//
//	gs://bucket/prefix
//	gs://bucket?endpoint=http://127.0.0.1:4443
//
// Parameters:
//
//   - endpoint: the address of an emulator.
//   - readonly: true opens the bucket for reading alone. Open then asks for a token that
//     can only read, and reads an object that no election has. See
//     [backends.OpenReadOnly].
//
// The package uses the Application Default Credentials. [New] takes your client instead
// of a URL.
//
// # Consistency
//
// Linearizable. A change is one insert of the whole object, on the condition
// that its generation is the one that was read, or that the object does not
// exist. The generation is the record's version. It is never used again, not
// even after the object was deleted, but it is not guaranteed to grow; so it is
// compared for equality only, and the token is in the record. A read is one
// download of the content, with the generation in the header of the same answer.
// If the object does not exist, a second request checks that the bucket does.
//
// Every request is sent once. The client library alone would repeat a
// conditional insert whose answer was lost, and report that the condition does
// not hold, because its own first try was applied. The elector repeats and reads
// back, once, for every store. For the requests of this package the library's
// retries are also off with your own client; there, only an answer that breaks
// off in the middle is continued, from the same generation.
//
// # Expiry
//
// By the elector's rule alone. The times that the service keeps with an object,
// and lifecycle rules, play no part. The service cannot report changes in time,
// so waiters poll.
//
// # Fencing
//
// A leader that is paused after lease.Check can write an object late. [Write] keeps
// the lease's token in the object's metadata: an object with a higher token is not
// overwritten. It works with a lease of any store, in any bucket, and refuses an old
// leader once a later one has written the object. A leader that computes what it
// writes from what it reads must therefore call [Claim] first, which reads the
// object and writes it back.
//
// Write reads the attributes, compares the tokens, and inserts the whole object on
// the condition that its generation is the one that was compared; if another write
// came in between, it begins again. The service takes about one write per second of
// an object, with Claim or without.
package gcs
