// Package postgres keeps election records in a PostgreSQL table, one row for each
// election. See docs/stores/postgres.md for the parameters, permissions, replication,
// settings of the server, limits, the hazards of a guard, and for what only looks like
// PostgreSQL: CockroachDB and YugabyteDB are used without guards, LISTEN and shared
// renewals; neither they nor Aurora and AlloyDB are tested.
//
// # URLs
//
//	postgres://user:password@host:5432,host2:5432/database?table=elector
//
// The parameters of this package are table, create, listen and readonly; others go to the
// client library. With create=true Open creates a missing table. [New] takes your pool instead of a URL.
//
// # Consistency
//
// A change is one autocommit statement that compares the whole row, under the row's
// lock. A read is one statement on a server that takes writes; the same statement
// detects any other server, and is then refused. A handle that only reads may be on a hot
// standby, which may be behind: see [backends.OpenReadOnly].
//
// Renewals of many elections, when one process holds them through one handle, are one
// statement for up to 100 rows, which compares each by itself. It skips rows that
// another transaction has locked (SKIP LOCKED); each of those is then renewed by
// itself. Waiters and observers of many elections in one process also read up to 500
// rows in one statement, except those with a change without an answer.
//
// Each change is committed with synchronous_commit at least on. After a change without
// an answer, reads of that election lock the row. This is itself a commit, which waits
// for the standbys and for every earlier commit: a change that no standby has does not
// turn into a success. Reads stop locking when one shows that the change can no longer
// be applied.
//
// No statement waits long for a row that another transaction has locked: the server
// refuses a change, or a read that locks, after 300 ms or a quarter of the remaining
// time (lock_timeout), and that change was not applied. Such a read then returns the
// state that the change without an answer was to replace, if it is still there, and
// ErrUnavailable otherwise.
//
// # Expiry
//
// By the elector's rule alone. The server's clock, sessions and advisory locks play no
// part.
//
// A change of holder, token, value or extensions sends a NOTIFY on the channel named as
// the table (without schema), with the election's name as payload, unless listen=false.
// Renewals send none, because NOTIFY takes a server-wide lock when it commits. A change
// that sends one waits for this lock for half of the time that its request has. Watch is
// thus a hint of new leaders, values, extensions and vacancies; waiters also read.
//
// # Fencing
//
// If your data is in the same database as the election, [Transact] commits a
// transaction only while the lease is the latest, and [TransactDB] does the same with
// database/sql. The server refuses the late write of a leader that was paused.
//
// [Guard] is the statement alone, for other ways to run a transaction. A single
// statement can have the guard as a condition; $1 is lease.Election() and $2
// lease.Token():
//
//	update account set cents = cents + 500 where id = 7 and exists
//		(select from elector where name = $1 and token = $2 and holder <> '' for key share)
//
// It changes no row if the lease is stale. Call lease.Check before it. Without
// the lock or the index a takeover can commit between the look and the commit.
//
// A guard holds a lock on the key of the election's row until its transaction ends:
//
//	statement                              lock             waits for a guard
//	guard                                  KEY SHARE        no
//	renewal, release, read after a doubt   NO KEY UPDATE    no
//	acquisition, deletion of the row       UPDATE           yes
//	ordinary read                          none             no
//
// A guard in turn waits for an acquisition that is being committed, and then refuses.
// The server refuses an acquisition that waits for 300 ms, and has certainly not
// applied it; the elector tries again.
//
// The guard works at each isolation level. At READ COMMITTED it reports ErrStale. At
// REPEATABLE READ and SERIALIZABLE it fails with 40001 if the takeover came after the
// transaction's first statement: roll back, check the lease and try again.
package postgres
