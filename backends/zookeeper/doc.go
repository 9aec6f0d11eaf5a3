// Package zookeeper keeps election records in ZooKeeper, one znode for each election,
// with the ephemeral node of its leader as a child. See docs/stores/zookeeper.md for
// permissions, costs, settings of the servers and limits.
//
// # URLs
//
//	zookeeper://user:password@host:2181,host2:2181/prefix
//	zookeepers://host:2281/prefix?ca=/etc/zookeeper/ca.pem&cert=/etc/zookeeper/app.pem&key=/etc/zookeeper/app.key
//
// zookeepers:// uses TLS. Name every server. An election's znode is the path, a slash
// and the election's name, as in /prefix/NAME; without a path it is /elector/NAME. The
// parameters are session_timeout, readonly, readable, and for zookeepers ca, cert, key
// and server_name. [New] takes your connection instead of a URL.
//
// # Consistency
//
// A change is one multi, which applies all its operations or none. It compares the
// znode's dataVersion, which starts at 0 again when a znode is deleted and created
// anew. So it also checks that the guard exists: a child with a random id as its name,
// created together with the znode, and replaced by each acquisition and each release.
// The znode's data are a line with that id, and the record as JSON.
//
// When one process holds many elections through one handle, a multi renews up to 100 of
// them. If one renewal is refused none is applied, and each is then made by itself.
//
// A read is a sync and then a get, one after the other, because the client library
// cannot be told to send two requests in order. So a read takes two round trips, and an
// uncontended acquisition three. A read through a follower sees every change that was
// acknowledged before. A read through ZooKeeper's leader can be out of date, because the
// leader waits for nothing when a client of its own syncs:
//
//   - It sends a commit to its followers before it applies it: for as long as its threads
//     then wait for a processor it does not show what a follower has acknowledged.
//   - Cut off from the majority it answers until it notices, for at most syncLimit ticks,
//     and so do followers that are cut off together with it.
//
// Elections stay safe: a change that is based on such a read is refused, because changes
// compare the record and need a majority. Only a write is answered after all that came
// before it. This package makes none to read: it would go to the disk of each server, for
// each process that looks.
//
// Writes are sent once. While there is no session, requests are refused at once: the
// client library would keep them and send them when it has a session again, long after
// they were given up.
//
// # Expiry
//
// By the elector's rule alone. A session is not evidence: its end reaches the client
// only when it reconnects, the client library keeps it alive whatever happens to the
// holder, and servers were measured to end sessions earlier than their last answer
// promises.
//
// The leader's node, /prefix/NAME/leader, is presence. The multi that acquires also
// creates it, with the acquisition's nonce; the multi that takes over replaces it,
// whatever session it belongs to. When it is gone, because the session expired or an
// operator deleted it, the leader's lease ends at once. But the election is vacant only
// when the record says so, or has stood unchanged for long enough.
//
// Watch reports every change, renewals included: each is one event and one read, shared
// by all Watches of an election on one handle. Watches end when the connection is lost.
//
// # Fencing
//
// A leader that keeps its data in the same ensemble writes them with [Multi], or with
// the checks of [Guard] in a multi of its own. Such a write succeeds only while the
// lease's acquisition is the latest, however late the write arrives: the multi checks
// that the acquisition's guard exists, see Consistency. Renewals leave the guard alone.
// The multi also checks that the leader's node exists, so a leader is refused from the
// moment at which it is deposed. This takes no round trip and no write.
//
// Once a leader has acquired the election, no guarded write of an earlier leader can
// succeed, so the new leader can rely on what it then reads. But a server may lag
// behind, and a sync is not enough, see Consistency: before the first read make a Multi
// on the same connection, which may be one without operations.
//
// The connection is yours: a [Backend] does not share its own. It must be to the same
// ensemble, or the checks find no znodes and every write is refused as stale. It must
// be allowed to read the znodes that are checked: if the election has a login, sign in
// as that user, with AddAuth.
package zookeeper
