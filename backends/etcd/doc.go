// Package etcd keeps election records in etcd, one durable key for each
// election.
//
// # URLs
//
//	etcd://user:password@host:2379,host2:2379/prefix
//	etcds://host:2379/prefix?ca=/etc/etcd/ca.pem&cert=/etc/etcd/app.pem&key=/etc/etcd/app.key
//
// etcds:// uses TLS; with etcd:// the password crosses the network in the clear.
// Name every member: those that answer share the requests. The default port is
// 2379; if any host has a port, the last one must. An IPv6 address in brackets
// can only stand alone; for several servers use names. The key of an election
// is the path, a slash and the election's name, as in /prefix/NAME; without a
// path it is /elector/NAME. The parameters are for etcds only:
//
//   - ca: a PEM file with the authorities to trust instead of the system's.
//   - cert, key: PEM files of a client certificate. They are read again for
//     each connection, so that you can rotate them.
//   - server_name: the name in the servers' certificates, if it is not the host.
//
// Open refuses any other parameter. User and password go together. A cluster
// with authentication switched off ignores both.
//
// [New] takes your own client instead of a URL.
//
// # Consistency
//
// Linearizable. A change is one transaction: put, if the key still has exactly the
// bytes that were read, or does not exist. The transaction compares bytes and not
// revisions, because a restored backup takes revisions back and then issues them
// a second time, while no two writes have the same bytes. A read is one
// linearizable range, never a serializable one.
//
// When one process holds many elections through one handle, their renewals are
// one transaction of up to 100 smaller ones, each with its own comparison. (The
// servers' max-txn-ops is 128 by default; if it is lower, each renewal goes by
// itself.)
//
// Each write is sent once. The client library repeats requests that etcd
// certainly refused (an expired token, a learner), and gRPC repeats requests that
// certainly never reached a server; both are harmless. But whatever its policy for
// writes, the library also repeats a transaction that was answered with the status
// "canceled" or "deadline exceeded" before our own deadline, for instance by a
// server that shuts down or by a proxy; such a transaction may have been applied. A
// client that Open makes does not do that. Nor does it repeat reads, reconnect
// watches or wait for a server that is down: the elector does all that, once, for
// every store. So a server that is down is an error at once, with its reason.
//
// # Expiry
//
// By the elector's rule alone. The package does not use etcd's leases for it: neither an
// acknowledged keep-alive nor an existing key proves that a lease lives on. A
// leader of the cluster that was stopped and continues can delete the keys of
// leases right after it acknowledged their keep-alives.
//
// Watch pushes every change, renewals included, with the record in the event:
// waiters and observers send no requests. It reads, then watches from the
// revision after that read, and asks the server to end the watch if the server
// loses the cluster's leader. All watches of a handle share one stream.
//
// While a watch or a request is under way, the client pings a silent connection
// after 10 s, the least that gRPC allows, and gives it up 3 s later; on Linux it
// gives up 3 s after a request that was not even acknowledged. The servers'
// --grpc-keepalive-min-time must be 10 s or less (5 s by default). Two tries to
// reconnect are at most two seconds apart; gRPC's own default is up to two
// minutes.
//
// # Fencing
//
// A leader that keeps its data in the same cluster writes them with [Commit], or
// with the comparisons of [Guard] in a transaction of its own. Such a write
// succeeds only while the lease's acquisition is the latest, however late the
// write arrives: the transaction compares the first part of the record, up to the
// sequence number of the attempt. Renewals leave that part as it is; acquisitions
// and releases change it. This takes no round trip and no write.
//
// Once a leader has acquired the election, no guarded write of an earlier leader
// can succeed, so the new leader can rely on what it then reads.
//
// The client may be another one than the elector's. It must be of the same cluster,
// and if one of the two has a namespace (package namespace of the client library),
// so must the other: where the key does not exist every write is refused as stale.
// The client's user needs the permission to read the key, or the cluster denies
// access:
//
//	etcdctl role grant-permission ROLE read /elector/NAME
//
// # Permissions
//
// Read and write on the prefix, or on the keys of the records alone; read is enough to
// observe:
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
// The shortest TTL is 500 ms: with a shorter one the server would have to answer
// within less than 75 ms, and etcd calls a request slow only above 100 ms. When
// etcd loses its own leader it takes no writes for its election timeout, 1 s by
// default, or up to twice that: a TTL of 5 s or more outlasts it.
//
// An operator reads the records with
//
//	etcdctl get --prefix /elector/
//
// An empty holder is a vacancy. The record of a dead leader keeps its holder until
// another candidate takes over. To depose a leader, stop it. Do not delete keys of
// elections in use: the next winner's token then depends on the clocks alone.
// Restoring a backup loses acknowledged writes: stop the candidates first. Tested
// with etcd 3.7.3.
package etcd
