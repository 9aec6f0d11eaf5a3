package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/elector-go/elector/backends"
)

// Servers that have the protocol of PostgreSQL lack some of its functions, and their row
// locks are other ones. On CockroachDB and YugabyteDB a Backend is plain: it uses one
// table with one index, and statements on one row that set nothing, lock nothing and
// notify nothing. It shares no renewals, and makes no guards. A server that lacks
// pg_notify and is neither of them is refused.

// recognize asks what the server is. The function version is not in pg_catalog's name
// space here, so that a test can replace it.
const recognize = `select version(), exists (select 1 from pg_catalog.pg_proc where proname = 'pg_notify')`

// recognize finds out what the server is, and makes the Backend plain if need be.
func (b *Backend) recognize(ctx context.Context) error {
	var version string
	var notifies bool
	if _, err := b.queryRow(ctx, recognize, nil, &version, &notifies); err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(version, "CockroachDB"):
		b.like = "CockroachDB"
	case strings.Contains(version, "-YB-"):
		b.like = "YugabyteDB"
	case !notifies:
		return fmt.Errorf("%w: the server has the protocol of PostgreSQL, but lacks what elections need (it has no pg_notify; its version is %.80q); use PostgreSQL, or another store", backends.ErrMisconfigured, version)
	default:
		return nil
	}
	b.noListen = true
	if b.base.ReadOnly() {
		return nil
	}
	slog.Warn("elector: the server only has the protocol of PostgreSQL, and this package is not tested with it; changes are found by reading there, and there are no guards",
		"server", b.like, "version", fmt.Sprintf("%.80s", version), "store", b.base.Store())
	return nil
}

// writable is what a read looks at to detect a server that takes no writes.
const writable = `current_setting('transaction_read_only')`

// plainWritable also detects reads from followers, which may be behind. A server has
// at most one of these settings.
const plainWritable = `case when coalesce(current_setting('default_transaction_use_follower_reads', true), 'off') <> 'off'
	or coalesce(current_setting('yb_read_from_followers', true), 'off') <> 'off' then '` + followers + `' else ` + writable + ` end`

const followers = "followers"

var errFollowers = fmt.Errorf("%w: its reads come from followers, which may be behind: switch default_transaction_use_follower_reads (CockroachDB) or yb_read_from_followers (YugabyteDB) off for this role", backends.ErrMisconfigured)

// silent leaves the notification out of a statement, and keeps its parameters.
var silent = strings.NewReplacer("pg_notify($5, $1)", "$5", "pg_notify($3, n.name)", "$3")

// statement completes a statement on the table. Without a listening connection it sends
// no notification.
func (b *Backend) statement(sql string) string {
	if b.noListen {
		sql = silent.Replace(sql)
	}
	if b.like != "" {
		sql = strings.Replace(sql, writable, plainWritable, 1)
	}
	return fmt.Sprintf(sql, b.table.quoted())
}

const (
	plainRow = `select ` + writable + `, '', '', e.* from (select 1) as one left join (select ` + cells + ` from %s where name = $1) as e on true`

	plainInsert = `insert into %s (name, schema, ` + fields + `)
values ($1::text, $2::int4, $3::text, $4::bigint, $5::bigint, $6::bigint, $7::text, $8::text, $9::text)
on conflict do nothing returning name`

	plainUpdate = `update %s set holder = $3::text, token = $4::bigint, ttl = $5::bigint, renew_every = $6::bigint,
	attempt = $7::text, value = $8::text, ext = $9::text
where name = $1::text and schema = $2::int4 and holder = $10::text and token = $11::bigint and ttl = $12::bigint and renew_every = $13::bigint
	and attempt = $14::text and value = $15::text and ext = $16::text
returning name`

	plainSession = `select ` + plainWritable + `, current_user::text, coalesce(current_schema(), '')::text`

	plainTable = `select array(select column_name::text || ' ' || data_type::text from information_schema.columns
		where table_schema = $1::text and table_name = $2::text),
	array(select k.column_name::text from information_schema.table_constraints as c
		join information_schema.key_column_usage as k on k.constraint_schema = c.constraint_schema and k.constraint_name = c.constraint_name
			and k.table_schema = c.table_schema and k.table_name = c.table_name
		where c.constraint_type = 'PRIMARY KEY' and c.table_schema = $1::text and c.table_name = $2::text)`
)

// plainCreateSQL has no collation: these servers compare bytes. An integer has eight
// bytes on CockroachDB.
func (t table) plainCreateSQL() string {
	all := strings.NewReplacer(` collate "C"`, "", " integer ", " int4 ").Replace(strings.Join(columns, ", "))
	return "create table " + t.quoted() + " (" + all + ")"
}

// preparePlain is prepare for a plain Backend. It looks for a table without a schema in
// the first one of the search_path alone.
func (b *Backend) preparePlain(ctx context.Context, create bool) error {
	var state, current string
	if _, err := b.queryRow(ctx, plainSession, nil, &state, &b.role, &current); err != nil {
		return err
	}
	if err := b.refuses(state); err != nil {
		return err
	}
	switch {
	case len(b.table) == 2:
	case current == "":
		return b.unfit("no schema in the search_path of role %s exists: name one in the parameter table, as in table=public.%s", b.role, b.table[0])
	default:
		b.table = table{current, b.table[0]}
	}
	var present, keys []string
	if _, err := b.queryRow(ctx, plainTable, []any{b.table[0], b.table[1]}, &present, &keys); err != nil {
		return err
	}
	only := b.base.ReadOnly()
	switch {
	case len(present) == 0 && only:
		return b.unused()
	case len(present) == 0:
		return b.create(ctx, create)
	case b.table.lacks(present) != "":
		return b.unfit("it has no column %s", b.table.lacks(present))
	case !only && (len(keys) != 1 || keys[0] != "name"):
		return b.unfit("its primary key is not name, or role %s may not write: %s", b.role, b.grantSQL())
	}
	// These change nothing, and show whether the role may read and write.
	probes := []string{"select name from %s where false"}
	if !only {
		probes = append(probes, "update %s set value = value where false", "insert into %[1]s select * from %[1]s where false")
	}
	for _, probe := range probes {
		_, err := b.query(ctx, fmt.Sprintf(probe, b.table.quoted()), nil, func(rows pgx.Rows) error {
			rows.Close()
			return rows.Err()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// inspectPlain is Inspect for a plain Backend.
func (b *Backend) inspectPlain(ctx context.Context) (i backends.Inspection, err error) {
	var version string
	var seconds float64
	if _, err := b.queryRow(ctx, `select version(), extract(epoch from clock_timestamp())::float8`, nil, &version, &seconds); err != nil {
		return i, err
	}
	i.Clock = time.UnixMicro(int64(seconds * 1e6))
	i.Findings = []backends.Finding{{What: "server", Seen: fmt.Sprintf("%.80s", version),
		Fix: "try your own failovers on it first: elector is not tested with " + b.like + ", finds changes by reading there, and makes no guards; see docs/stores/postgres.md"}}
	return i, nil
}
