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
//     and underscores; it is quoted, so upper and lower case differ. Without a
//     schema it is looked up once, at Open, along the search_path.
//   - create: whether to create the table if it is missing; true by default.
//   - listen: whether to hold a connection that listens for changes; true by
//     default. Write false behind a transaction pooler, which cannot carry
//     LISTEN: changes are then found by reading alone.
//
// These go to the client library, with libpq's meaning: host, port, dbname,
// user, password, passfile, service, servicefile, sslmode, sslrootcert,
// sslcert, sslkey, sslpassword, sslsni, sslnegotiation, krbspn, krbsrvname,
// connect_timeout (in seconds, for each host, 5 by default), application_name
// ("elector" by default), search_path, options; and pool_max_conns (4 by
// default), pool_min_conns, pool_max_conn_lifetime, pool_max_conn_idle_time.
// target_session_attrs may say read-write or primary; a server that takes no
// writes is never used. Any other parameter is refused. libpq's environment
// variables, PGPASSWORD say, fill in what the URL leaves out.
//
// [New] takes a pool of yours instead of a URL.
//
// # Consistency
//
// A change is one autocommit statement that compares the whole row,
// under the row's lock. A read is one statement, on a server that takes writes;
// one that does not is refused with the very statement that reads.
//
// Renewals of many elections, when one process holds them through one handle,
// are one statement for up to 100 rows, of which each is compared by itself. It
// passes over rows that somebody has locked (SKIP LOCKED); these go by
// themselves.
//
// Each change is committed with synchronous_commit at least on, whatever the
// session, role or database says: it is flushed to disk, and on the standbys
// that synchronous_standby_names asks for. remote_apply stays as it is.
//
// A server can break off the wait for its standbys, on cancellation, and then
// shows a commit that no standby has. That is an unknown outcome, and must not
// be taken for a success by reading it back either. So after a change without
// an answer, reads of that election lock the row: this is itself a commit that
// waits for the standbys, and for every commit before it. It ends with the
// first read that shows that the change can no longer be applied.
//
// Nothing waits long for a row that another transaction has locked: a change,
// or a read that locks, is refused after 300 ms, or a quarter of the time that
// it has (lock_timeout), and the change was then not applied. Such a read then
// returns what the change without an answer was to replace, if that is still
// there, and ErrUnavailable otherwise.
//
// # Expiry
//
// By the elector's rule alone. The server's clock, sessions and advisory locks
// play no part: a session can end while its holder works on, and go on when
// its holder is dead.
//
// A change of holder, token, value or extensions sends a NOTIFY on the channel
// named as the table (without schema), with the election's name as payload.
// Renewals send none, because NOTIFY takes a lock of the whole server when it
// commits. Watch is therefore a hint of new leaders, values, extensions and
// vacancies, and waiters read besides. One connection for each handle, apart
// from the pool, listens for all its Watches. It is notified once to begin with;
// if that does not arrive within 5 s, as through a transaction pooler, Watch
// ends with an error that says so, and the elector goes on by reading.
//
// # Permissions
//
// With the table there, say create=false:
//
//	grant connect on database app to app;
//	grant usage on schema public to app;
//	grant select, insert, update on public.elector to app;
//
// The row lock needs no more than update. To create the table, also CREATE on
// the schema, which PostgreSQL 15 and later do not give to everybody in public.
// Without it Open returns the SQL to hand to an administrator, which is:
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
//		ext text not null default '');
//
// A table without the column ext is refused with the SQL that adds it.
//
// # Limits
//
// Asynchronous replication loses acknowledged commits in a failover: two
// leaders can then be valid for up to a TTL, and only the fencing token tells
// them apart. Set synchronous_standby_names, or promote no standby while the
// old primary may still be reached.
//
// The same holds for two primaries at once, for logical replication in both
// directions, and for a restored backup. The table must be LOGGED.
//
// When a table is renamed or dropped while elections run, those who have it open
// get an error. But a process that starts then creates an empty one by default,
// warns of that in the log, and leads at once, while the old leader leads until
// its next renewal, or until its lease ends. Write create=false where that may
// happen.
//
// One connection serves a renewal; the pool has at most 4 by default, and a
// Watch adds one for all. In a network gone dark, a call returns when its
// context ends, and what it leaves behind, and so Close, takes up to 15 s.
//
// Holder, value and extensions cannot have a NUL character, nor one outside the
// database's encoding. Tested with PostgreSQL 15.
//
// An operator reads the table with
//
//	select name, holder, token, ttl / 1e9 as ttl_seconds, value from elector;
//
// ttl and renew_every are in nanoseconds; an empty holder is a vacancy. Rows of
// leaders that died keep their holder until somebody takes over: the row alone
// does not tell whether a leader lives, but its attempt changes with each
// renewal. To depose a leader, stop it. Do not delete rows of elections in use:
// the next winner's token then rests on the clocks alone.
package postgres
