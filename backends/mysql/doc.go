// Package mysql keeps election records in a table of MySQL or MariaDB, one row for
// each election. It is a module of its own.
//
// # URLs
//
//	mysql://user:password@host,host2:3306/database?create=true
//	mysqls://user:password@host/database?ca=/etc/mysql/ca.pem
//
// mysqls:// uses TLS and checks the server's certificate; mysql:// uses TLS if the
// server offers it, and checks nothing. Several hosts are tried in order, and the first
// that takes writes is used. The default port is 3306; if any host has a port, the last
// one must. An IPv6 address in brackets can only stand alone. Special characters in user
// and password are percent-encoded. There are these parameters:
//
//   - table: the table, or database.table; "elector" by default. Letters, digits and
//     underscores.
//   - create: whether to create a missing table; false by default.
//   - one_node: whether to use a node of a Galera cluster, or of a group with several
//     primaries; false by default. See Limits.
//   - allow_async: whether to go on while semi-synchronous replication has fallen back
//     to asynchronous; false by default. See Consistency.
//   - ca, with mysqls: a PEM file with the authorities to trust instead of the system's.
//   - cert, key, with mysqls: PEM files of a client certificate. They are read again for
//     each connection, so that you can rotate them.
//   - server_name, with mysqls: the name in the server's certificate, if it is not the
//     host.
//
// Open refuses any other parameter, such as autocommit. [New] takes a configuration of
// the driver instead of a URL.
//
// # Consistency
//
// Linearizable, on a server that does not lose commits. A change is one statement that
// compares the whole row, extensions included, under the row's lock. A read is one
// statement outside of a transaction, which shows what is committed. The same statement
// detects a server that takes no writes, such as a replica that a proxy has sent it to,
// and is then refused.
//
// A read takes no lock. With FOR UPDATE it would need the right to update, would wait for
// an acquisition that waits for a guard, and the readers would hold up renewals; and it
// would find a replica that takes writes no better.
//
// Each connection sets autocommit, the isolation level, the sql_mode and the character
// set, whatever the server's defaults, its init_connect or the configuration say. No
// statement waits longer than one second for a row that another transaction has locked:
// the server refuses it, and it was not applied. Several statements are never sent as
// one, and no statement is sent twice: database/sql repeats one only if nothing of it was
// sent.
//
// If semi-synchronous replication is on, the server waits for a replica before it
// acknowledges a commit, but only for a time, and then goes on without and reports
// nothing. So after each read and write on such a server this package asks for the
// state of the replication, which is a second round trip. If that has fallen back, the
// outcome of the write is unknown, and a read returns ErrUnavailable: no process is
// elected, and no lease is renewed, until a replica has everything. Set
// rpl_semi_sync_source_wait_point to AFTER_SYNC (rpl_semi_sync_master_wait_point on
// MariaDB, where it is not the default), so that no process reads a write that no replica
// has. A warning is logged if it is not, and if innodb_flush_log_at_trx_commit is not 1.
//
// # Expiry
//
// By the elector's rule alone. The server's clock, sessions and GET_LOCK play no part.
// There is no Watch: waiters read.
//
// # Permissions
//
//	grant select, insert, update on app.elector to 'app'@'%';
//
// Do not use an account that can write on a server that is read_only (SUPER, READ_ONLY
// ADMIN, CONNECTION_ADMIN): on the old primary of a failover it would go on to renew its
// lease. To create the table the account also needs CREATE. Without it an administrator
// can run:
//
//	create table app.elector (
//		name varbinary(255) not null,
//		`schema` int not null,
//		holder varbinary(4096) not null,
//		token bigint not null,
//		ttl bigint not null,
//		renew_every bigint not null,
//		attempt varbinary(128) not null,
//		value varbinary(4096) not null,
//		ext varbinary(16384) not null,
//		term varbinary(128) not null,
//		primary key (name),
//		unique key term (name, term)) engine = InnoDB;
//
// All texts are bytes, because a character set would take Job and job for one election.
// Any other engine is refused.
//
// # Fencing
//
// If your data is on the same server as the election, [Transact] commits a transaction
// only while the lease is the latest. The server refuses the late write of a leader that
// was paused.
//
//	err := mysql.Transact(ctx, db, lease, func(tx *sql.Tx) error {
//		_, err := tx.ExecContext(ctx, "update account set cents = cents + 500 where id = 7")
//		return err
//	})
//
// [Guard] is the statement alone, for other ways to run a transaction. It takes a shared
// lock on the entry of the lease's acquisition in the index term:
//
//	statement                         lock                    waits for a guard
//	guard                             index entry, shared     no
//	renewal                           row                     no
//	acquisition, release, deletion    row and index entry     yes
//	ordinary read                     none                    no
//
// A guard in turn waits for an acquisition that is being committed, and then refuses. An
// acquisition that waits is refused after one second, and has certainly not been applied;
// the elector tries again. InnoDB makes guards wait for an acquisition that came before
// them, so they cannot keep it out for ever.
//
// The guard works at each isolation level. A plain SELECT in its place does not, except
// at SERIALIZABLE. On MariaDB, except at READ COMMITTED, a guard that meets an acquisition
// can be the victim of a deadlock (1213): nothing was committed, so check the lease and
// try again. The same can happen when an election is created whose name stands next to
// this one's.
//
// Hazards:
//
//   - A leader that stops between its guard and its commit holds up its successor until
//     the server closes the connection. Transact sets wait_timeout so that this happens
//     when the lease ends. Around [Guard] do the same, or set idle_transaction_timeout on
//     MariaDB.
//   - A guard outside of a transaction, in autocommit, protects nothing. A statement of
//     DDL ends the transaction.
//   - A replica cannot show that a lease is the latest.
//
// # Limits
//
// Asynchronous replication loses acknowledged commits in a failover: two leaders can
// then be valid for up to a TTL, and only the fencing token distinguishes them. Use
// semi-synchronous replication, or promote no replica while the old primary may still be
// reachable. The same is true of a restored backup, and of two primaries that replicate
// each other, which a process cannot detect.
//
// A Galera cluster (wsrep_on), and a replication group with several primaries, are
// refused: Galera was shown to lose updates, and to read old states, when several nodes
// are used. With one_node=true they are accepted. Then all processes, guarded writers
// included, must use one and the same node, which no load balancer may change.
//
// Do not use a proxy that sends reads to replicas. If the replicas are read_only, reads
// then fail with ErrReadOnly; if they are not, reads are stale.
//
// When a table is renamed or dropped while elections run, processes get an error. With
// create=true a process that starts then creates an empty table, warns of that in the
// log, and leads at once, while the old leader leads until its next renewal.
//
// A handle has at most 4 connections. A renewal is one statement; each election is
// renewed by itself.
//
// Tested with MariaDB 10.11. What this package relies on is documented for MySQL 5.7 and
// later too, but not tested there: the guard needs InnoDB to lock no more than the index
// entry for a shared read that the index covers. MySQL locks no gap then, so the deadlock
// above is MariaDB's. Servers that only have the protocol of MySQL, such as TiDB and
// Vitess, are not supported.
//
// An operator reads the table with
//
//	select convert(name using utf8mb4), convert(holder using utf8mb4), token, ttl / 1e9 as ttl_seconds from elector;
//
// ttl and renew_every are in nanoseconds; an empty holder is a vacancy. The row of a dead
// leader keeps its holder until another candidate takes over: one look does not show
// whether a leader lives, but its attempt changes with each renewal. To depose a leader,
// stop it. Do not delete rows of elections in use: the next winner's token then depends
// on the clocks alone.
package mysql
