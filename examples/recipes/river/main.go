// River inserts jobs of github.com/riverqueue/river from one process of many: the
// reader of a feed, whose position and jobs are in the same database. In two terminals,
// with a PostgreSQL that has River's tables and the one below:
//
//	POSTGRES_URL=postgres://user:password@localhost/database go run ./river
//
//	create table feed (position bigint not null); insert into feed values (0)
//
// Each entry becomes exactly one job. The job and the new position are committed
// together, and only while no other process has led since: PostgreSQL refuses the
// transaction of a leader that was paused.
//
// River's periodic jobs need no other election. River v0.51.1 elects a leader in the
// database, among all clients of a schema, that enqueues them and does the maintenance
// (internal/leadership/doc.go; periodic_job.go): leave that on. This recipe is for a
// singleton of your own that feeds River.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/postgres"
)

// An Entry is a job: one entry of the feed.
type Entry struct {
	Position int64 `json:"position"`
}

// Kind implements river.JobArgs.
func (Entry) Kind() string { return "entry" }

// next makes the next entry of the feed a job.
func next(ctx context.Context, pool *pgxpool.Pool, jobs *river.Client[pgx.Tx], lease backends.Lease) error {
	return postgres.Transact(ctx, pool, lease, func(tx pgx.Tx) error {
		var e Entry
		if err := tx.QueryRow(ctx, "update feed set position = position + 1 returning position").Scan(&e.Position); err != nil {
			return err
		}
		_, err := jobs.InsertTx(ctx, tx, e, nil)
		return err
	})
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv("POSTGRES_URL")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	jobs, err := river.NewClient(riverpgxv5.New(pool), &river.Config{}) // inserts only
	if err != nil {
		return err
	}
	e, err := elector.Open(ctx, creating(url), "feed", nil)
	if err != nil {
		return err
	}
	err = e.Run(ctx, func(ctx context.Context, lease *elector.Lease) error {
		for ctx.Err() == nil {
			if err := next(ctx, pool, jobs, lease); err != nil && ctx.Err() == nil {
				return err
			}
			select { // until the feed has another entry
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
		return nil
	})
	return errors.Join(err, e.Close())
}

// creating is the URL of the elections in a database. Their table is created if it is
// missing, as one start of a service does; the others leave that out.
func creating(url string) string {
	if strings.Contains(url, "?") {
		return url + "&create=true"
	}
	return url + "?create=true"
}
