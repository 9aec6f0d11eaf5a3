// Package consul keeps election records in the key/value store of HashiCorp
// Consul, one key for each election. It uses Consul's HTTP API and needs no client
// library.
//
// # URLs
//
//	consul://127.0.0.1:8500/prefix?token_file=/etc/app/consul.token
//	consuls://host:8501,host2:8501/prefix?ca=/etc/consul/ca.pem&cert=/etc/consul/app.pem&key=/etc/consul/app.key
//
// consuls:// uses TLS; with consul:// the token crosses the network in the clear.
// Name the agent of the machine, or the servers: requests go to one of them until
// it does not answer or sees no leader, and then to the next. The default port is
// 8500; if any host has a port, the last one must. An IPv6 address in brackets can
// only stand alone. The key of an election is the path, a slash and the election's
// name, as in prefix/NAME; without a path it is elector/NAME. The path may have
// ASCII letters, digits, ',', '-', '_', '.' and '/', but no '..'. There are these
// parameters:
//
//   - token_file: a file with the ACL token. It is read again for each request, so
//     that you can rotate it. Without the parameter the environment names the
//     file, CONSUL_HTTP_TOKEN_FILE, or has the token, CONSUL_HTTP_TOKEN. Without
//     any of them the agent uses its default token. A token in the URL is refused.
//   - dc: the datacenter that keeps the records, by default the agent's own.
//     Datacenters share no keys: processes in several of them must name the same
//     one, or each datacenter has a leader.
//   - ca, with consuls: a PEM file with the authorities to trust instead of the
//     system's.
//   - cert, key, with consuls: PEM files of a client certificate. They are read
//     again for each connection, so that you can rotate them.
//   - server_name, with consuls: the name in the server's certificate, if it is
//     not the host.
//
// Open refuses any other parameter. [New] takes your own HTTP client and the
// address of an agent instead of a URL.
//
// # Consistency
//
// Linearizable. A change is one transaction with one comparison: the key's
// ModifyIndex is still the one that was read, or the key does not exist. That
// index is the record's version. It is one of Consul's Raft log, and grows also
// when the key is deleted and created anew. Consul leaves it as it is if a write
// does not change the value; each write of this package changes it.
//
// A read is one GET with ?consistent: the leader first asks a majority whether it
// still leads. The default mode would let a leader that was deposed, and does not
// know it, return an old record; the mode stale any server.
//
// When one process holds many elections through one handle, up to 64 renewals are
// one transaction. Consul makes all of them or none; if one is refused, each goes
// by itself.
//
// Each write is sent once: net/http repeats no PUT of which a server may have seen
// a part. A client agent repeats a write that a server refused because there was
// no leader, which is harmless.
//
// # Expiry
//
// By the elector's rule alone. The package does not use Consul's sessions, locks
// and their TTLs.
//
// Watch pushes every change, renewals included, by blocking queries: each waits
// for the next change of the record and returns it. While nothing changes it is
// one request in 10 s, and the agent is taken for dead after 15 s without an
// answer. The queries are consistent reads too.
//
// Requests use HTTP/1.1, so that a connection that hangs holds up no other. Each
// watch has a connection of its own. A handle watches at most 100 elections at the
// same time and makes at most 64 other requests to a server; what cannot be
// watched is read about as often as the leader renews. After a call that got no
// answer, the package closes the idle connections, because in a network gone dark
// they are dead too.
//
// # Fencing
//
// A leader that keeps its data in the same datacenter writes them with [Commit],
// or with the operation of [Guard] in a transaction of its own. Such a write
// succeeds only while the lease's acquisition is the latest, however late the
// write arrives: beside the record there is a key that is named by the
// acquisition, as in prefix/NAME/guard-ID, and the transaction checks that it
// exists. Each acquisition creates such a key in its own transaction, and each
// acquisition and release deletes the older ones. Renewals leave it as it is. This
// takes no round trip and no further write.
//
// Once a leader has acquired the election, no guarded write of an earlier leader
// can succeed, so the new leader can rely on what it then reads with ?consistent.
//
// Do not delete the guard keys: without its key a leader's guarded writes are
// refused as stale until the next acquisition.
//
// # Permissions
//
// Write on the prefix, and nothing else. Read is enough to observe:
//
//	key_prefix "elector/" { policy = "write" }
//
// No permission for sessions is needed. Commit uses the election's token, which
// must then allow its operations too. A transaction with another token needs no
// permission for the guard key.
//
// # Limits
//
// Each renewal is a write of Consul's Raft log, about three for each TTL and
// election, which is synced on a majority of the servers. Old states are not kept.
// A record has some hundred bytes; Consul's limits on the size of values are far
// away. Rate limits of the servers (limits.request_limits) answer 429 or 503, and
// the elector tries again.
//
// An agent takes 200 connections from one address by default, and answers more
// with 429. An election that is opened by its URL has a handle of its own, with
// two connections. For more than 100 of them on a machine share a handle, by
// elector.New, or raise limits.http_max_conns_per_client of the agent.
//
// The shortest TTL is 500 ms. When Consul loses its own leader it takes no writes
// for some seconds: with raft_multiplier 1, which HashiCorp recommends for
// production, up to about 4 s, and a TTL of 7 s or more outlasts it. With the
// default of 5 it takes several times as long: use a TTL of 35 s, or set it to 1.
//
// Consul 1.21.5 and later may refuse keys with '..'; do not use it in names.
//
// Restoring a snapshot loses acknowledged writes, and in a new cluster it takes
// the index back and issues it a second time: stop the candidates first.
//
// An operator reads the records with
//
//	consul kv get -recurse elector/
//
// An empty holder is a vacancy. The record of a dead leader keeps its holder until
// another candidate takes over. To depose a leader, stop it. Do not delete keys of
// elections in use: the next winner's token then depends on the clocks alone. A
// lock that a session takes on such a key changes nothing, but a session with the
// behavior "delete" deletes the record.
//
// Consul 1.17 and later have the Business Source License. This package has nothing
// of Consul's code and works with any version from 0.7. Tested with Consul 1.20.1.
package consul
