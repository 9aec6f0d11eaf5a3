// Package zookeeper keeps election records in ZooKeeper, one znode for each
// election, with the ephemeral node of its leader as a child.
//
// # URLs
//
//	zookeeper://user:password@host:2181,host2:2181/prefix
//	zookeepers://host:2281/prefix?ca=/etc/zookeeper/ca.pem&cert=/etc/zookeeper/app.pem&key=/etc/zookeeper/app.key
//
// zookeepers:// uses TLS. Name every server; the client uses one at a time, in
// random order. It looks up their names for each connection. The port is 2181 by
// default; if you give one, give it for the last host. An IPv6 address in
// brackets can only stand alone; several of them need names. Over zookeeper://
// the password goes through the network in the clear. An election's znode is the
// path, a slash and the election's name, as in /prefix/NAME; without a path it is
// /elector/NAME. Missing znodes of the path are created, and created again when
// they vanish. Parameters:
//
//   - session_timeout: how long the servers keep the session of a client that is
//     cut off, and with it the leader's node; 30s by default. The servers bound
//     it, by default between 2 and 20 of their ticks (4s and 40s). Keep it above
//     the TTL, or a short disconnection deposes a leader whose lease still runs.
//   - ca: for zookeepers, a PEM file with the authorities to trust instead of
//     the system's.
//   - cert, key: for zookeepers, PEM files of a client certificate. They are
//     read again for each connection, so they can be rotated.
//   - server_name: for zookeepers, the name in the servers' certificates, if it
//     is not the host.
//
// Any other parameter is refused. User and password go together; they are
// ZooKeeper's scheme "digest", see Permissions.
//
// [New] takes your connection instead of a URL.
//
// # Consistency
//
// A change is one multi, which applies all its operations or none. It compares
// the znode's dataVersion, which starts at 0 again when a znode is deleted and
// created anew. So it also checks that the guard exists: a child with a random id
// as its name, created together with the znode, and replaced by each acquisition
// and each release. The znode's data are a line with that id, and the record as
// JSON.
//
// When one process holds many elections through one handle, a multi renews up to
// 100 of them. If one renewal is refused none is applied, and each is then made
// by itself.
//
// A read is a sync and then a get, one after the other, because the client
// library cannot be told to send two requests in order. So a read takes two round
// trips, and an uncontended acquisition three. A read sees every change that was
// acknowledged before, through any server, including a follower that lags behind.
// ZooKeeper itself makes one exception: its leader, cut off from its followers,
// answers a sync until it notices, for at most syncLimit ticks. Such a read can
// be out of date; a change based on it is then refused, because changes need a
// majority.
//
// Writes are sent once. While there is no session, requests are refused at once:
// the client library would keep them and send them when it has a session again,
// long after they were given up. At the moment when a connection breaks, the
// library can still keep one. It is then sent over the next connection, or
// dropped when each server was tried in vain, which takes at most a third of the
// session timeout for each. A write that comes so late is compared like any
// other.
//
// # Expiry
//
// By the elector's rule alone. A session is not evidence: its end reaches the
// client only when it reconnects, the client library keeps it alive whatever
// happens to the holder, and servers were measured to end sessions earlier than
// their last answer promises.
//
// The leader's node, /prefix/NAME/leader, is presence. The multi that acquires
// also creates it, with the acquisition's nonce; the multi that takes over
// replaces it, whatever session it belongs to. When it is gone, because the
// session expired or an operator deleted it, the leader's lease ends at once.
// But the election is vacant only when the record says so, or has stood
// unchanged for long enough.
//
// Watch reports every change, renewals included: each is one event and one read,
// shared by all Watches of an election on one handle. Watches end when the
// connection is lost. The client library cannot take back a watch. So for each
// election that was watched, the last watch stays with the connection until the
// record changes, and the next Watch uses it again.
//
// A connection is given up, and another server tried, when a request or a ping
// has no answer for a sixth of the session timeout, and a second at least; pings
// are sent after a third of the timeout. So a leader outlives a server that goes
// dark if that sixth, 5 s by default, plus a renewal interval is shorter than its
// lease: with a TTL below 10 s choose a session_timeout of about twice the TTL.
//
// # Fencing
//
// A leader that keeps its data in the same ensemble writes them with [Multi], or
// with the checks of [Guard] in a multi of its own. Such a write succeeds only
// while the lease's acquisition is the latest, however late the write arrives: the
// multi checks that the acquisition's guard exists, see Consistency. Renewals leave
// the guard alone. The multi also checks that the leader's node exists, so a
// leader is refused from the moment at which it is deposed. This takes no round
// trip and no write.
//
// Once a leader has acquired the election, no guarded write of an earlier leader
// can succeed, so the new leader can rely on what it then reads. But a server may
// lag behind: sync before the first read.
//
// The connection is yours: a [Backend] does not share its own. It must be to the
// same ensemble, or the checks find no znodes and every write is refused as stale.
// It must be allowed to read the znodes that are checked: if the election has a
// login, sign in as that user, with AddAuth.
//
// # Permissions
//
// Without user and password znodes are created with the access control list
// world:anyone:cdrwa. With them it is digest:USER:HASH:cdrwa, and all candidates
// and observers of an election must be the same user. Access control lists are
// not inherited. Client certificates give no access of their own here: without
// user and password, the znodes are open to anyone.
//
// The least that works is create and read on the prefix, if an administrator has
// created it. ZooKeeper has no list of users; the first use of one makes it:
//
//	addauth digest app:PASSWORD
//	create /elector ""
//	setAcl /elector auth::cr
//
// Reading the prefix and the records is enough to observe. ZooKeeper itself
// refuses no password: a wrong one shows when a znode is not accessible.
//
// # Limits
//
// Each renewal is a transaction in ZooKeeper's log. Servers purge their logs only
// if autopurge.purgeInterval is set. A watched election costs the server a watch
// for each handle.
//
// The shortest TTL is 500 ms: below it a request would have to be answered in
// less than 75 ms, and ZooKeeper's servers sync their disk for each write. When
// the servers elect their own leader they take no writes for a second or more: a
// TTL of 5 s or more outlives it. One address may open 60 connections to a server
// by default (maxClientCnxns); a handle is one.
//
// An operator reads the records with zkCli.sh:
//
//	get /elector/NAME
//	get -s /elector/NAME/leader
//
// An empty holder is a vacancy. The record of a leader that died keeps its holder
// until another candidate takes over. To depose a leader, delete its node:
//
//	delete /elector/NAME/leader
//
// Its lease ends at once, and it stands back for one TTL. If it runs in Run, its
// successor is elected as soon as its worker has returned; at the latest when the
// record expires, as after a crash.
//
// Do not delete records of elections in use: the next winner's token then rests
// on the clocks alone. Remove a record that is no longer used with deleteall,
// together with its guard; a record whose guard alone was deleted is refused
// until it is removed too. A record that is made by hand needs a guard with an id
// that was never used, and one that is edited must keep its first line.
//
// Restoring a backup is a loss of acknowledged writes: stop the candidates
// first. Tested with ZooKeeper 3.8.0.
package zookeeper
