package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/elector-go/elector/backends"
)

// The clock is not in pg_catalog's name space here, so that a test can replace it.
const settings = `select current_setting('server_version'), current_setting('fsync'), current_setting('full_page_writes'),
	current_setting('synchronous_commit'), current_setting('synchronous_standby_names'), current_setting('autovacuum'),
	(select count(*) from pg_stat_replication where state is distinct from 'backup'), extract(epoch from clock_timestamp())::float8`

// Inspect implements [backends.Inspector]. It looks at how the server syncs and
// replicates commits, at autovacuum, and at the clock.
func (b *Backend) Inspect(ctx context.Context, _ time.Duration) (backends.Inspection, error) {
	return b.handle.Inspect(ctx, func(ctx context.Context) (i backends.Inspection, err error) {
		var version, fsync, pages, commit, standbys, vacuum string
		var replicas int
		var seconds float64
		if _, err := b.queryRow(ctx, settings, nil, &version, &fsync, &pages, &commit, &standbys, &vacuum, &replicas, &seconds); err != nil {
			return i, err
		}
		i.Clock = time.UnixMicro(int64(seconds * 1e6))
		sync := backends.Finding{What: "commits", Seen: fmt.Sprintf("fsync = %s, full_page_writes = %s, synchronous_commit = %s (elections commit with on, or what is stricter)", fsync, pages, commit)}
		if fsync != "on" || pages != "on" {
			sync.Fix = "set fsync = on and full_page_writes = on: otherwise a crash of the machine loses acknowledged writes, and there can be two leaders"
			sync.Err = backends.ErrMisconfigured
		}
		replication := backends.Finding{What: "replication", Seen: fmt.Sprintf("%d standbys, synchronous_standby_names = '%s'", replicas, standbys)}
		if replicas > 0 && standbys == "" {
			replication.Fix = "set synchronous_standby_names: otherwise a failover loses acknowledged writes, and there can be two leaders; or promote no standby while the old primary may still be reachable"
		}
		vacuuming := backends.Finding{What: "autovacuum", Seen: vacuum}
		if vacuum != "on" {
			vacuuming.Fix = "set autovacuum = on: each renewal leaves a dead row, and the table grows without end"
		}
		i.Findings = []backends.Finding{{What: "server", Seen: "PostgreSQL " + version}, sync, replication, vacuuming}
		return i, nil
	})
}
