// Package consul keeps election records in the key/value store of HashiCorp Consul, one
// key for each election. It uses Consul's HTTP API and needs no client library. See
// docs/stores/consul.md for the parameters, permissions, costs, settings of the servers
// and limits.
//
// # URLs
//
//	consul://127.0.0.1:8500/prefix?token_file=/etc/app/consul.token
//	consuls://host:8501,host2:8501/prefix?ca=/etc/consul/ca.pem&cert=/etc/consul/app.pem&key=/etc/consul/app.key
//
// consuls:// uses TLS. The key of an election is the path, a slash and the election's
// name, as in prefix/NAME; without a path it is elector/NAME. The parameters are
// token_file, dc, readonly, and with consuls ca, cert, key and server_name. [New] takes
// your own HTTP client and the address of an agent instead of a URL.
//
// # Consistency
//
// Linearizable. A change is one transaction with one comparison: the key's ModifyIndex
// is still the one that was read, or the key does not exist. That index is the record's
// version. It is one of Consul's Raft log, and grows also when the key is deleted and
// created anew. Consul leaves it as it is if a write does not change the value; each
// write of this package changes it.
//
// A read is one GET with ?consistent: the leader first asks a majority whether it still
// leads. The default mode would let a leader that was deposed, and does not know it,
// return an old record; the mode stale any server.
//
// When one process holds many elections through one handle, up to 64 renewals are one
// transaction. Consul makes all of them or none; if one is refused, each goes by
// itself.
//
// Each write is sent once: net/http repeats no PUT of which a server may have seen a
// part.
//
// # Expiry
//
// By the elector's rule alone. The package does not use Consul's sessions, locks and
// their TTLs.
//
// Watch pushes every change, renewals included, by blocking queries: each waits for the
// next change of the record and returns it. While nothing changes it is one request in
// 10 s, and the agent is taken for dead after 15 s without an answer. The queries are
// consistent reads too.
//
// # Fencing
//
// A leader that keeps its data in the same datacenter writes them with [Commit], or
// with the operation of [Guard] in a transaction of its own. Such a write succeeds only
// while the lease's acquisition is the latest, however late the write arrives: beside
// the record there is a key that is named by the acquisition, as in
// prefix/NAME/guard-ID, and the transaction checks that it exists. Each acquisition
// creates such a key in its own transaction, and each acquisition and release deletes
// the older ones. Renewals leave it as it is. This takes no round trip and no further
// write.
//
// Once a leader has acquired the election, no guarded write of an earlier leader can
// succeed, so the new leader can rely on what it then reads with ?consistent.
//
// Do not delete the guard keys: without its key a leader's guarded writes are refused
// as stale until the next acquisition.
package consul
