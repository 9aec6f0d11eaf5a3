// Package zookeeper keeps election records in ZooKeeper, one znode for each
// election, and beside each the ephemeral node of its leader.
//
// # URLs
//
//	zookeeper://user:password@host:2181,host2:2181/prefix
//	zookeepers://host:2281/prefix?ca=/etc/zookeeper/ca.pem&cert=/etc/zookeeper/app.pem&key=/etc/zookeeper/app.key
//
// zookeepers:// speaks TLS. Name every server; one is used at a time, in an
// order drawn by lot. Their names are looked up for each connection. The port
// is 2181 by default; give it for the last host, if for any. An IPv6 address in
// brackets can only stand alone; several need names. Over zookeeper:// the
// password goes through the network in the clear. An election's znode is the
// path, a slash and the election's name, as in /prefix/NAME; without a path it
// is /elector/NAME. What is missing of the path is created, and created again
// when it vanishes. Parameters:
//
//   - session_timeout: for how long the servers keep the session, and with it
//     the leader's node, of a client that is cut off; 30s by default. Servers
//     bound it, by default between 2 and 20 of their ticks (4s and 40s). Keep
//     it above the TTL, or a short disconnection deposes a leader whose lease
//     still runs.
//   - ca: for zookeepers, a PEM file with the authorities to trust instead of
//     the system's.
//   - cert, key: for zookeepers, PEM files of a client certificate, read again
//     for each connection, so that they can be rotated.
//   - server_name: for zookeepers, the name in the servers' certificates, if it
//     is not the host.
//
// Any other parameter is refused. User and password go together; they are
// ZooKeeper's scheme "digest", see Permissions.
//
// [New] takes a connection of yours instead of a URL.
//
// # Consistency
//
// A change is one multi, of which all is applied or nothing. It compares the
// znode's dataVersion, which starts at 0 again when a znode is deleted and made
// anew; so it also checks that a child named by a random id is there, the
// guard, which was made together with the znode. The znode's data are a line
// with that id, and the record as JSON.
//
// Renewals of many elections, when one process holds them through one handle,
// are one multi for up to 100 of them. If one of them is refused nothing is
// applied, and each then goes by itself.
//
// A read is a sync and then a get, one after the other, because the client
// library cannot be told to send two requests in an order: a read takes two
// round trips, and an uncontended acquisition three. It sees every change that
// was acknowledged before, through any server, a follower that lags behind
// too. One exception is ZooKeeper's own: a leader of ZooKeeper's that was cut
// off from its followers answers a sync until it notices, for syncLimit ticks
// at most. Such a read can be out of date; the change that is based on it is
// then refused, because changes need a majority.
//
// Writes are sent once. While there is no session, requests are refused at once
// instead of being kept: the client library would send them when it has a
// session again, long after they were given up. In the instant in which a
// connection breaks, one can be kept nevertheless. It is sent with the next
// connection, or dropped when each server has been tried in vain, which takes a
// third of the session timeout for each at most. A write that comes so late is
// compared like any other.
//
// # Expiry
//
// By the elector's rule alone. A session is not evidence: its end reaches the
// client only when it reconnects, the client library keeps it alive whatever
// becomes of the holder, and servers were measured to end sessions earlier than
// their last answer promises.
//
// The leader's node, /prefix/NAME/leader, is presence. It is made by the very
// multi that acquires, holds the acquisition's nonce, and is replaced by the one
// that takes over, whoever's session it belongs to. When it is gone, because
// the session expired or an operator deleted it, the leader's lease ends at
// once; but the election is vacant only when the record says so, or has stood
// unchanged for long enough.
//
// Watch pushes every change, renewals included: each is one event and one read,
// for all Watches of an election on one handle together. Watches end when the
// connection is lost. As the client library cannot take back a watch, the last
// one of each election that was watched stays with the connection until the
// record changes, and is used again by the next Watch.
//
// A connection on which a request or a ping has no answer for a sixth of the
// session timeout, and a second at least, is given up and another server
// tried; pings are sent after a third of it. So a leader outlives a server that
// goes dark if that sixth, 5 s by default, and a renewal interval are less than
// what its lease lasts: with a TTL below 10 s choose a session_timeout of about
// twice the TTL.
//
// # Permissions
//
// Without user and password znodes are created with the access control list
// world:anyone:cdrwa. With them it is digest:USER:HASH:cdrwa, and all
// candidates and observers of an election must be the same user. Access control
// lists are not inherited. Client certificates give no access of their own
// here: without user and password, znodes are anyone's.
//
// The smallest that works is create and read on the prefix, if an administrator
// has made it; ZooKeeper has no list of users, so the first use of one makes it:
//
//	addauth digest app:PASSWORD
//	create /elector ""
//	setAcl /elector auth::cr
//
// Reading the prefix and the records is enough to observe. ZooKeeper refuses no
// password by itself: one that is wrong shows when a znode is not accessible.
//
// # Limits
//
// Each renewal is a transaction in ZooKeeper's log; servers purge their logs
// only if told so (autopurge.purgeInterval). A watched election costs the
// server a watch for each handle.
//
// The shortest TTL is 500 ms: below it a request would have to be answered in
// less than 75 ms, and ZooKeeper's servers sync their disk for each write. When
// they elect a leader of their own they take no writes for a second or more: a
// TTL of 5 s or more outlives it. One address may open 60 connections to a
// server by default (maxClientCnxns); a handle is one.
//
// An operator reads the records with zkCli.sh:
//
//	get /elector/NAME
//	get -s /elector/NAME/leader
//
// An empty holder is a vacancy. Records of leaders that died keep their holder
// until somebody takes over. To depose a leader, delete its node:
//
//	delete /elector/NAME/leader
//
// Its lease ends at once, and it stands back for one TTL. The next one is elected
// as soon as the deposed leader's worker has returned, if it runs in Run; at the
// latest when the record expires, as after a crash.
//
// Do not delete records of elections in use: the next winner's token then rests
// on the clocks alone. A record that is no longer used is removed with
// deleteall, together with its guard; one whose guard alone was deleted is
// refused until it is removed too. A record that is made by hand needs a guard
// with an id that was never used.
//
// Restoring a backup is a loss of acknowledged writes: stop the candidates
// first. Tested with ZooKeeper 3.8.0.
package zookeeper
