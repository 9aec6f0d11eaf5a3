package stores

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/postgres"
)

// A mortal backend answers no more once its process is dead.
type mortal struct {
	backends.Backend
	dead chan struct{}
}

func (m mortal) Unwrap() backends.Backend { return m.Backend }

func (m mortal) Load(ctx context.Context, name string) (backends.Record, error) {
	m.wait(ctx)
	return m.Backend.Load(ctx, name)
}

func (m mortal) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	m.wait(ctx)
	return m.Backend.Swap(ctx, name, prev, next)
}

func (m mortal) wait(ctx context.Context) {
	select {
	case <-m.dead:
		<-ctx.Done()
	default:
	}
}

// A leader that is stopped in a guarded transaction, guard included, holds its
// successor up no longer than one that crashes, and then its rows neither. Both
// happen side by side, and the server's clock counts from the death of all, whenever each
// has last renewed, to the takeover.
func TestPostgresSuccessor(t *testing.T) {
	const rounds = 3
	l := beside(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l.exec(`create table history (election text, token bigint, at timestamptz);
		create function note() returns trigger language plpgsql as 'begin insert into history values (new.name, new.token, clock_timestamp()); return null; end';
		create trigger note after insert or update on elector for each row execute function note();
		create table data (election text primary key, writer text)`)
	write := func(lease *elector.Lease, writer string, then func(pgx.Tx) error) error {
		return postgres.Transact(ctx, l.pool, lease, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "insert into data values ($1, $2) on conflict (election) do update set writer = $2", lease.Election(), writer)
			return errors.Join(err, then(tx))
		})
	}
	campaign := func(b backends.Backend, election, id string) (*elector.Lease, error) {
		e, err := elector.New(b, election, &elector.Options{ID: id, TTL: 2 * time.Second, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { e.Close() })
		return e.Campaign(ctx)
	}
	dead, thawed := make(chan struct{}), make(chan struct{})
	var stopping, ended, successors sync.WaitGroup
	defer ended.Wait()
	thaw := sync.OnceFunc(func() { close(thawed) })
	defer thaw()
	var stopped, crashed []string
	for i := range rounds {
		stopped, crashed = append(stopped, fmt.Sprint("stopped-", i)), append(crashed, fmt.Sprint("crashed-", i))
	}
	for _, election := range slices.Concat(stopped, crashed) {
		lease, err := campaign(mortal{l.b, dead}, election, "first")
		must(t, err)
		if slices.Contains(crashed, election) {
			continue
		}
		stopping.Add(1)
		ended.Go(func() {
			stops := sync.OnceFunc(stopping.Done)
			defer stops()
			err := write(lease, "first", func(tx pgx.Tx) error {
				defer func() { <-thawed }()
				defer stops()
				statement, err := postgres.Guard(lease)
				if err != nil {
					return err
				}
				_, err = tx.Exec(ctx, statement)
				return err
			})
			if !errors.Is(err, elector.ErrLost) {
				t.Errorf("the leader of %s goes on with %v", election, err)
			}
		})
	}
	stopping.Wait()
	close(dead)
	var died time.Time
	must(t, l.pool.QueryRow(ctx, "select clock_timestamp()").Scan(&died))
	for _, election := range slices.Concat(stopped, crashed) {
		successors.Go(func() {
			lease, err := campaign(l.b, election, "second")
			if err == nil {
				err = write(lease, "second", func(pgx.Tx) error { return nil })
			}
			if err != nil {
				t.Errorf("the successor in %s: %v", election, err)
			}
		})
	}
	successors.Wait()
	thaw()
	ended.Wait()

	median := func(elections []string) (d time.Duration) {
		must(t, l.pool.QueryRow(ctx, `select percentile_disc(0.5) within group (order by gap) from (
			select min(at) filter (where token > least) - $2 as gap
			from (select *, min(token) over (partition by election) as least from history where election = any($1)) as h group by election) as g`, elections, died).Scan(&d))
		return d
	}
	after, afterCrash := median(stopped), median(crashed)
	t.Logf("from the death to the takeover: %v after a stop, %v after a crash", after, afterCrash)
	if after > afterCrash*6/5 {
		t.Errorf("a stopped leader holds its successor up for %v, a crashed one for %v", after, afterCrash)
	}
	var writers []string
	must(t, l.pool.QueryRow(ctx, "select array(select distinct writer from data)").Scan(&writers))
	if !slices.Equal(writers, []string{"second"}) {
		t.Errorf("the last writers are %q", writers)
	}
}
