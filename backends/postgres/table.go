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

// channel is what NOTIFY and LISTEN use. It leaves out the schema, for its
// length is limited; tables of one name in two schemas wake each other's
// watchers, and these read and find nothing new.
func (t table) channel() string { return t[len(t)-1] }

// columns are the table's, as format_type names their types. ttl and
// renew_every are in nanoseconds.
var columns = []string{"name text", "schema integer", "holder text", "token bigint",
	"ttl bigint", "renew_every bigint", "attempt text", "value text", "ext text"}

// extDefinition is the last column's, which a table may lack that was made
// before there were extensions. The default is for those who write without it.
const extDefinition = "ext text not null default ''"

// createSQL returns the statement that makes the table. Collation C keeps the
// key's order, and so its uniqueness, from changing with the operating system.
func (t table) createSQL() string {
	definitions := []string{columns[0] + ` collate "C" primary key`}
	for _, c := range columns[1 : len(columns)-1] {
		definitions = append(definitions, c+" not null")
	}
	definitions = append(definitions, extDefinition)
	return "create table " + t.quoted() + " (" + strings.Join(definitions, ", ") + ")"
}

func (t table) grantSQL(role string) string {
	role = pgx.Identifier{role}.Sanitize()
	sql := "grant select, insert, update on " + t.quoted() + " to " + role
	if len(t) == 2 {
		sql = "grant usage on schema " + pgx.Identifier{t[0]}.Sanitize() + " to " + role + "; " + sql
	}
	return sql
}

// inspect describes the table, along the search_path if it has no schema, and
// the session. It returns one row, with NULLs if there is no table.
const inspect = `select current_setting('transaction_read_only'), current_user::text, current_schema()::text,
	n.nspname::text, c.relkind::text || c.relpersistence::text, row_security_active(c.oid),
	has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert') and has_table_privilege(c.oid, 'update'),
	array(select attname || ' ' || format_type(atttypid, atttypmod) from pg_attribute
		where attrelid = c.oid and attnum > 0 and not attisdropped),
	exists (select from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
		where i.indrelid = c.oid and a.attname = 'name' and i.indnkeyatts = 1
		and i.indisunique and i.indimmediate and i.indisvalid and i.indpred is null)
from (select to_regclass($1) as oid) as r
	left join pg_class c on c.oid = r.oid left join pg_namespace n on n.oid = c.relnamespace`

// prepare makes sure that the server takes writes and that the table is there,
// ours in shape, and open to us. It creates the table once if it may.
func (b *Backend) prepare(ctx context.Context, create bool) error {
	var readOnly string
	var inSchema, schema, kind *string
	var secured, granted *bool
	var unique bool
	var present []string
	_, err := b.queryRow(ctx, inspect, []any{b.table.quoted()},
		&readOnly, &b.role, &inSchema, &schema, &kind, &secured, &granted, &present, &unique)
	if err == nil && readOnly != "off" {
		err = errReadOnly
	}
	if err != nil {
		return b.explain(ctx, "looking for the table", err)
	}
	if schema == nil {
		if len(b.table) == 1 && inSchema != nil {
			b.table = table{*inSchema, b.table[0]}
		}
		return b.create(ctx, create)
	}
	// From here on it is this table, whatever the search_path of a session is.
	b.table = table{*schema, b.table.channel()}
	if *kind == "ru" {
		return b.unfit("it is UNLOGGED and would be empty after a crash: run alter table %s set logged", b.table.quoted())
	}
	if *kind != "rp" {
		return b.unfit("it is not an ordinary, permanent table")
	}
	for _, c := range columns {
		if slices.Contains(present, c) {
			continue
		}
		if c == "ext text" && !slices.ContainsFunc(present, func(c string) bool { return strings.HasPrefix(c, "ext ") }) {
			return b.unfit("it has no column ext: run alter table %s add column %s", b.table.quoted(), extDefinition)
		}
		return b.unfit("it has no column %s, only %s", c, strings.Join(present, ", "))
	}
	if !unique {
		return b.unfit("its column name has no unique index: run alter table %s add primary key (name)", b.table.quoted())
	}
	if *secured {
		return b.unfit("row-level security may hide rows from role %s: use a table without it", b.role)
	}
	if !*granted {
		return fmt.Errorf("%w: role %s may not use the table; an administrator can run: %s", backends.ErrDenied, b.role, b.table.grantSQL(b.role))
	}
	return nil
}

func (b *Backend) create(ctx context.Context, allowed bool) error {
	setup := b.table.createSQL() + "; " + b.table.grantSQL(b.role)
	if !allowed {
		return fmt.Errorf("%w: there is no table %s; an administrator can run: %s", backends.ErrMisconfigured, b.table.quoted(), setup)
	}
	sql := b.table.createSQL()
	_, err := b.queryRow(ctx, sql, nil)
	switch code(err) {
	case "42501", "3F000":
		return fmt.Errorf("%w: there is no table %s, and role %s may not create it; an administrator can run: %s: %w",
			backends.ErrMisconfigured, b.table.quoted(), b.role, setup, err)
	case "23505", "42P07": // somebody else has created it meanwhile
		return b.prepare(ctx, false)
	}
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return b.explain(ctx, "creating the table", err)
	}
	slog.Warn("elector: created the table, which was not there; if elections are running, theirs was renamed or dropped, and two may lead now: stop this process and restore that table",
		"table", b.table.quoted(), "store", b.store)
	return b.prepare(ctx, false)
}

func (b *Backend) unfit(format string, args ...any) error {
	return fmt.Errorf("%w: table %s cannot be used: %s", backends.ErrMisconfigured, b.table.quoted(), fmt.Sprintf(format, args...))
}
