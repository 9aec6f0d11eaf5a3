// Package postgres keeps election records in a PostgreSQL table, one row for
// each election.
//
// # URLs
//
//	postgres://user:password@host:5432,host2:5432/database?table=elector
//
// postgresql:// means the same. Several hosts are tried in order, and the
// first that takes writes is used; write a port with each host or with none.
// Special characters in user and password are percent-encoded. Parameters of
// this package:
//
//   - table: the table, or schema.table; "elector" by default. Letters, digits
//     and underscores; it is quoted, so upper and lower case differ. Open finds a
//     table without a schema along the search_path, once.
//   - create: whether to create a missing table; true by default.
//   - listen: whether to listen for changes, on a connection of its own; true by
//     default. Write false behind a transaction pooler, which cannot carry
//     LISTEN: changes are then found by reading alone.
//
// These go to the client library, with libpq's meaning: host, port, dbname,
// user, password, passfile, service, servicefile, sslmode, sslrootcert,
// sslcert, sslkey, sslpassword, sslsni, sslnegotiation, krbspn, krbsrvname,
// connect_timeout (in seconds, for each host, 5 by default), application_name
// ("elector" by default), search_path, options; and pool_max_conns (4 by
// default), pool_min_conns, pool_max_conn_lifetime, pool_max_conn_idle_time.
// target_session_attrs may be read-write or primary; a server that takes no
// writes is never used. Any other parameter is refused. libpq's environment
// variables, such as PGPASSWORD, fill in what the URL leaves out.
//
// [New] takes your pool instead of a URL.
//
// # Consistency
//
// A change is one autocommit statement that compares the whole row, under the
// row's lock. A read is one statement on a server that takes writes; the same
// statement detects any other server, and is then refused.
//
// Renewals of many elections, when one process holds them through one handle,
// are one statement for up to 100 rows, which compares each by itself. It skips
// rows that another transaction has locked (SKIP LOCKED); each of those is then
// renewed by itself. Waiters and observers of many elections in one process also read
// up to 500 rows in one statement, except those with a change without an answer.
//
// Each change is committed with synchronous_commit at least on, whatever the
// session, role or database says: it is flushed to disk, also on the standbys
// that synchronous_standby_names requires. remote_apply stays as it is.
//
// On cancellation a server can break off the wait for its standbys, and then show
// a commit that no standby has. The outcome of such a change is unknown, and
// reading it back must not turn it into a success either. So after a change
// without an answer, reads of that election lock the row. This is itself a
// commit, which waits for the standbys and for every earlier commit. Reads stop
// locking when one shows that the change can no longer be applied.
//
// No statement waits long for a row that another transaction has locked: the
// server refuses a change, or a read that locks, after 300 ms or a quarter of
// the remaining time (lock_timeout), and that change was not applied. Such a
// read then returns the state that the change without an answer was to replace,
// if it is still there, and ErrUnavailable otherwise.
//
// # Expiry
//
// By the elector's rule alone. The server's clock, sessions and advisory locks
// play no part: a session can end while its holder works on, and go on when its
// holder is dead.
//
// A change of holder, token, value or extensions sends a NOTIFY on the channel
// named as the table (without schema), with the election's name as payload.
// Renewals send none, because NOTIFY takes a server-wide lock when it commits.
// Watch is therefore a hint of new leaders, values, extensions and vacancies, and
// waiters also read. One connection of each handle, apart from the pool, listens
// for all its Watches. It first sends itself a notification. If that does not
// arrive within 5 s, as through a transaction pooler, Watch returns an error that
// says so, and the elector goes on by reading.
//
// # Permissions
//
// With an existing table, write create=false, and grant:
//
//	grant connect on database app to app;
//	grant usage on schema public to app;
//	grant select, insert, update on public.elector to app;
//
// The row lock needs only update. To create the table, the role also needs CREATE
// on the schema; since PostgreSQL 15 not every role has it on public. Without it
// Open returns the SQL for an administrator:
//
//	create table public.elector (
//		name text collate "C" primary key,
//		schema integer not null,
//		holder text not null,
//		token bigint not null,
//		ttl bigint not null,
//		renew_every bigint not null,
//		attempt text not null,
//		value text not null,
//		ext text not null default '',
//		unique (name, token)) with (fillfactor = 50);
//
// The fillfactor leaves half of each page free, so that a renewal stays on its
// page and changes no index; a table without it also works. A table without the
// column ext is refused with the SQL that adds it. A table without the unique index on
// name and token works too, but no transaction can be guarded until its owner has run
//
//	create unique index concurrently on public.elector (name, token);
//
// and the processes have been restarted. Do not drop the index while they run.
//
// A role that runs guarded transactions but no elections needs less. Its row lock
// needs the right to update one column, no matter which:
//
//	grant usage on schema public to writer;
//	grant select, update (value) on public.elector to writer;
//
// # Fencing
//
// If your data is in the same database as the election, [Transact] commits a
// transaction only while the lease is the latest, and [TransactDB] does the same with
// database/sql. The server refuses the late write of a leader that was paused.
//
//	err := postgres.Transact(ctx, pool, lease, func(tx pgx.Tx) error {
//		_, err := tx.Exec(ctx, "update account set cents = cents + 500 where id = 7")
//		return err
//	})
//
// [Guard] is the statement alone, for other ways to run a transaction. A single
// statement can have the guard as a condition; $1 is lease.Election() and $2
// lease.Token():
//
//	update account set cents = cents + 500 where id = 7 and exists
//		(select from elector where name = $1 and token = $2 and holder <> '' for key share)
//
// It changes no row if the lease is stale. Call lease.Check before it. In a
// transaction of several statements, set idle_in_transaction_session_timeout to
// lease.Remaining first, as Guard does: see the hazards. The lock and
// the index are both needed: without them a takeover can commit between the look and
// the commit, at every isolation level, SERIALIZABLE included. FOR SHARE would make
// renewals wait.
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
// transaction's first statement: roll back, check the lease and try again. Renewals
// disturb no level.
//
// With Transact a transaction has no more round trips than without, and with
// TransactDB it has two more. On a server on the same machine that does not wait for
// its disk, a small transaction takes 1.6 and 2.4 times as long.
//
// Hazards:
//
//   - A leader that stops in a guarded transaction holds up its successor until the
//     server ends the transaction, at the latest when the lease ends: the guard sets
//     idle_in_transaction_session_timeout. But each further statement starts that
//     time anew, and a statement that runs is not idle. So make the guard the last
//     statement, or bound the whole: with transaction_timeout since PostgreSQL 17.
//   - Guards do not wait for an acquisition that waits for other guards. Guarded
//     transactions that overlap without a gap keep it out. A lease begins no guard
//     after its end, so this passes unless the transactions are long.
//   - A guard outside of a transaction, in autocommit, protects nothing.
//   - A hot standby cannot run guarded transactions, nor show that a lease is the
//     latest: it may lag behind.
//   - A trigger BEFORE UPDATE on the election's table makes renewals wait for guards.
//
// # Limits
//
// Asynchronous replication loses acknowledged commits in a failover: two leaders
// can then be valid for up to a TTL, and only the fencing token distinguishes
// them. Set synchronous_standby_names, or promote no standby while the old
// primary may still be reachable. The same is true of two primaries at once, of
// logical replication in both directions, and of a restored backup. The table
// must be LOGGED.
//
// When a table is renamed or dropped while elections run, processes that have it
// open get an error. But a process that starts then creates an empty table by
// default, warns of that in the log, and leads at once, while the old leader
// leads until its next renewal, or until its lease ends. Write create=false where
// that may happen.
//
// A renewal uses one connection; the pool has at most 4 by default, and all
// Watches together use one more. In a dead network a call returns when its
// context ends, but its clean-up, and so Close, takes up to 15 s.
//
// Holder, value and extensions cannot contain a NUL, or a character outside the
// database's encoding. Tested with PostgreSQL 15.
//
// An operator reads the table with
//
//	select name, holder, token, ttl / 1e9 as ttl_seconds, value from elector;
//
// ttl and renew_every are in nanoseconds; an empty holder is a vacancy. The row
// of a dead leader keeps its holder until another candidate takes over: one look
// does not show whether a leader lives, but its attempt changes with each
// renewal. To depose a leader, stop it. Do not delete rows of elections in use:
// the next winner's token then depends on the clocks alone.
package postgres
