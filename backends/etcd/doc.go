// Package etcd keeps election records in etcd, one durable key for each
// election.
//
// # URLs
//
//	etcd://user:password@host:2379,host2:2379/prefix
//	etcds://host:2379/prefix?ca=/etc/etcd/ca.pem&cert=/etc/etcd/app.pem&key=/etc/etcd/app.key
//
// etcds:// speaks TLS. Name every member: those that answer share the requests.
// The port is 2379 by default; give it for the last host, if for any. An
// IPv6 address in brackets can only stand alone; several need names. Over
// etcd:// the password goes through the network in the clear. An
// election's key is the path, a slash and the election's name, as in
// /prefix/NAME; without a path it is /elector/NAME. Parameters, for etcds
// only:
//
//   - ca: a PEM file with the authorities to trust instead of the system's.
//   - cert, key: PEM files of a client certificate, read again for each
//     connection, so that they can be rotated.
//   - server_name: the name in the servers' certificates, if it is not the host.
//
// Any other parameter is refused. User and password go together. Both are
// ignored by a cluster that has authentication switched off.
//
// [New] takes a client of yours instead of a URL.
//
// # Consistency
//
// Linearizable. A change is one transaction: put, if the key still has the very
// bytes that were read, or does not exist. Bytes are compared and not
// revisions, because a restored backup takes revisions back and then gives them
// out a second time, while no two writes have the same bytes. A read is one
// linearizable range; serializable reads are never asked for.
//
// Renewals of many elections, when one process holds them through one handle,
// are one transaction of up to 100 smaller ones, of which each compares for
// itself (max-txn-ops of the servers is 128 by default; where it is lower, each
// renewal goes by itself).
//
// Writes are sent once. The client library by itself repeats what etcd
// certainly refused (a token that has expired, a learner), and gRPC what
// certainly never reached a server; neither hurts. But whatever its policy for
// writes says, it also repeats a transaction that was answered with the status
// "canceled" or "deadline exceeded" before our own deadline, by a server that
// shuts down or a proxy say, and that may have been applied. A client made by
// Open does not; nor does it repeat reads, reconnect watches or wait for a
// server that is down: the elector does all that, once, for every store. So a
// server that is down is an error at once, with its reason.
//
// # Expiry
//
// By the elector's rule alone. etcd's leases are not used: neither a keep-alive
// that was acknowledged nor a key that is there proves that a lease lives on. A
// leader that was stopped and goes on can delete keys of leases right after
// their keep-alives were acknowledged.
//
// Watch pushes every change, renewals included, with the record in the event:
// waiters and observers send no requests. It reads, then watches from the
// revision after that read, and asks the server to end it when that server has
// lost the cluster's leader. All watches of a handle share one stream.
//
// A connection gone dark while something is watched or asked is pinged after
// 10 s, the least that gRPC allows, and given up 3 s later; on Linux, 3 s after
// a request that was not even acknowledged. Servers must have their
// --grpc-keepalive-min-time at 10 s or less (5 s by default). Two tries to
// reconnect are at most two seconds apart; gRPC would let up to two minutes
// pass.
//
// # Permissions
//
// Read and write on the prefix, nothing else; read is enough to observe:
//
//	etcdctl role add elector
//	etcdctl role grant-permission elector --prefix=true readwrite /elector/
//	etcdctl user add app
//	etcdctl user grant-role app elector
//
// # Limits
//
// Each renewal makes a revision, about three for each TTL and election, and
// etcd keeps all revisions until it compacts. Auto-compaction must be on:
//
//	--auto-compaction-mode=periodic --auto-compaction-retention=5m
//
// Otherwise the database reaches its quota, and etcd then refuses all writes. A
// revision takes about 345 bytes with a short name and no value. 10,000
// elections that renew every 4.5 s, the default, make 8 million revisions in an
// hour, which are 2.76 GB; the default quota of 2 GiB is full after 47 minutes.
// So a retention of 1h is too long for them. With one of 5m etcd keeps the
// revisions of 5 to 10 minutes, at most 0.46 GB.
//
// The shortest TTL is 500 ms: below it a request would have to be answered in
// less than 75 ms, and etcd calls one slow only above 100 ms. When etcd loses
// its own leader it takes no writes for its election timeout, 1 s by default,
// or up to twice that: a TTL of 5 s or more outlives it.
//
// An operator reads the records with
//
//	etcdctl get --prefix /elector/
//
// An empty holder is a vacancy. Records of leaders that died keep their holder
// until somebody takes over. To depose a leader, stop it. Do not delete keys of
// elections in use: the next winner's token then rests on the clocks alone.
// Restoring a backup is a loss of acknowledged writes: stop the candidates
// first. Tested with etcd 3.7.3.
package etcd
