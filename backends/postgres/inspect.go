package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/elector-go/elector/backends"
)

// The clock is not in pg_catalog's name space here, so that a test can replace it.
const settings = `select current_setting('server_version'), current_setting('fsync'), current_setting('full_page_writes'),
	current_setting('synchronous_commit'), current_setting('synchronous_standby_names'), current_setting('autovacuum'),
	(select count(*) from pg_stat_replication where state is distinct from 'backup'), extract(epoch from clock_timestamp())::float8,
	coalesce((select 'autovacuum_enabled=false' = any(reloptions) from pg_class where oid = to_regclass($1)), false),
	coalesce((select string_agg(tgname, ', ' order by tgname) from pg_trigger where tgrelid = to_regclass($1) and not tgisinternal and tgenabled <> 'D'), ''),
	coalesce((select string_agg(rulename, ', ' order by rulename) from pg_rewrite where ev_class = to_regclass($1)), ''),
	extract(epoch from coalesce(nullif(current_setting('idle_session_timeout', true), ''), '0')::interval)::float8,
	extract(epoch from current_setting('statement_timeout')::interval)::float8,
	(select count(*) from pg_stat_activity where backend_type = 'client backend')::int, current_setting('max_connections')::int`

// Inspect implements [backends.Inspector]. It looks at how the server syncs and
// replicates commits, at autovacuum, at what changes writes to the table, at timeouts and
// connections, and at the clock.
func (b *Backend) Inspect(ctx context.Context, ttl time.Duration) (backends.Inspection, error) {
	return b.base.Inspect(ctx, func(ctx context.Context) (i backends.Inspection, err error) {
		if b.like != "" {
			return b.inspectPlain(ctx)
		}
		var version, fsync, pages, commit, standbys, vacuum, triggers, rules string
		var unvacuumed bool
		var replicas, sessions, most int
		var seconds, idle, statement float64
		_, err = b.queryRow(ctx, settings, []any{b.table.quoted()}, &version, &fsync, &pages, &commit, &standbys, &vacuum, &replicas, &seconds,
			&unvacuumed, &triggers, &rules, &idle, &statement, &sessions, &most)
		if err != nil {
			return i, err
		}
		i.Clock = time.UnixMicro(int64(seconds * 1e6))
		sync := backends.Finding{What: "commits", Seen: fmt.Sprintf("fsync = %s, full_page_writes = %s, synchronous_commit = %s (elections commit with on, or what is stricter)", fsync, pages, commit)}
		if fsync != "on" || pages != "on" {
			sync.Fix = "set fsync = on and full_page_writes = on: otherwise a crash of the machine loses acknowledged writes, and there can be two leaders"
			sync.Err = backends.ErrMisconfigured
		}
		replication := backends.Finding{What: "replication", Seen: fmt.Sprintf("%d standbys, synchronous_standby_names = '%s'", replicas, standbys)}
		switch {
		case replicas == 0 && standbys != "":
			replication.Seen += ": no standby is connected"
			replication.Fix, replication.Err = "start the standby, or take it out of synchronous_standby_names: until then each write waits for it, and no process leads", backends.ErrUnavailable
		case replicas > 0 && standbys == "":
			replication.Fix = "set synchronous_standby_names: otherwise a failover loses acknowledged writes, and there can be two leaders; or promote no standby while the old primary may still be reachable"
		}
		i.Findings = []backends.Finding{{What: "server", Seen: "PostgreSQL " + version}, sync, replication, b.vacuuming(vacuum, unvacuumed)}
		if triggers != "" || rules != "" {
			i.Findings = append(i.Findings, backends.Finding{What: "triggers", Seen: "table " + b.table.quoted() + " has " + strings.Trim(triggers+", "+rules, ", "),
				Fix: "drop them: what changes or swallows a write makes an election lose its leases, or have no leader", Err: backends.ErrMisconfigured})
		}
		if !b.guarded {
			i.Findings = append(i.Findings, backends.Finding{What: "guards", Seen: "table " + b.table.quoted() + " has no unique index on name and token",
				Fix: "run " + b.table.indexSQL() + ", and restart the processes: until then Transact and Guard are refused"})
		}
		every := (ttl - ttl/10) / 3
		i.Findings = append(i.Findings,
			lasting("idle_session_timeout", idle, ttl, "raise it above the TTL, or set it to 0, for this role: a waiter's connections end between two reads, and its notifications are lost"),
			lasting("statement_timeout", statement, every/2, "raise it above half a renewal interval, or set it to 0, for this role: renewals that would succeed are broken off"),
			connections(sessions, most))
		return i, nil
	})
}

func (b *Backend) vacuuming(server string, table bool) backends.Finding {
	f := backends.Finding{What: "autovacuum", Seen: server}
	switch {
	case server != "on":
		f.Fix = "set autovacuum = on: each renewal leaves a dead row, and the table grows without end"
	case table:
		f.Seen = "on, but off for table " + b.table.quoted()
		f.Fix = "run alter table " + b.table.quoted() + " reset (autovacuum_enabled): each renewal leaves a dead row, and the table grows without end"
	}
	return f
}

// lasting looks at a timeout of the server, in seconds, 0 if there is none.
func lasting(name string, seconds float64, least time.Duration, fix string) backends.Finding {
	is := time.Duration(seconds * float64(time.Second))
	f := backends.Finding{What: name, Seen: is.String()}
	if is == 0 {
		f.Seen = "none"
	} else if is < least {
		f.Fix = fix
	}
	return f
}

func connections(sessions, most int) backends.Finding {
	f := backends.Finding{What: "connections", Seen: fmt.Sprintf("%d of %d are in use", sessions, most)}
	if sessions >= most*9/10 {
		f.Fix = "raise max_connections, or use a pooler for other programs: a candidate that finds no connection cannot renew"
	}
	return f
}
