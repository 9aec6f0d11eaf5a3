package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/elector-go/elector/backends"
)

// maxBatch bounds for how long a statement keeps its rows locked.
const maxBatch = 100

// renewMany is update for many rows. It passes over rows that somebody has
// locked: one election must not hold up the others, and two batches that wait
// for each other's rows would be a deadlock.
const renewMany = `with free as (select name from %[1]s where name = any($1::text[]) for update skip locked)
update %[1]s as e set holder = n.holder, token = n.token, ttl = n.ttl, renew_every = n.renew_every, attempt = n.attempt, value = n.value, ext = n.ext
from free, unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::text[], $9::boolean[],
		$10::text[], $11::text[], $12::bigint[], $13::bigint[], $14::bigint[], $15::text[], $16::text[])
	as n (name, holder, token, ttl, renew_every, attempt, value, ext, changed,
		was_attempt, was_holder, was_token, was_ttl, was_renew_every, was_value, was_ext)
where e.name = n.name and free.name = n.name and e.schema = $17 and e.attempt = n.was_attempt and e.holder = n.was_holder
	and e.token = n.was_token and e.ttl = n.was_ttl and e.renew_every = n.was_renew_every and e.value = n.was_value and e.ext = n.was_ext
returning e.name, ` + durably + `, case when n.changed then pg_notify($18, e.name)::text end`

// RenewMany implements [backends.Batcher].
func (b *Backend) RenewMany(ctx context.Context, renewals []backends.Renewal) []backends.Outcome {
	all := func(err error) []backends.Outcome { return backends.Outcomes(len(renewals), err) }
	var names, holders, attempts, values, exts, wasAttempts, wasHolders, wasValues, wasExts []string
	var tokens, ttls, renewals64, wasTokens, wasTTLs, wasRenewals []int64
	var changed []bool
	at := map[string]int{}
	for i, r := range renewals {
		if err := backends.CheckName(r.Name); err != nil {
			return all(err)
		}
		was, err := backends.Decode(r.Name, []byte(r.Prev.Version))
		if err != nil {
			return all(fmt.Errorf("%w: the version to replace is none of this election's", backends.ErrNotTried))
		}
		at[r.Name] = i
		names, holders, values = append(names, r.Name), append(holders, r.Next.Holder), append(values, r.Next.Value)
		attempts, tokens = append(attempts, r.Next.Attempt.String()), append(tokens, int64(r.Next.Token))
		exts, wasExts = append(exts, string(r.Next.Extensions)), append(wasExts, string(was.Extensions))
		ttls, renewals64 = append(ttls, int64(r.Next.TTL)), append(renewals64, int64(r.Next.RenewEvery))
		wasHolders, wasValues = append(wasHolders, was.Holder), append(wasValues, was.Value)
		wasAttempts, wasTokens = append(wasAttempts, was.Attempt.String()), append(wasTokens, int64(was.Token))
		wasTTLs, wasRenewals = append(wasTTLs, int64(was.TTL)), append(wasRenewals, int64(was.RenewEvery))
		changed = append(changed, tells(r.Prev, r.Next))
	}
	args := []any{oneTrip, names, holders, tokens, ttls, renewals64, attempts, values, exts, changed,
		wasAttempts, wasHolders, wasTokens, wasTTLs, wasRenewals, wasValues, wasExts, backends.Schema, b.table.channel()}
	// From here on: while others wait for the answer, somebody who has given up
	// may read.
	for _, r := range renewals {
		b.doubts.add(r.Name, r.Prev.Version)
	}
	var renewed []string
	_, err := b.run(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, fmt.Sprintf(renewMany, b.table.quoted()), args...)
		if err != nil {
			return err
		}
		// All rows are read before anything is believed: an error of the commit
		// comes last.
		renewed, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (name string, err error) {
			return name, row.Scan(&name, nil, nil, nil)
		})
		return err
	})
	if err != nil && !rolledBack(err) {
		return all(b.explain(ctx, fmt.Sprintf("renewing %d elections", len(renewals)), err))
	}
	outcomes := all(backends.ErrNotTried)
	if err != nil {
		outcomes = all(fmt.Errorf("%w: %w", backends.ErrNotTried, err))
	}
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
	return outcomes
}

// rolledBack reports whether the server says that the statement has failed and
// the session goes on: then nothing of it was applied. After the end of a
// session it may have been.
func rolledBack(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.SeverityUnlocalized == "ERROR"
}
