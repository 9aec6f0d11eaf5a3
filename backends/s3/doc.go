// Package s3 keeps election records in a bucket of Amazon S3, or of a server with the
// same interface and conditional writes, one object for each election. It is a module
// of its own.
//
// # URLs
//
//	s3://bucket/prefix?region=eu-central-1
//	s3://bucket?endpoint=http://127.0.0.1:9000
//
// An election's object is the path, a slash and the election's name, as in
// prefix/NAME; without a path it is elector/NAME. Its content is JSON. Parameters:
//
//   - region: the bucket's region; by default that of the AWS SDK's settings, for
//     example AWS_REGION, and us-east-1 with an endpoint.
//   - endpoint: an http or https URL to send requests to instead of the region's, for
//     another server or a private endpoint.
//   - path_style: whether requests name the bucket in the path and not in the host
//     name; true by default with an endpoint, and false without.
//
// Any other parameter is refused. The AWS SDK finds the credentials: in the
// environment, in shared files and profiles, by web identity, or by the role of
// the container or machine. The URL cannot hold them. The SDK's other settings,
// such as AWS_CA_BUNDLE and AWS_PROFILE, apply too.
//
// [New] takes your client instead of a URL.
//
// # Consistency
//
// Linearizable, on Amazon S3. A change is one PutObject of the whole object with
// If-Match, the entity tag (ETag) that was read, or with If-None-Match: *, if there
// must be no object. A read is one GetObject; Amazon's have shown every
// acknowledged write since December 2020.
//
// The entity tag is the record's version. It is the MD5 of the content, so the same
// content has the same tag; but each write of an election has another attempt in its
// content, and no content comes back.
//
// The answers 412 PreconditionFailed, 409 ConditionalRequestConflict (another write
// was under way) and, to If-Match, 404 NoSuchKey are conflicts: nothing was
// written.
//
// Every request is sent once, whatever the client's policy is: a conditional write
// that the SDK repeats after a lost answer fails because its first try succeeded. The
// elector tries again, and reads back first.
//
// # Other servers
//
// The server must keep both conditions in PutObject, each in one atomic step, and its
// reads must show every acknowledged write. Some servers ignore conditions, and two
// candidates would win. So Open and New probe the server: they create the object
// PREFIX.probe, create it again, and overwrite it with a wrong If-Match. A server that
// does not refuse the latter two is ErrMisconfigured. What the probe cannot find is a
// server that compares and writes in two steps, or reads from a replica that lags.
//
// A read that a write overtakes can have the tag of one state and the content of
// another on some servers. Load compares the MD5 of the content with the tag, if that
// looks like an MD5 and the object is not encrypted with a key of AWS KMS or of the
// caller. If they differ it returns ErrUnavailable, and no record.
//
// Directory buckets of Amazon S3 are refused: they keep their objects in one zone.
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
//
// # Permissions
//
// The smallest policy; put in bucket and prefix:
//
//	{
//		"Version": "2012-10-17",
//		"Statement": [{
//			"Effect": "Allow",
//			"Action": ["s3:GetObject", "s3:PutObject"],
//			"Resource": "arn:aws:s3:::BUCKET/elector/*"
//		}, {
//			"Effect": "Allow",
//			"Action": "s3:ListBucket",
//			"Resource": "arn:aws:s3:::BUCKET"
//		}]
//	}
//
// s3:ListBucket is needed because without it S3 answers 403 AccessDenied for an object
// that does not exist, as for one that may not be read. Do not restrict it to a prefix
// by a condition: a GetObject has no s3:prefix, so the condition would not hold.
//
// To restrict a service to its own elections, name their objects and elector/.probe in
// the first statement, and elector/.absent for s3:GetObject. An observer needs no
// s3:PutObject: Open then does not probe, and a Swap through that handle would probe
// first. Write and Claim need the same three permissions on their object's bucket.
//
// elector doctor shows more with s3:GetBucketVersioning and
// s3:GetLifecycleConfiguration.
//
// # Limits
//
// The shortest TTL is 3 s, which leaves a request 450 ms. S3 answers within 100 to
// 200 ms as a rule.
//
// Each renewal is a PUT request and each read a GET request. With the default TTL of
// 15 s an election makes 19,200 renewals a day, which cost 0.10 dollars, or 3 dollars a
// month, at 0.005 dollars per 1,000; a waiter reads about as often, which costs 0.01
// dollars a day at 0.0004 per 1,000. A TTL of a minute costs a quarter. Traffic
// costs extra if the candidates run elsewhere. Use the storage class Standard: others
// charge each overwritten object for 30 days or more.
//
// In a bucket with versioning each renewal leaves a version: 19,200 a day for each
// election, until a lifecycle rule expires noncurrent versions. Object Lock retains
// them for longer. A lifecycle rule that matches the prefix may delete or archive
// records. A record that vanishes counts as held for its TTL, but the next winner's
// token then rests on the clocks alone. A bucket with replication is one bucket: all
// candidates use the same one, also after a failover.
//
// A handle has at most 64 connections; further requests wait. They use HTTP/1.1, so
// that a dead connection blocks one request only, and after a request without an
// answer no idle connection is used again.
//
// When a clock is wrong by minutes, S3 refuses signatures. That may pass: the SDK
// learns the difference from the answer. Expired credentials may pass if the SDK can
// fetch new ones, but not if they came from the environment.
//
// An operator reads a record with
//
//	aws s3 cp s3://BUCKET/elector/NAME -
//
// An empty holder is a vacancy. The record of a dead leader keeps its holder until
// another candidate takes over. To depose a leader, stop it. Do not delete objects of
// elections in use. Restoring an older version is a loss of acknowledged writes:
// stop the candidates first.
//
// Tested with gofakes3 1.2.0, which keeps both conditions, built with one change: its
// reads could be torn. s3rver 3.7.1, which ignores conditions, is refused. On versitygw
// 1.8.0, whose reads can be torn too, only exclusion is tested. These servers differ
// from Amazon's in these points; the package relies on none of them:
//
//	                       the service                gofakes3
//	credentials, policies  401, 403                   not checked
//	regions                apart                      one
//	too many requests      503 SlowDown               never
//	a write under way      409                        it waits
//	If-Match, no object    404                        412
//	KMS, Object Lock       as documented              none
//	metadata               that of the last write     that of earlier writes too
//
// What it cannot show is tested against answers as the service documents them. The
// comment of TestS3 in internal/proof/stores explains how to run the suite on a bucket
// of the real service.
package s3
