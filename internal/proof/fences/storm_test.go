package fences

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/fence/fencesql"
)

// A storm has leaders that follow each other, and writers of the last three that
// are paused. Each write is a transaction that enters, reads a balance, and writes
// the balance and a line to a journal.
type storm struct {
	database
	isolation sql.IsolationLevel
	// transact makes a transaction whose work is fenced.
	transact func(ctx context.Context, token elector.Token, work func(*sql.Tx) error) error

	mutex                             sync.Mutex
	leader, commits, refusals, begins int
	by                                int // commits of the present leader
}

const (
	leaders = 30
	writers = 6
	each    = 5 // commits of a leader
)

// run makes the storm, and returns how many lines of the journal stand after one
// with a higher token, and how many writes another one has overwritten unseen.
func (s *storm) run(t *testing.T) (regressions, lost int) {
	t.Helper()
	for _, statement := range []string{
		"drop table if exists journal", "drop table if exists account", "delete from fences",
		"create table journal (id " + s.serial + " primary key, token bigint not null)",
		"create table account (balance bigint not null)",
		"insert into account values (0)",
	} {
		s.exec(t, statement)
	}
	s.leader = 1
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for {
				token, ok := s.choose(random)
				if !ok || ctx.Err() != nil {
					return
				}
				if err := s.write(ctx, token, random); err != nil {
					cancel(fmt.Errorf("a write with token %d: %w", token, err))
				}
			}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		t.Fatal(context.Cause(ctx))
	}
	regressions, lost = s.judge(t)
	t.Logf("%v: %d leaders: %d transactions, %d committed, %d refused; %d out of order, %d overwritten",
		s.isolation, leaders, s.begins, s.commits, s.refusals, regressions, lost)
	return regressions, lost
}

// choose returns the token of one of the last three leaders.
func (s *storm) choose(random *rand.Rand) (elector.Token, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.begins++
	return elector.Token(max(1, s.leader-random.IntN(3))), s.leader <= leaders
}

func pause(random *rand.Rand) {
	if random.IntN(2) == 0 {
		time.Sleep(time.Duration(random.Int64N(int64(10 * time.Millisecond))))
	}
}

// write makes a transaction, and makes it again if the database asks for that.
func (s *storm) write(ctx context.Context, token elector.Token, random *rand.Rand) error {
	pause(random)
	for {
		err := s.transact(ctx, token, func(tx *sql.Tx) error { return s.work(ctx, tx, token, random) })
		if err != nil && s.again(err) {
			continue
		}
		s.mutex.Lock()
		defer s.mutex.Unlock()
		switch {
		case errors.Is(err, elector.ErrStale):
			s.refusals++
			return nil
		case err != nil:
			return err
		}
		s.commits++
		if int(token) == s.leader {
			if s.by++; s.by == each {
				s.leader, s.by = s.leader+1, 0
			}
		}
		return nil
	}
}

// entering returns a transact that enters with a function, before the work or after it.
func (s *storm) entering(enter func(ctx context.Context, tx *sql.Tx, token elector.Token) error, after bool) func(context.Context, elector.Token, func(*sql.Tx) error) error {
	return func(ctx context.Context, token elector.Token, work func(*sql.Tx) error) error {
		tx, err := s.BeginTx(ctx, &sql.TxOptions{Isolation: s.isolation})
		if err != nil {
			return err
		}
		defer tx.Rollback() // does nothing after a commit
		first, second := func() error { return enter(ctx, tx, token) }, func() error { return work(tx) }
		if after {
			first, second = second, first
		}
		if err := first(); err != nil {
			return err
		}
		if err := second(); err != nil {
			return err
		}
		return tx.Commit()
	}
}

// work reads the balance, and writes it and a line to the journal.
func (s *storm) work(ctx context.Context, tx *sql.Tx, token elector.Token, random *rand.Rand) error {
	var balance int
	if err := tx.QueryRowContext(ctx, "select balance from account").Scan(&balance); err != nil {
		return err
	}
	pause(random)
	for _, statement := range []string{
		fmt.Sprintf("insert into journal (token) values (%d)", token),
		fmt.Sprintf("update account set balance = %d", balance+1),
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func (s *storm) judge(t *testing.T) (regressions, lost int) {
	t.Helper()
	rows, err := s.QueryContext(t.Context(), "select token from journal order by id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	lines := 0
	var highest elector.Token
	for rows.Next() {
		var token elector.Token
		if err := rows.Scan(&token); err != nil {
			t.Fatal(err)
		}
		if token < highest {
			regressions++
		}
		highest = max(highest, token)
		lines++
	}
	var balance int
	if err := errors.Join(rows.Err(), s.QueryRowContext(t.Context(), "select balance from account").Scan(&balance)); err != nil {
		t.Fatal(err)
	}
	if lines != s.commits {
		t.Errorf("the journal has %d lines of %d commits", lines, s.commits)
	}
	return regressions, s.commits - balance
}

// Every transaction that commits comes after all with lower tokens and sees what
// they wrote, at each isolation level. The storm sees it when a fence looks at the
// highest token first and raises it then.
func TestStorm(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		table := d.table(t, "fences")
		enter := func(ctx context.Context, tx *sql.Tx, token elector.Token) error {
			return table.Enter(ctx, tx, "ledger", token)
		}
		pass := func(s *storm) {
			t.Helper()
			if regressions, lost := s.run(t); regressions > 0 || lost != 0 || s.refusals == 0 {
				t.Errorf("%v: %d of %d lines out of order, %d overwritten, %d refused", s.isolation, regressions, s.commits, lost, s.refusals)
			}
		}
		for _, isolation := range d.isolations {
			s := &storm{database: d, isolation: isolation}
			s.transact = s.entering(enter, false)
			pass(s)
		}
		pass(&storm{database: d, transact: func(ctx context.Context, token elector.Token, work func(*sql.Tx) error) error {
			return table.Transact(ctx, d.DB, elsewhere(token), work)
		}})
		if d.dialect == fencesql.SQLite {
			return // whose one writer lets no other come between its read and its write
		}
		d.exec(t, "create table broken (token bigint not null)")
		d.exec(t, "insert into broken values (0)")
		s := &storm{database: d, isolation: sql.LevelReadCommitted}
		s.transact = s.entering(lookThenRaise, false)
		if regressions, _ := s.run(t); regressions == 0 {
			t.Error("the storm has not seen that a fence looks before it raises")
		}
		s = &storm{database: d, isolation: sql.LevelReadCommitted}
		s.transact = s.entering(enter, true)
		if _, lost := s.run(t); lost == 0 {
			t.Error("the storm has not seen that leaders read before they enter")
		}
	})
}

// elsewhere is a lease of an election on a store that is no SQL database.
func elsewhere(token elector.Token) lease {
	return lease{backends.Acquisition{Backend: memory.New(), Election: "ledger", Remaining: time.Minute,
		Record: backends.Record{Holder: "a", Token: uint64(token), Attempt: backends.Attempt{Nonce: token.String(), Sequence: 1}}}, nil}
}

func lookThenRaise(ctx context.Context, tx *sql.Tx, token elector.Token) error {
	var highest int64
	if err := tx.QueryRowContext(ctx, "select token from broken").Scan(&highest); err != nil {
		return err
	}
	if highest > int64(token) {
		return elector.ErrStale
	}
	time.Sleep(rand.N(10 * time.Millisecond))
	_, err := tx.ExecContext(ctx, fmt.Sprintf("update broken set token = %d", token))
	return err
}
