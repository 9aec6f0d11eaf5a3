package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
)

// settings are the variables of a server that decide what it may lose. Those of
// semi-synchronous replication have two names each.
const settings = "show variables where variable_name in ('version', 'innodb_flush_log_at_trx_commit', 'innodb_doublewrite', 'log_bin', 'sync_binlog', 'wait_timeout'," +
	" 'rpl_semi_sync_master_enabled', 'rpl_semi_sync_master_wait_point', 'rpl_semi_sync_source_enabled', 'rpl_semi_sync_source_wait_point')"

// pairs returns names, in lower case, and values.
func pairs(ctx context.Context, c *sql.Conn, statement string) (map[string]string, error) {
	rows, err := c.QueryContext(ctx, statement)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		all[strings.Replace(strings.ToLower(name), "_source_", "_master_", 1)] = value
	}
	return all, rows.Err()
}

// warned has the stores about which this process has warned.
var warned sync.Map

// warn logs, once for each store, what may lose writes and that Open does not refuse.
func (b *Backend) warn(ctx context.Context) error {
	return b.do(ctx, func(c *sql.Conn) error {
		is, err := pairs(ctx, c, settings)
		if err != nil {
			return err
		}
		for _, f := range []backends.Finding{commits(is), replication(is, 0)} {
			if _, known := warned.LoadOrStore(b.base.Store()+f.What, true); f.Fix != "" && !known {
				slog.Warn("elector: "+f.Fix, "found", f.Seen, "store", b.base.Store())
			}
		}
		return nil
	})
}

// commits looks at what a crash of the machine may lose.
func commits(is map[string]string) backends.Finding {
	f := backends.Finding{What: "commits", Seen: fmt.Sprintf("innodb_flush_log_at_trx_commit = %s, innodb_doublewrite = %s, log_bin = %s, sync_binlog = %s",
		is["innodb_flush_log_at_trx_commit"], is["innodb_doublewrite"], is["log_bin"], is["sync_binlog"])}
	switch {
	case is["innodb_flush_log_at_trx_commit"] != "1":
		f.Fix = "set innodb_flush_log_at_trx_commit = 1: otherwise a crash of the machine loses acknowledged writes, and there can be two leaders"
		f.Err = backends.ErrMisconfigured
	case on(is["log_bin"]) && is["sync_binlog"] != "1":
		f.Fix = "set sync_binlog = 1: otherwise a crash of the machine can lose what replicas and the server itself recover from"
	}
	return f
}

// replication looks at what a failover may lose.
func replication(is map[string]string, replicas int) backends.Finding {
	semi, point := on(is["rpl_semi_sync_master_enabled"]), is["rpl_semi_sync_master_wait_point"]
	f := backends.Finding{What: "replication", Seen: fmt.Sprintf("%d replicas seen, asynchronous", replicas)}
	if semi {
		f.Seen = fmt.Sprintf("%d replicas seen, semi-synchronous, wait point %s", replicas, point)
	}
	switch {
	case semi && !strings.EqualFold(point, "AFTER_SYNC"):
		f.Fix = "set the wait point of semi-synchronous replication to AFTER_SYNC: otherwise others read a write before a replica has it, and a failover can lose it"
	case !semi && replicas > 0:
		f.Fix = "use semi-synchronous replication with AFTER_SYNC: otherwise a failover loses acknowledged writes, and there can be two leaders; or promote no replica while the old primary may still be reachable"
	}
	return f
}

// Inspect implements [backends.Inspector]. It looks at how the server syncs and
// replicates commits, at TLS, at the user's privileges and at the clock. It sees
// the replicas only with the privilege PROCESS.
func (b *Backend) Inspect(ctx context.Context, ttl time.Duration) (backends.Inspection, error) {
	return b.base.Inspect(ctx, func(ctx context.Context) (i backends.Inspection, err error) {
		err = b.do(ctx, func(c *sql.Conn) error {
			is, err := pairs(ctx, c, settings)
			if err != nil {
				return err
			}
			var replicas int
			var seconds float64
			if err := c.QueryRowContext(ctx, "select (select count(*) from information_schema.processlist where command like 'Binlog Dump%'), unix_timestamp(now(6))").Scan(&replicas, &seconds); err != nil {
				return err
			}
			// Only those with the privilege TRIGGER see them.
			triggers, err := list(ctx, c, "select trigger_name from information_schema.triggers where event_object_schema = ? and event_object_table = ? order by 1", b.table[0], b.table[1])
			if err != nil {
				return err
			}
			session, err := pairs(ctx, c, "show session status like 'Ssl_cipher'")
			if err != nil {
				return err
			}
			grants, err := list(ctx, c, "show grants")
			if err != nil {
				return err
			}
			i.Clock = time.UnixMicro(int64(seconds * 1e6))
			i.Findings = []backends.Finding{{What: "server", Seen: is["version"]}, commits(is), replication(is, replicas), b.encryption(session["ssl_cipher"]), privileges(grants)}
			if len(triggers) > 0 {
				i.Findings = append(i.Findings, backends.Finding{What: "triggers", Seen: "table " + b.table.quoted() + " has " + strings.Join(triggers, ", "),
					Fix: "drop them: what changes or refuses a write makes an election lose its leases, or have no leader", Err: backends.ErrMisconfigured})
			}
			if idle, err := time.ParseDuration(is["wait_timeout"] + "s"); err == nil && idle < ttl/3 {
				i.Findings = append(i.Findings, backends.Finding{What: "wait_timeout", Seen: idle.String(),
					Fix: "raise it above the TTL: otherwise connections end between two renewals, and each renewal has to make a new one"})
			}
			return nil
		})
		return i, err
	})
}

// encryption looks at whether the password may go to another server.
func (b *Backend) encryption(cipher string) backends.Finding {
	f := backends.Finding{What: "TLS", Seen: cmp.Or(cipher, "none")}
	if b.exposed {
		f.Seen += "; the server's certificate is not checked"
		f.Fix = "use mysqls://: otherwise another server can pass for this one, and read what crosses the network"
	}
	return f
}

// privileges looks for those with which a write succeeds on a server that is read-only.
func privileges(grants []string) backends.Finding {
	f := backends.Finding{What: "privileges", Seen: fmt.Sprintf("%d grants", len(grants))}
	for _, grant := range grants {
		rights, _, _ := strings.Cut(strings.ToUpper(grant), " ON ")
		for _, right := range []string{"ALL PRIVILEGES", "SUPER", "READ_ONLY ADMIN", "READ ONLY ADMIN", "CONNECTION_ADMIN"} {
			if strings.Contains(rights, right) && strings.Contains(strings.ToUpper(grant), " ON *.* ") {
				f.Seen = right
				f.Fix = "use an account without this privilege: it lets a leader write on a primary that was made read-only for a failover"
			}
		}
	}
	return f
}
