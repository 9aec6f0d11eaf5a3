package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"github.com/elector-go/elector/backends"
)

// A table is the names of a database and a table in it.
type table []string

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

func parseTable(s string) (table, error) {
	t := table(strings.Split(s, "."))
	for _, part := range t {
		if len(t) > 2 || !identifier.MatchString(part) {
			return nil, fmt.Errorf("%w: table is not a name, or database.name, of up to 64 ASCII letters, digits and underscores each", backends.ErrURL)
		}
	}
	return t, nil
}

func (t table) quoted() string { return quote(t...) }

func quote(names ...string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = "`" + strings.ReplaceAll(name, "`", "``") + "`"
	}
	return strings.Join(quoted, ".")
}

// columns define the table. All texts are bytes: a character set would take Job and
// job, or a text with a space at its end, for one. ttl and renew_every are in
// nanoseconds.
var columns = []string{"name varbinary(255)", "schema int", "holder varbinary(4096)", "token bigint", "ttl bigint", "renew_every bigint",
	"attempt varbinary(128)", "value varbinary(4096)", "ext varbinary(16384)", "term varbinary(128)"}

// keys are what guards need: an acquisition changes the index term, a renewal does
// not.
const keys = "primary key (name), unique key term (name, term)"

func (t table) createSQL() string {
	var all strings.Builder
	for _, c := range columns {
		name, kind, _ := strings.Cut(c, " ")
		if name == "schema" {
			name = quote(name)
		}
		all.WriteString(name + " " + kind + " not null, ")
	}
	return "create table " + t.quoted() + " (" + all.String() + keys + ") engine = InnoDB"
}

func (b *Backend) grantSQL() string {
	rights := "select, insert, update"
	if b.options.ReadOnly {
		rights = "select"
	}
	return fmt.Sprintf("grant "+rights+" on %s to '%s'@'%%'", b.table.quoted(), strings.ReplaceAll(b.user, "'", "''"))
}

// prepare makes sure that the table exists, is ours, and is open to us. It creates a
// missing table if it may.
func (b *Backend) prepare(ctx context.Context) error {
	err := b.check(ctx)
	if errors.Is(err, errNoTable) {
		if err = b.create(ctx); err == nil {
			err = b.check(ctx)
		}
	}
	if err != nil || b.options.ReadOnly { // a replica has settings of its own
		return err
	}
	return b.warn(ctx)
}

var errNoTable = errors.New("there is no such table")

func (b *Backend) check(ctx context.Context) error {
	return b.do(ctx, func(c *sql.Conn) error {
		var kind, engine string
		err := c.QueryRowContext(ctx, "select table_type, coalesce(engine, '') from information_schema.tables where table_schema = ? and table_name = ?", b.table[0], b.table[1]).Scan(&kind, &engine)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return errNoTable
		case err != nil:
			return err
		case b.options.ReadOnly:
		case kind != "BASE TABLE":
			return b.unfit("it is a %s", strings.ToLower(kind))
		case !strings.EqualFold(engine, "InnoDB"):
			return b.unfit("its engine is %s, which has no durable transactions: run alter table %s engine = InnoDB", engine, b.table.quoted())
		}
		present, err := list(ctx, c, "select concat(lower(column_name), ' ', data_type, coalesce(concat('(', character_maximum_length, ')'), '')) from information_schema.columns where table_schema = ? and table_name = ?", b.table[0], b.table[1])
		if err != nil {
			return err
		}
		for _, column := range columns {
			if !slices.Contains(present, column) {
				return b.unfit("it has no column %s, only %s", column, strings.Join(present, ", "))
			}
		}
		if b.options.ReadOnly {
			_, err := list(ctx, c, "select name from "+b.table.quoted()+" where false")
			return err
		}
		indexes, err := list(ctx, c, "select concat(lower(index_name), ' (', group_concat(lower(column_name) order by seq_in_index separator ', '), ')')"+
			" from information_schema.statistics where table_schema = ? and table_name = ? and non_unique = 0 and sub_part is null group by index_name", b.table[0], b.table[1])
		switch {
		case err != nil:
			return err
		case !slices.Contains(indexes, "primary (name)"):
			return b.unfit("its primary key is not name: run alter table %s drop primary key, add primary key (name)", b.table.quoted())
		case !slices.Contains(indexes, "term (name, term)"):
			return b.unfit("it has no unique index term: run alter table %s add unique key term (name, term)", b.table.quoted())
		}
		// These change nothing, and show whether the user may write.
		for _, probe := range []string{
			"select name from %[1]s where false",
			"update %[1]s set value = value where false",
			"insert into %[1]s select * from %[1]s where false",
		} {
			if _, err := list(ctx, c, fmt.Sprintf(probe, b.table.quoted())); err != nil {
				return err
			}
		}
		return nil
	})
}

// list returns the first column of what a statement returns.
func list(ctx context.Context, c *sql.Conn, statement string, args ...any) (all []string, err error) {
	rows, err := c.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, rows.Err()
}

func (b *Backend) create(ctx context.Context) error {
	if b.options.ReadOnly {
		return fmt.Errorf("%w: there is no table %s, so no election has ever used it, or user %s may not see it; check the database and the parameter table of the URL, or an administrator can run: %s", backends.ErrMisconfigured, b.table.quoted(), b.user, b.grantSQL())
	}
	setup := b.table.createSQL() + "; " + b.grantSQL()
	if !b.options.Create {
		return fmt.Errorf("%w: there is no table %s, or user %s may not see it; if that is the right place, create=true in the URL, or Create in the options of New, creates it, or an administrator can run: %s", backends.ErrMisconfigured, b.table.quoted(), b.user, setup)
	}
	err := b.do(ctx, func(c *sql.Conn) error {
		_, err := c.ExecContext(ctx, b.table.createSQL())
		return err
	})
	switch number(err) {
	case 1142, 1044:
		return fmt.Errorf("%w: there is no table %s, and user %s may not create it; an administrator can run: %s: %w", backends.ErrDenied, b.table.quoted(), b.user, setup, err)
	case 1050: // another process has created it meanwhile
		return nil
	}
	if err != nil {
		return b.base.Explain(ctx, "creating the table", err)
	}
	slog.Info("elector: created the table, as the first process of a new store does; if there were elections here before, their table was renamed or dropped: restore it before you go on",
		"table", b.table.quoted(), "store", b.base.Store())
	return nil
}

func (b *Backend) unfit(format string, args ...any) error {
	return fmt.Errorf("%w: table %s cannot be used: %s", backends.ErrMisconfigured, b.table.quoted(), fmt.Sprintf(format, args...))
}
