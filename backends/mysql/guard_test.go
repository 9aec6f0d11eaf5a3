package mysql

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

type fakeLease backends.Acquisition

func (h fakeLease) Acquisition() (backends.Acquisition, error) { return backends.Acquisition(h), nil }

func TestGuard(t *testing.T) {
	b := &Backend{table: table{"db", "elector"}, base: backends.NewBase("mysql://h/db", nil)}
	h := fakeLease{Backend: b, Election: "reports", Record: backends.Record{Holder: "h", Token: 7, Attempt: backends.Attempt{Nonce: `a'b\c`, Sequence: 1}}}
	statement, err := Guard(h)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		" from `db`.`elector` force index (term) where ",
		" name = x'7265706f727473' ",
		fmt.Sprintf(" term = x'%x' ", term(h.Record)),
		" lock in share mode)",
		"'elector: stale fencing token 7 of election reports'",
	} {
		if !strings.Contains(statement, want) {
			t.Errorf("the guard lacks %s: %s", want, statement)
		}
	}
	g, ok := b.SQLGuard(backends.Acquisition(h))
	if !ok || !strings.HasSuffix(g.Query, " from `db`.`elector` force index (term) where name = ? and term = ? lock in share mode") {
		t.Errorf("the query of the guard is %s", g.Query)
	}
	if got := fmt.Sprintf("%s", g.Args); got != fmt.Sprintf("[reports %s]", term(h.Record)) {
		t.Errorf("its parameters are %s", got)
	}
	for n, want := range map[uint16]bool{1146: true, 1142: true, 1176: true, 1205: false, 1213: false, 1020: false} {
		if g.Absent(fmt.Errorf("wrapped: %w", &gomysql.MySQLError{Number: n})) != want {
			t.Errorf("an error %d is absence: %v", n, !want)
		}
	}
	h.Backend = memory.New()
	if _, err := Guard(h); !errors.Is(err, backends.ErrMisconfigured) {
		t.Errorf("an election on another store: %v", err)
	}
}

func TestRefused(t *testing.T) {
	for err, want := range map[error]bool{
		nil: false,
		&gomysql.MySQLError{Number: 1649, Message: "Unknown locale: 'elector: stale fencing token 7 of el'"}: true,
		&gomysql.MySQLError{Number: 1649, Message: "Unknown locale: 'xx'"}:                                   false,
		fmt.Errorf("saving: %w", backends.ErrStale):                                                          true,
	} {
		if Refused(err) != want {
			t.Errorf("Refused(%v) is %v", err, !want)
		}
	}
}
