//go:build mysql

package storms

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/mysql"
	"github.com/elector-go/elector/fence/fencesql"
	"github.com/elector-go/elector/internal/proof/stores"
)

// The data: each row is a guarded write, or an acquisition that a trigger notes. Both get
// their numbers while their transactions are open, so a write that stands after a newer
// acquisition met it: its guard had to wait, and then to refuse.
const journal = "create table journal (position bigint auto_increment primary key, election varbinary(255) not null, token bigint not null, acquired bool not null)"

var triggers = []string{
	"create trigger created after insert on elector for each row insert into journal (election, token, acquired) values (new.name, new.token, true)",
	"create trigger acquired after update on elector for each row begin if old.token <> new.token then insert into journal (election, token, acquired) values (new.name, new.token, true); end if; end",
}

func TestMySQL(t *testing.T) {
	server := start(t, stores.MySQL)
	config, err := gomysql.ParseDSN(server.MySQLName())
	must(t, err)
	config.InterpolateParams = true
	connector, err := gomysql.NewConnector(config)
	must(t, err)
	db := sql.OpenDB(connector)
	db.SetMaxIdleConns(20)
	t.Cleanup(func() { db.Close() })
	backend := func() backends.Backend {
		b, err := mysql.New(t.Context(), config, &mysql.Options{Create: true})
		must(t, err)
		t.Cleanup(func() { b.Close() })
		return b
	}
	var deadlocks atomic.Int32
	handles := []backends.Backend{backend(), backend(), backend()}
	must(t, server.MySQLExec(t.Context(), append([]string{journal}, triggers...)...))
	storm := func(name string, write func(context.Context, *Attempt) error) Storm {
		return Storm{Handles: handles, Election: name, Every: 25 * time.Millisecond, Pause: 40 * time.Millisecond, Seed: 1, Write: write,
			Order: func(ctx context.Context) (acquisitions, writes []Mark, err error) {
				rows, err := db.QueryContext(ctx, "select token, position, acquired from journal where election = ?", name)
				if err != nil {
					return nil, nil, err
				}
				defer rows.Close()
				for rows.Next() {
					var m Mark
					var acquired bool
					if err := rows.Scan(&m.Token, &m.Position, &acquired); err != nil {
						return nil, nil, err
					}
					if acquired {
						acquisitions = append(acquisitions, m)
					} else {
						writes = append(writes, m)
					}
				}
				return acquisitions, writes, rows.Err()
			}}
	}
	write := func(ctx context.Context, tx *sql.Tx, a *Attempt) error {
		_, err := tx.ExecContext(ctx, "insert into journal (election, token, acquired) values (?, ?, false)", a.Election, a.Token)
		return err
	}
	// transaction runs a guard, the write and the commit. Its pauses are before it
	// too: writers that always hold a lock between them let no acquisition through.
	transaction := func(level sql.IsolationLevel, guard func(context.Context, *sql.Tx, *Attempt) error) func(context.Context, *Attempt) error {
		return func(ctx context.Context, a *Attempt) error {
			a.Pause()
			tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: level})
			if err != nil {
				return err
			}
			defer tx.Rollback()
			if err := guard(ctx, tx, a); err != nil {
				return err
			}
			a.Pause()
			if err := write(ctx, tx, a); err != nil {
				return err
			}
			a.Send()
			return tx.Commit()
		}
	}
	// again repeats what was rolled back because of a deadlock. MariaDB locks the gap before
	// an index entry too, but at READ COMMITTED: a guard that waits for an acquisition is
	// then in its way.
	again := func(write func(context.Context, *Attempt) error) func(context.Context, *Attempt) error {
		return func(ctx context.Context, a *Attempt) error {
			for {
				err := write(ctx, a)
				if e := (*gomysql.MySQLError)(nil); !errors.As(err, &e) || e.Number != 1213 {
					return err
				}
				deadlocks.Add(1)
			}
		}
	}
	guarded := func(ctx context.Context, tx *sql.Tx, a *Attempt) error {
		guard, err := mysql.Guard(a)
		if err != nil {
			return err
		}
		if _, err = tx.ExecContext(ctx, guard); mysql.Refused(err) {
			return backends.ErrStale
		}
		return err
	}
	looks := func(ctx context.Context, tx *sql.Tx, a *Attempt) error {
		var found int
		err := tx.QueryRowContext(ctx, "select count(*) from elector where name = ? and token = ? and holder <> ''", a.Election, a.Token).Scan(&found)
		if err == nil && found == 0 {
			return backends.ErrStale
		}
		return err
	}

	pass(t, storm("transact", again(func(ctx context.Context, a *Attempt) error {
		return mysql.Transact(ctx, db, a, func(tx *sql.Tx) error {
			err := write(ctx, tx, a)
			a.Pause()
			a.Send()
			return err
		})
	})))
	for name, level := range map[string]sql.IsolationLevel{"read-committed": sql.LevelReadCommitted, "repeatable-read": sql.LevelRepeatableRead, "serializable": sql.LevelSerializable} {
		pass(t, storm("guard-first-"+name, again(transaction(level, guarded))))
		if level != sql.LevelSerializable { // where every read locks the row, and renewals wait
			caught(t, storm("plain-select-"+name, transaction(level, looks)), late)
		}
	}
	table, err := fencesql.New(fencesql.MySQL, "fences")
	must(t, err)
	must(t, server.MySQLExec(t.Context(), table.CreateSQL()))
	// At READ COMMITTED MariaDB locks no gaps, so no acquisition or release is what it
	// rolls back because of a deadlock with a guard.
	must(t, server.MySQLExec(t.Context(), "set global transaction isolation level read committed"))
	committed := sql.OpenDB(connector)
	committed.SetMaxIdleConns(20)
	t.Cleanup(func() { committed.Close() })
	fenced := func(name string, under func(backends.Lease) backends.Lease) Storm {
		return storm(name, again(func(ctx context.Context, a *Attempt) error {
			a.Pause()
			return table.Transact(ctx, committed, under(a), func(tx *sql.Tx) error {
				err := write(ctx, tx, a)
				a.Pause()
				a.Send()
				return err
			})
		}))
	}
	itself := func(l backends.Lease) backends.Lease { return l }
	alone := func(l backends.Lease) backends.Lease { return unguarded{l} }
	admitted := func(s Storm, under func(backends.Lease) backends.Lease) Storm {
		s.Acquired = func(ctx context.Context, l backends.Lease) error {
			return again(func(ctx context.Context, _ *Attempt) error {
				return table.Transact(ctx, committed, under(l), func(*sql.Tx) error { return nil })
			})(ctx, nil)
		}
		return s
	}
	pass(t, fenced("sql-at-home", itself))
	pass(t, admitted(fenced("sql-at-home-admitted", itself), itself))
	// The token alone refuses older ones from its entry on, which is not the acquisition
	// that the triggers note.
	token := admitted(fenced("sql-token-alone-admitted", alone), alone)
	token.Order = nil
	pass(t, token)
	caught(t, fenced("sql-token-alone", alone), late)
	t.Logf("%d writes were rolled back because of a deadlock, and repeated", deadlocks.Load())
}
