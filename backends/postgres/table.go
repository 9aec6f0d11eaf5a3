package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/elector-go/elector/backends"
)

// A table is its name, or schema and name.
type table []string

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

func parseTable(s string) (table, error) {
	t := table(strings.Split(s, "."))
	for _, part := range t {
		if len(t) > 2 || !identifier.MatchString(part) {
			return nil, fmt.Errorf("%w: table is not a name, or schema.name, of up to 63 ASCII letters, digits and underscores each", backends.ErrURL)
		}
	}
	return t, nil
}

func (t table) quoted() string { return pgx.Identifier(t).Sanitize() }

// channel is the channel of NOTIFY and LISTEN. It leaves out the schema, because
// its length is limited. Tables of one name in two schemas wake each other's
// Watches, which read and find nothing new.
func (t table) channel() string { return t[len(t)-1] }

// columns define the table. Collation C keeps the key's order, and so its
// uniqueness, from changing with the operating system. ttl and renew_every are
// in nanoseconds. Tables from before there were extensions have no ext; the
// default is for writers without extensions.
var columns = []string{`name text collate "C" primary key`, "schema integer not null", "holder text not null", "token bigint not null",
	"ttl bigint not null", "renew_every bigint not null", "attempt text not null", "value text not null", "ext text not null default ''"}

// createSQL leaves half of each page empty: see the package comment. The index on
// name and token is for guards.
func (t table) createSQL() string {
	return "create table " + t.quoted() + " (" + strings.Join(columns, ", ") + ", unique (name, token)) with (fillfactor = 50)"
}

// indexSQL is for tables from before there were guards.
func (t table) indexSQL() string {
	return "create unique index concurrently on " + t.quoted() + " (name, token)"
}

func (t table) grantSQL(role string) string {
	role = pgx.Identifier{role}.Sanitize()
	sql := "grant select, insert, update on " + t.quoted() + " to " + role
	if len(t) == 2 {
		sql = "grant usage on schema " + pgx.Identifier{t[0]}.Sanitize() + " to " + role + "; " + sql
	}
	return sql
}

// inspect describes the session and the table, which it finds along the
// search_path if it has no schema. Without a table, found is empty.
const inspect = `select current_setting('transaction_read_only'), current_user::text, coalesce(current_schema(), '')::text,
	coalesce(n.nspname, '')::text as found, coalesce(c.relkind::text || c.relpersistence::text, ''), coalesce(row_security_active(c.oid), false),
	coalesce(has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert') and has_table_privilege(c.oid, 'update'), false),
	array(select attname || ' ' || format_type(atttypid, atttypmod) from pg_attribute
		where attrelid = c.oid and attnum > 0 and not attisdropped),
	'name' = any(u.keys), 'name,token' = any(u.keys)
from (select to_regclass($1) as oid) as r
	left join pg_class c on c.oid = r.oid left join pg_namespace n on n.oid = c.relnamespace
	left join lateral (select array(select (select string_agg(a.attname, ',' order by a.attname)
			from pg_attribute a where a.attrelid = i.indrelid and a.attnum = any(i.indkey[0:i.indnkeyatts - 1]))
		from pg_index i where i.indrelid = c.oid
		and i.indisunique and i.indimmediate and i.indisvalid and i.indpred is null and i.indexprs is null) as keys) as u on true`

// prepare makes sure that the server takes writes, and that the table exists,
// has our columns, and is open to us. It creates a missing table if it may.
func (b *Backend) prepare(ctx context.Context, create bool) error {
	var readOnly, current, found, kind string
	var secured, granted, unique bool
	var present []string
	_, err := b.queryRow(ctx, inspect, []any{b.table.quoted()}, &readOnly, &b.role, &current, &found, &kind, &secured, &granted, &present, &unique, &b.guarded)
	switch {
	case err != nil:
		return err
	case readOnly != "off":
		return errReadOnly
	case found == "":
		if len(b.table) == 1 && current != "" {
			b.table = table{current, b.table[0]}
		}
		return b.create(ctx, create)
	}
	// From here on it is this table, whatever the search_path of a session is.
	b.table = table{found, b.table.channel()}
	switch {
	case kind == "ru":
		return b.unfit("it is UNLOGGED and would be empty after a crash: run alter table %s set logged", b.table.quoted())
	case kind != "rp":
		return b.unfit("it is not an ordinary, permanent table")
	case b.table.lacks(present) != "":
		return b.unfit("it has no column %s", b.table.lacks(present))
	case !unique:
		return b.unfit("its column name has no unique index: run alter table %s add primary key (name)", b.table.quoted())
	case secured:
		return b.unfit("row-level security may hide rows from role %s: use a table without it", b.role)
	case !granted:
		return fmt.Errorf("%w: role %s may not use the table; an administrator can run: %s", backends.ErrDenied, b.role, b.table.grantSQL(b.role))
	}
	return nil
}

// lacks returns the first column that is not among those present, and what to do
// about it, or "".
func (t table) lacks(present []string) string {
	for _, definition := range columns {
		column := strings.Join(strings.Fields(definition)[:2], " ")
		if slices.Contains(present, column) {
			continue
		}
		if column == "ext text" && !slices.ContainsFunc(present, func(c string) bool { return strings.HasPrefix(c, "ext ") }) {
			return "ext: run alter table " + t.quoted() + " add column " + definition
		}
		return column + ", only " + strings.Join(present, ", ")
	}
	return ""
}

func (b *Backend) create(ctx context.Context, allowed bool) error {
	setup := b.table.createSQL() + "; " + b.table.grantSQL(b.role)
	if !allowed {
		return fmt.Errorf("%w: there is no table %s; an administrator can run: %s", backends.ErrMisconfigured, b.table.quoted(), setup)
	}
	_, err := b.queryRow(ctx, b.table.createSQL(), nil)
	switch code(err) {
	case "42501", "3F000":
		return fmt.Errorf("%w: there is no table %s, and role %s may not create it; an administrator can run: %s: %w",
			backends.ErrMisconfigured, b.table.quoted(), b.role, setup, err)
	case "23505", "42P07": // another process has created it meanwhile
		return b.prepare(ctx, false)
	}
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return b.handle.Explain(ctx, "creating the table", err)
	}
	slog.Warn("elector: created the table, because it did not exist; if elections are running, their table was renamed or dropped, and there may be two leaders now: stop this process and restore that table",
		"table", b.table.quoted(), "store", b.handle.Store())
	return b.prepare(ctx, false)
}

func (b *Backend) unfit(format string, args ...any) error {
	return fmt.Errorf("%w: table %s cannot be used: %s", backends.ErrMisconfigured, b.table.quoted(), fmt.Sprintf(format, args...))
}
