package fences

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/fence/fencesql"
)

// write makes a transaction that only enters.
func write(ctx context.Context, db *sql.DB, table *fencesql.Table, resource string, token elector.Token, commit bool) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after a commit
	if err := table.Enter(ctx, tx, resource, token); err != nil || !commit {
		return err
	}
	return tx.Commit()
}

func TestTable(t *testing.T) {
	test := func(t *testing.T, d database) {
		table := d.table(t, "fences")
		long := strings.Repeat("é", 127)
		for i, c := range []struct {
			resource string
			token    elector.Token
			commit   bool
			highest  elector.Token // of a refusal
		}{
			{"ledger", 5, true, 0},
			{"ledger", 5, true, 0}, // another write of the same leader
			{"ledger", 5, true, 0},
			{"ledger", 4, true, 5},
			{"ledger", 9, false, 0}, // is forgotten with its transaction
			{"ledger", 6, true, 0},
			{"ledger", 5, true, 6},
			{"Ledger", 1, true, 0}, // names differ by case, spaces and accents
			{"ledger ", 1, true, 0},
			{"lédger", 1, true, 0},
			{"", 1, true, 0},
			{long, 2, true, 0},
			{long, 1, true, 2},
			{long + "x", 1, true, 0},
			{"ledger", elector.MaxToken, true, 0},
			{"ledger", elector.MaxToken - 1, true, elector.MaxToken},
		} {
			err := write(t.Context(), d.DB, table, c.resource, c.token, c.commit)
			var stale *elector.StaleError
			if c.highest == 0 && err != nil {
				t.Errorf("%d: %q with token %d: %v", i, c.resource, c.token, err)
			}
			if c.highest > 0 && (!errors.As(err, &stale) || *stale != elector.StaleError{Resource: c.resource, Token: c.token, Highest: c.highest}) {
				t.Errorf("%d: %q with token %d: %v; want it refused because of %d", i, c.resource, c.token, err, c.highest)
			}
		}
		if err := write(t.Context(), d.DB, d.missing(t), "ledger", 1, true); err == nil || !strings.Contains(err.Error(), "missing") {
			t.Errorf("a table that does not exist: %v", err)
		}
	}
	onEach(t, test)
	t.Run("MariaDB, which counts rows as the others do", func(t *testing.T) { test(t, mariaDB(t, "?clientFoundRows=true")) })
}

// missing is a table that does not exist.
func (d database) missing(t *testing.T) *fencesql.Table {
	table, err := fencesql.New(d.dialect, "missing")
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// A Fence with the Keeper forgets nothing when it is made again.
func TestKeeper(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		table := d.table(t, "fences")
		if err := (&elector.Fence{Keeper: table.Keeper(d.DB)}).Admit(t.Context(), "ledger", 6); err != nil {
			t.Fatal(err)
		}
		again := &elector.Fence{Keeper: table.Keeper(d.DB)}
		var stale *elector.StaleError
		if err := again.Admit(t.Context(), "ledger", 5); !errors.As(err, &stale) || stale.Highest != 6 {
			t.Errorf("an older token after a restart: %v", err)
		}
		if err := again.Admit(t.Context(), "ledger", 6); err != nil {
			t.Errorf("the same token after a restart: %v", err)
		}
		d.Close()
		if err := again.Admit(t.Context(), "ledger", 7); err == nil || errors.Is(err, elector.ErrStale) {
			t.Errorf("a token that could not be kept: %v", err)
		}
	})
}

// Without the counter MariaDB reports that the second write of a leader changed no
// row, as if it had been refused.
func TestWithoutCounter(t *testing.T) {
	d := mariaDB(t, "")
	d.exec(t, "create table plain (resource varbinary(255) primary key, token bigint not null)")
	d.exec(t, "insert into plain values ('ledger', 1)")
	for n, want := range []int64{1, 0} {
		result, err := d.ExecContext(t.Context(), "update plain set token = ? where resource = ? and token <= ?", 5, "ledger", 5)
		if err != nil {
			t.Fatal(err)
		}
		if rows, err := result.RowsAffected(); err != nil || rows != want {
			t.Errorf("write %d changes %d rows, %v; want %d", n, rows, err, want)
		}
	}
}
