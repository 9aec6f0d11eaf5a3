package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/elector-go/elector/backends"
)

// maxBatch bounds how long a statement keeps its rows locked.
const maxBatch = 100

// renewMany is update for many rows. It skips rows that another transaction has
// locked: one election must not delay the others, and two batches that wait for
// each other's rows would be a deadlock.
var renewMany = `with free as (select name from %[1]s where name = any($3::text[]) for no key update skip locked)
update %[1]s as e set (` + fields + `) = (` + prefixed("next_") + `)
from free, unnest($3::text[], $4::boolean[],
		$5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::text[], $10::text[], $11::text[],
		$12::text[], $13::bigint[], $14::bigint[], $15::bigint[], $16::text[], $17::text[], $18::text[])
	as n (name, changed, ` + prefixed("next_") + `, ` + prefixed("prev_") + `)
where e.name = n.name and free.name = n.name and e.schema = $1 and (` + prefixed("e.") + `) = (` + prefixed("prev_") + `)
returning e.name, ` + durably + `, case when n.changed then pg_notify($2, e.name)::text end`

func prefixed(prefix string) string {
	return prefix + strings.ReplaceAll(fields, ", ", ", "+prefix)
}

// SwapMany implements [backends.BatchSwapper].
func (b *Backend) SwapMany(ctx context.Context, renewals []backends.Change) []backends.Outcome {
	return b.handle.SwapMany(ctx, renewals, func(ctx context.Context) ([]backends.Outcome, error) {
		var columns [16][]string
		at := map[string]int{}
		for i, r := range renewals {
			prev, err := backends.Decode(r.Name, []byte(r.Prev.Version))
			if err != nil {
				return nil, fmt.Errorf("%w: the version to replace is not one of this election", backends.ErrNotTried)
			}
			at[r.Name] = i
			row := slices.Concat([]string{r.Name, strconv.FormatBool(news(r.Prev, r.Next))}, texts(r.Next), texts(prev))
			for j, text := range row {
				columns[j] = append(columns[j], text)
			}
		}
		args := []any{backends.Schema, b.table.channel()}
		for _, c := range columns {
			args = append(args, c)
		}
		// The doubt begins before the request: while some callers still wait for
		// the answer, another may have given up, and read.
		for _, r := range renewals {
			b.doubts.add(r.Name, r.Prev.Version)
		}
		var renewed []string
		_, err := b.query(ctx, fmt.Sprintf(renewMany, b.table.quoted()), args, func(rows pgx.Rows) (err error) {
			// Nothing counts before all rows are read: an error of the commit
			// comes last.
			renewed, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (name string, err error) {
				return name, row.Scan(&name, nil, nil, nil)
			})
			return err
		})
		switch {
		case err == nil:
			err = backends.ErrNotTried // the outcome of rows that were skipped or differ
		case rolledBack(err):
			err = fmt.Errorf("%w: %w", backends.ErrNotTried, err)
		default:
			return nil, err
		}
		outcomes := backends.Outcomes(len(renewals), err)
		for _, name := range renewed {
			r := renewals[at[name]]
			b.doubts.end(name, r.Prev.Version)
			outcomes[at[name]] = backends.Outcome{Record: versioned(name, r.Next)}
		}
		for i, r := range renewals {
			if outcomes[i].Err != nil {
				b.doubts.drop(r.Name, r.Prev.Version)
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
