// Package nats keeps election records in a key/value bucket of NATS JetStream. See
// docs/stores/nats.md for the parameters, permissions, costs, settings of the servers and
// limits. It needs nats-server 2.12 or later.
//
// # URLs
//
//	nats://user:password@host:4222,host2:4222/bucket?prefix=elector
//	natss://host:4222/bucket?creds=/etc/app/nats.creds&ca=/etc/nats/ca.pem
//
// natss:// uses TLS. The path is the bucket, which Open creates with create=true if it is
// missing. The parameters are create, prefix, replicas, inbox, creds, nkey, password_file,
// token_file, readonly, and with natss ca, cert, key, server_name and tls_first. [New] takes your own connection
// instead of a URL.
//
// # Consistency
//
// A change is one message to the bucket's stream, which takes it only if the sequence of
// the latest message of the election is the one that was read, or if there is none. An
// election has two keys, PREFIX.NAME.LIFE.term and PREFIX.NAME.LIFE.renewal: the first
// gets the writes that begin or end a term, the second the renewals, and the later of the
// two is the record. LIFE is random, and new when the record is created. So a process
// that has read the record of a bucket that was deleted, or lost, and made anew cannot
// write to the new one, although sequences come back.
//
// A read is one request that only the stream's leader answers, also if the bucket allows
// direct reads, which any replica answers with what it has. A leader that is cut off from
// the other replicas, and does not know it yet, would answer with an old record. So on a
// bucket with replicas a second request follows: a write to a third key, PREFIX.NAME, with
// the condition that the record is still the one that was read. Its answer shows that the
// server still leads the majority. A handle that only reads leaves that out.
//
// This package does not use the retries of the client library, nor its buffer for writes
// while it reconnects. It sends a write again, with the same condition, if the stream has
// refused it because another write of the election was under way, or for its condition while
// a majority of the replicas holds what that asks for: a leader that was deposed refuses so.
//
// # Expiry
//
// By the elector's rule alone. The package does not use the TTLs of NATS, and refuses
// buckets that delete records.
//
// Watch pushes every change, renewals included, by a consumer on the servers. It returns
// when the connection is lost, when a message was lost, and when the consumer was silent
// for 5 s or could not be made in that time. While nothing changes it is one read in 10 s.
//
// # Fencing
//
// A leader that keeps its data in the same bucket writes them with [Put], or with the
// headers of [Guard] in a message of its own. Such a write succeeds only while the
// lease's acquisition is the latest, however late the write arrives: it has the condition
// that the latest message of the key PREFIX.NAME.LIFE.term is still the acquisition's.
// Renewals leave that key as it is. This takes no round trip and no further write.
//
// Once a leader has acquired the election, no guarded write of an earlier leader can
// succeed, so the new leader can rely on what it then reads with [Get]. Other reads, also
// those of nats.go, may be old.
package nats
