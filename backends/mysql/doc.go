// Package mysql keeps election records in a table of MySQL or MariaDB, one row for each
// election. It is a module of its own. See docs/stores/mysql.md for permissions,
// replication, settings of the server and limits.
//
// # URLs
//
//	mysql://user:password@host,host2:3306/database?create=true
//	mysqls://user:password@host/database?ca=/etc/mysql/ca.pem
//
// mysqls:// uses TLS and checks the server's certificate; mysql:// uses TLS if the
// server offers it, and checks nothing. The parameters are table, create, one_node,
// allow_async, readonly, password_file, and with mysqls ca, cert, key and server_name.
//
// [New] takes a configuration of the driver instead of a URL.
//
// # Consistency
//
// Linearizable, on a server that does not lose commits. A change is one statement that
// compares the whole row, extensions included, under the row's lock. A read is one
// statement outside of a transaction, which shows what is committed. The same statement
// detects a server that takes no writes, such as a replica that a proxy has sent it to,
// and is then refused.
//
// A read takes no lock. With FOR UPDATE it would need the right to update, would wait
// for an acquisition that waits for a guard, and the readers would hold up renewals;
// and it would find a replica that takes writes no better.
//
// Each connection sets autocommit, the isolation level, the sql_mode and the character
// set, whatever the server's defaults, its init_connect or the configuration say. No
// statement waits longer than one second for a row that another transaction has locked:
// the server refuses it, and it was not applied. Several statements are never sent as
// one, and no statement is sent twice: database/sql repeats one only if nothing of it
// was sent.
//
// If semi-synchronous replication is on, each request asks for its state too, and fails
// while that has fallen back to asynchronous.
//
// # Expiry
//
// By the elector's rule alone. The server's clock, sessions and GET_LOCK play no part.
// There is no Watch: waiters read.
//
// # Fencing
//
// If your data is on the same server as the election, [Transact] commits a transaction
// only while the lease is the latest. The server refuses the late write of a leader
// that was paused.
//
// [Guard] is the statement alone, for other ways to run a transaction. It takes a
// shared lock on the entry of the lease's acquisition in the index term:
//
//	statement                         lock                    waits for a guard
//	guard                             index entry, shared     no
//	renewal                           row                     no
//	acquisition, release, deletion    row and index entry     yes
//	ordinary read                     none                    no
//
// A guard in turn waits for an acquisition that is being committed, and then refuses.
// An acquisition that waits is refused after one second, and has certainly not been
// applied; the elector tries again. InnoDB makes guards wait for an acquisition that
// came before them, so they cannot keep it out for ever.
//
// The guard works at each isolation level. A plain SELECT in its place does not, except
// at SERIALIZABLE. On MariaDB, except at READ COMMITTED, a guard that meets an
// acquisition can be the victim of a deadlock (1213): nothing was committed, so check
// the lease and try again. The same can happen when an election is created whose name
// stands next to this one's.
//
// TiDB, Vitess and Galera are refused at each connection; a guard on one of your
// connections that leads to one fails. See docs/stores/mysql.md.
//
// Neither a guard outside of a transaction, in autocommit, nor one on a replica
// protects anything. A statement of DDL ends the transaction.
package mysql
