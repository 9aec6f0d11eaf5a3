package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/elector-go/elector/backends"
)

// maxBatch bounds how long a statement keeps its rows locked.
const maxBatch = 100

// swapMany is update and insert for many rows. It skips rows that another transaction
// has locked: one election must not delay the others, and two batches that wait for
// each other's rows would be a deadlock. A new token waits for guards, so those rows are
// locked in the same way as by an update of the token: see Guard. Creations are in
// order, because two of one name wait for each other.
var swapMany = `with n as (select * from unnest($7::text[], $8::text[],
		$9::text[], $10::bigint[], $11::bigint[], $12::bigint[], $13::text[], $14::text[], $15::text[],
		$16::text[], $17::bigint[], $18::bigint[], $19::bigint[], $20::text[], $21::text[], $22::text[])
	as n (name, changed, ` + prefixed("next_") + `, ` + prefixed("prev_") + `)),
same_token as (select name from %[1]s where name = any($4::text[]) for no key update skip locked),
new_token as (select name from %[1]s where name = any($5::text[]) for update skip locked),
updated as (update %[1]s as e set (` + fields + `) = (` + prefixed("next_") + `)
	from n, (select name from same_token union all select name from new_token) as free
	where e.name = n.name and free.name = n.name and e.schema = $1 and (` + prefixed("e.") + `) = (` + prefixed("prev_") + `)
	returning e.name),
created as (insert into %[1]s (name, schema, ` + fields + `)
	select name, $1, ` + prefixed("next_") + ` from n where name = any($6::text[]) and ` + impatiently + ` order by name
	on conflict do nothing returning name)
select n.name, done.name is not null, n.name = any($6::text[]) or free.name is not null,
	` + durably + `, case when n.changed <> '' and done.name is not null then set_config('lock_timeout', n.changed, true) || pg_notify($3, n.name)::text end
from n left join (select name from updated union all select name from created) as done on done.name = n.name
	left join (select name from same_token union all select name from new_token) as free on free.name = n.name`

func prefixed(prefix string) string {
	return prefix + strings.ReplaceAll(fields, ", ", ", "+prefix)
}

// SwapMany implements [backends.BatchSwapper]. On a server that only looks like
// PostgreSQL it is switched off.
func (b *Backend) SwapMany(ctx context.Context, changes []backends.Change) []backends.Outcome {
	if b.like != "" {
		return backends.Outcomes(len(changes), backends.ErrNotTried)
	}
	return b.base.SwapMany(ctx, changes, func(ctx context.Context) ([]backends.Outcome, error) {
		var columns [16][]string
		sameToken, newToken, created := []string{}, []string{}, []string{} // NULL if nil
		at := map[string]int{}
		for i, c := range changes {
			prev := c.Next // of a creation, which compares with nothing
			if c.Prev.Exists() {
				var err error
				if prev, err = backends.Decode(c.Name, []byte(c.Prev.Version)); err != nil {
					return nil, fmt.Errorf("%w: the version to replace is not one of this election", backends.ErrNotTried)
				}
			}
			switch {
			case !c.Prev.Exists():
				created = append(created, c.Name)
			case prev.Token == c.Next.Token:
				sameToken = append(sameToken, c.Name)
			default:
				newToken = append(newToken, c.Name)
			}
			at[c.Name] = i
			row := slices.Concat([]string{c.Name, news(ctx, c.Prev, c.Next)}, texts(c.Next), texts(prev))
			for j, text := range row {
				columns[j] = append(columns[j], text)
			}
		}
		args := []any{backends.Schema, b.table.channel(), sameToken, newToken, created}
		for _, c := range columns {
			args = append(args, c)
		}
		// The doubt begins before the request: while some callers still wait for
		// the answer, another may have given up, and read.
		for _, c := range changes {
			b.doubts.add(c.Name, c.Prev.Version)
		}
		type answer struct {
			name          string
			done, decided bool // decided unless the row was skipped
		}
		var answers []answer
		_, err := b.query(ctx, b.statement(swapMany), args, func(rows pgx.Rows) (err error) {
			// Nothing counts before all rows are read: an error of the commit
			// comes last.
			answers, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (a answer, err error) {
				return a, row.Scan(&a.name, &a.done, &a.decided, nil, nil, nil)
			})
			return err
		})
		switch {
		case err == nil:
			err = backends.ErrNotTried // the outcome of rows that were skipped, or do not exist
		case rolledBack(err):
			err = fmt.Errorf("%w: %w", backends.ErrNotTried, err)
		default:
			return nil, err
		}
		outcomes := backends.Outcomes(len(changes), err)
		for _, a := range answers {
			i := at[a.name]
			switch c := changes[i]; {
			case a.done:
				b.doubts.end(a.name, c.Prev.Version)
				outcomes[i] = backends.Outcome{Record: versioned(a.name, c.Next)}
			case a.decided:
				outcomes[i] = backends.Outcome{Err: backends.ErrConflict}
			}
		}
		for i, c := range changes {
			if outcomes[i].Err != nil {
				b.doubts.drop(c.Name, c.Prev.Version)
			}
		}
		return outcomes, nil
	})
}

// rolledBack reports whether the server has answered that the statement failed and that
// the session goes on: then nothing of it was applied. When the session ended,
// it may have been applied.
func rolledBack(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.SeverityUnlocalized == "ERROR"
}
