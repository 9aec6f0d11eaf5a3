// Package s3 keeps election records in a bucket of Amazon S3, or of a server with the
// same interface and conditional writes, one object for each election. It is a module
// of its own. See docs/stores/s3.md for permissions, costs, settings of the bucket,
// limits and other servers.
//
// # URLs
//
//	s3://bucket/prefix?region=eu-central-1
//	s3://bucket?endpoint=http://127.0.0.1:9000
//
// Parameters:
//
//   - region: the bucket's region.
//   - endpoint: an http or https URL to send requests to instead of the region's.
//   - path_style: whether requests name the bucket in the path.
//   - readonly: true opens the bucket for reading alone. Open then does not probe the
//     server, and needs no right to write. See [backends.OpenReadOnly].
//
// The AWS SDK finds the credentials. [New] takes your client instead of a URL.
//
// # Consistency
//
// Linearizable, on Amazon S3. A change is one PutObject of the whole object with
// If-Match, the entity tag (ETag) that was read, or with If-None-Match: *, if there
// must be no object. A read is one GetObject; Amazon's have shown every
// acknowledged write since December 2020.
//
// The entity tag is the record's version. As a rule it is the MD5 of the content, so
// the same content has the same tag; but each write of an election has another attempt
// in its content, and no content comes back.
//
// The answers 412 PreconditionFailed, 409 ConditionalRequestConflict (another write
// was under way) and, to If-Match, 404 NoSuchKey are conflicts: nothing was
// written.
//
// Every request is sent once, whatever the client's policy is: a conditional write
// that the SDK repeats after a lost answer fails because its first try succeeded. The
// elector tries again, and reads back first.
//
// Some servers ignore conditions, and two candidates would win. So Open and New probe
// the server, unless readonly=true, and return ErrMisconfigured if it does not refuse.
// On a server that is not Amazon's they also let rivals write at once, of which one
// alone may win, and read after that.
//
// # Expiry
//
// By the elector's rule alone. Lifecycle rules play no part. S3 cannot report changes
// in time, so waiters poll.
//
// # Fencing
//
// A leader that is paused after lease.Check can write an object late. [Write] keeps
// the lease's token in the object's metadata: an object with a higher token is not
// overwritten. It works with a lease of any store, in any bucket that keeps
// conditions, and refuses an old leader once a later one has written the object. A
// leader that computes what it writes from what it reads must therefore call [Claim]
// first, which reads the object and writes it back.
//
// Write reads the metadata, compares the tokens, and puts the whole object on the
// condition that its entity tag is the one that was compared; if another write came
// in between, it begins again. The tag covers the content and not the metadata: if a
// later leader wrote the same content, as Claim does, the condition of a late write
// would still hold. So Write stores the content compressed and puts the token into
// the header of the gzip format, where readers do not see it: objects of different
// leaders have different tags. Their Content-Encoding is gzip. Browsers and curl
// --compressed decompress them; programs with an AWS SDK do that themselves.
//
// Probe other servers before you rely on Write: Open does that, Write does not.
package s3
