// Package gcs keeps election records in a bucket of Google Cloud Storage, one
// object for each election.
//
// # URLs
//
//	gs://bucket/prefix
//	gs://bucket?endpoint=http://127.0.0.1:4443
//
// An election's object is the path, a slash and the election's name, as in
// prefix/NAME; without a path it is elector/NAME. Its content is JSON. There is
// one parameter:
//
//   - endpoint: the address of an emulator, as http://host:port. The package
//     then looks for no credentials and sends none. Without the parameter,
//     STORAGE_EMULATOR_HOST in the environment means the same, as in Google's
//     own libraries.
//
// Any other parameter is refused, and so are credentials in the URL. The package
// uses the Application Default Credentials: the key file that
// GOOGLE_APPLICATION_CREDENTIALS names, the login of gcloud auth
// application-default login, or the service account of the machine.
//
// [New] takes your client instead of a URL. It can do what a URL cannot: use a
// private endpoint with credentials, or an impersonated account.
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
// The service is strongly consistent, but a cache may serve an object that is
// publicly readable for an hour. Records are written with Cache-Control:
// no-store. In a public bucket, an object that another program put in the place of
// a record may still be read when it is gone; a change based on that read is
// refused.
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
// Requests use HTTP/1.1, with up to 32 connections for each handle: a connection
// that hangs holds up no other. After a call that got no answer in time, the
// package closes the idle connections, because in a network gone dark they are
// dead too.
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
//
// # Permissions
//
// The role Storage Object User on a bucket that is for elections only:
//
//	gcloud storage buckets add-iam-policy-binding gs://BUCKET \
//		--member=serviceAccount:ACCOUNT --role=roles/storage.objectUser
//
// To restrict the role to the prefix, the bucket needs uniform bucket-level
// access, and the condition has to name the bucket too, for listing:
//
//	--condition='title=elections,expression=resource.name == "projects/_/buckets/BUCKET" || resource.name.startsWith("projects/_/buckets/BUCKET/objects/elector/")'
//
// Of this role the package uses storage.objects.get, storage.objects.create,
// storage.objects.delete (an overwrite requires it) and storage.objects.list;
// the last only because without it the service answers "forbidden" for an object
// that does not exist. A custom role with these four is enough. To observe,
// roles/storage.objectViewer is enough. Write and Claim need the same four
// permissions on the bucket of their object.
//
// With storage.buckets.get too, as in roles/storage.legacyBucketReader, Open
// refuses a bucket with a retention policy or a default event-based hold. In
// such a bucket an object can be written once and not again: a candidate could
// win and never renew. Without that permission the first renewal shows it.
//
// # Limits
//
// The service takes about one write per second of one object, and answers more
// with 429. So a TTL is at least 5 s, and each process keeps its writes of one
// election at least 1.2 s apart. An acquisition right after another process's
// release can still meet a 429; it is then tried again. After a request to resign,
// or a candidate with a Priority, has written into the leader's record, the
// leader's next renewal can be that much later; and a successor that does not come
// costs two renewal intervals.
//
// Each renewal is a Class A operation and each read a Class B operation. With
// the default TTL of 15 s an election makes 19,200 renewals a day, which cost
// 0.10 dollars at 0.005 dollars per 1,000; a waiter reads about as often, which
// costs 0.01 dollars a day at 0.0004 per 1,000. Traffic costs extra if the
// candidates run elsewhere. Use the storage class Standard: the others charge
// each overwritten object for 30 days or more.
//
// Soft delete, which new buckets have on, keeps each of these 19,200 generations
// a day for 7 days: about 134,000 objects and 40 MB for each election. Switch it
// off, in a bucket that is for elections only:
//
//	gcloud storage buckets update gs://BUCKET --clear-soft-delete
//
// Object versioning keeps them for good:
//
//	gcloud storage buckets update gs://BUCKET --no-versioning
//
// A lifecycle rule that matches the prefix may delete records. A record that
// vanishes counts as held for its TTL, but the next winner's token then rests
// on the clocks alone. Requester-pays buckets and customer-supplied encryption
// keys are not supported; a default Cloud KMS key of the bucket is.
//
// An operator reads the records with
//
//	gcloud storage cat 'gs://BUCKET/elector/*'
//
// An empty holder is a vacancy. The record of a leader that died keeps its
// holder until another candidate takes over. To depose a leader, stop it. Do not
// delete objects of elections in use. Restoring an older generation is a loss of
// acknowledged writes: stop the candidates first.
//
// Tested with fake-gcs-server 1.56.1, an emulator. It differs from the service
// in these points; the package relies on none of them:
//
//	                    the service               the emulator
//	writes              about 1 a second          as many as it can
//	  too many          429                       never
//	generations         unique                    the clock's microseconds
//	credentials, roles  401, 403                  not checked
//	no such bucket      known by its attributes   the same
//	retention policies  403 on overwriting        forgotten
//	default holds       403 on overwriting        shown, not enforced
//	patch, conditional  as documented             wrong, and never used
//	  delete
//	metageneration      as documented             wrong, and never used
//	soft delete         on by default             none
//	caches              of public objects         none
//
// What the emulator cannot show is tested against answers as the service
// documents them. The comment of TestGCS in internal/proof/stores explains how
// to run the suite on a bucket of the real service.
package gcs
