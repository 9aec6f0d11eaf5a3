// Package etcd keeps election records in etcd, one durable key for each election. See
// docs/stores/etcd.md for permissions, costs, settings of the cluster and limits.
//
// # URLs
//
//	etcd://user:password@host:2379,host2:2379/prefix
//	etcds://host:2379/prefix?ca=/etc/etcd/ca.pem&cert=/etc/etcd/app.pem&key=/etc/etcd/app.key
//
// etcds:// uses TLS. The default port is 2379. The key of an election is the path, a
// slash and the election's name, as in /prefix/NAME; without a path it is
// /elector/NAME. The parameters are readonly, and with etcds ca, cert, key and server_name.
//
// [New] takes your own client instead of a URL.
//
// # Consistency
//
// Linearizable. A change is one transaction: put, if the key still has exactly the
// bytes that were read, or does not exist. The transaction compares bytes and not
// revisions, because a restored backup takes revisions back and then issues them a
// second time, while no two writes have the same bytes. A read is one linearizable
// range, never a serializable one. Opening a URL probes both comparisons in a
// transaction that changes nothing: what does not compare as etcd does is refused.
//
// When one process holds many elections through one handle, their renewals are one
// transaction of up to 100 smaller ones, each with its own comparison. Up to 100 reads
// are one transaction of nothing but linearizable ranges.
//
// Each write is sent once. The client library repeats requests that etcd certainly
// refused (an expired token, a learner), and gRPC repeats requests that certainly never
// reached a server; both are harmless. But whatever its policy for writes, the library
// also repeats a transaction that was answered with the status "canceled" or "deadline
// exceeded" before our own deadline, for instance by a server that shuts down or by a
// proxy; such a transaction may have been applied. A client that Open makes does not do
// that. Nor does it repeat reads, reconnect watches or wait for a server that is down:
// the elector does all that, once, for every store. So a server that is down is an
// error at once, with its reason.
//
// # Expiry
//
// By the elector's rule alone. The package does not use etcd's leases for it.
//
// Watch pushes every change, renewals included, with the record in the event: waiters
// and observers send no requests. It reads, then watches from the revision after that
// read, and asks the server to end the watch if the server loses the cluster's leader.
// All watches of a handle share one stream.
//
// While a watch or a request is under way, the client pings a silent connection after
// 10 s, the least that gRPC allows, and gives it up 3 s later; on Linux it gives up 3 s
// after a request that was not even acknowledged.
//
// # Fencing
//
// A leader that keeps its data in the same cluster writes them with [Commit], or with
// the comparisons of [Guard] in a transaction of its own. Such a write succeeds only
// while the lease's acquisition is the latest, however late the write arrives: the
// transaction compares the first part of the record, up to the sequence number of the
// attempt. Renewals leave that part as it is; acquisitions and releases change it. This
// takes no round trip and no write.
//
// Once a leader has acquired the election, no guarded write of an earlier leader can
// succeed, so the new leader can rely on what it then reads.
//
// The client may be another one than the elector's. It must be of the same cluster, and
// if one of the two has a namespace (package namespace of the client library), so must
// the other: where the key does not exist every write is refused as stale.
package etcd
