package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/elector-go/elector/backends"
)

// maxLoads bounds the answer: a record has at most 25 kB, and mostly 200 bytes.
const maxLoads = 500

// readRows is readRow for many rows.
const readRows = `select current_setting('transaction_read_only'), e.* from (select 1) as one
	left join (select ` + cells + ` from %s where name = any($1::text[])) as e on true`

// LoadMany implements [backends.BatchLoader], with the further errors of Load. It is one
// statement. An election with a write that has had no answer is not read with the
// others: its row must be locked, see Load.
func (b *Backend) LoadMany(ctx context.Context, names []string) []backends.Outcome {
	return b.handle.LoadMany(ctx, names, func(ctx context.Context) ([]backends.Outcome, error) {
		doubtful := make([]bool, len(names)) // before the statement, as in Load
		found := make(map[string]backends.Outcome, len(names))
		for i, name := range names {
			_, doubtful[i] = b.doubts.about(name)
			found[name] = backends.Outcome{}
		}
		_, err := b.query(ctx, fmt.Sprintf(readRows, b.table.quoted()), []any{names}, func(rows pgx.Rows) error {
			var readOnly string
			var row stored
			_, err := pgx.ForEachRow(rows, append([]any{&readOnly}, row.dest()...), func() error {
				if readOnly != "off" {
					return errReadOnly
				}
				if row.name == nil {
					return nil
				}
				if _, asked := found[*row.name]; !asked { // the column does not compare bytes
					return backends.ErrNotTried
				}
				r, err := row.record(*row.name)
				found[*row.name] = backends.Outcome{Record: r, Err: err}
				return nil
			})
			return err
		})
		if err != nil {
			return nil, err
		}
		outcomes := make([]backends.Outcome, len(names))
		for i, name := range names {
			if outcomes[i] = found[name]; doubtful[i] {
				outcomes[i] = backends.Outcome{Err: backends.ErrNotTried}
			}
		}
		return outcomes, nil
	})
}
