package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/elector-go/elector/backends"
)

const password = `p@s/s:w?o#r'd%x`

// refusing is a server that answers every login with one SQLSTATE, and hangs
// up without an answer when that is "".
func refusing(t *testing.T, state string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			server := pgproto3.NewBackend(conn, conn)
			if _, err := server.ReceiveStartupMessage(); err == nil && state != "" {
				server.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: state, Message: "no"})
				server.Flush()
			}
			conn.Close()
		}
	}()
	return l.Addr().String()
}

func TestOpenErrors(t *testing.T) {
	for state, kind := range map[string]error{
		"":      backends.ErrUnavailable,
		"28P01": backends.ErrDenied,
		"28000": backends.ErrDenied,
		"42501": backends.ErrDenied,
		"3D000": backends.ErrMisconfigured,
		"25006": backends.ErrReadOnly,
		"53300": backends.ErrUnavailable,
		"57P01": backends.ErrUnavailable,
		"57P03": backends.ErrUnavailable,
		"08P01": backends.ErrUnavailable,
	} {
		t.Run("sqlstate "+state, func(t *testing.T) {
			u := &url.URL{Scheme: "postgres", User: url.UserPassword("app", password), Host: refusing(t, state), Path: "/app", RawQuery: "sslmode=disable"}
			_, err := open(context.Background(), u)
			if !errors.Is(err, kind) {
				t.Fatalf("%v, want %v", err, kind)
			}
			var config *pgconn.ConnectError
			if errors.As(err, &config) {
				t.Error("the error holds the configuration, with the password")
			}
			text := fmt.Sprintf("%v %+v", err, err)
			for _, secret := range []string{password, url.PathEscape(password), url.QueryEscape(password), "s/s"} {
				if strings.Contains(text, secret) {
					t.Errorf("the error holds the password: %v", err)
				}
			}
			if strings.Contains(text, "\n") || !strings.Contains(text, u.Host) {
				t.Errorf("the error is not one line that names the server: %v", err)
			}
		})
	}
}

func TestExplain(t *testing.T) {
	b := &Backend{table: table{"public", "elector"}, role: "app", database: "app", life: context.Background()}
	for state, kind := range map[string]error{
		"42P01": backends.ErrMisconfigured,
		"42703": backends.ErrMisconfigured,
		"42P10": backends.ErrMisconfigured,
		"23502": backends.ErrMisconfigured,
		"22021": backends.ErrMisconfigured,
		"0A000": backends.ErrMisconfigured,
		"42501": backends.ErrDenied,
		"25006": backends.ErrReadOnly,
		"57014": backends.ErrUnavailable,
		"40P01": backends.ErrUnavailable,
		"53100": backends.ErrUnavailable,
		"55P03": backends.ErrUnavailable,
	} {
		cause := &pgconn.PgError{Severity: "ERROR", Code: state, Message: "no"}
		err := b.explain(context.Background(), "reading election a", cause)
		if !errors.Is(err, kind) || !errors.Is(err, cause) {
			t.Errorf("%s: %v, want %v", state, err, kind)
		}
	}
	denied := b.explain(context.Background(), "writing", &pgconn.PgError{Code: "42501"})
	if !strings.Contains(denied.Error(), `grant select, insert, update on "public"."elector" to "app"`) {
		t.Errorf("the error does not say what to grant: %v", denied)
	}
	locked := b.explain(context.Background(), "writing", &pgconn.PgError{Code: lockNotAvailable})
	if !strings.Contains(locked.Error(), "locked the row") || !strings.Contains(locked.Error(), "pg_locks") {
		t.Errorf("the error does not say where to look for the lock: %v", locked)
	}
	for _, state := range []string{"XX000", "1", "54000"} {
		if err := b.explain(context.Background(), "reading", &pgconn.PgError{Code: state}); backends.Permanent(err) {
			t.Errorf("%s is taken for permanent: %v", state, err)
		}
	}
}

func TestExplainContext(t *testing.T) {
	b := &Backend{life: context.Background()}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := b.explain(ctx, "reading", errors.New("use of closed connection"))
	if !errors.Is(err, context.Canceled) || errors.Is(err, backends.ErrUnavailable) {
		t.Errorf("cancelled by the caller: %v", err)
	}
	b.life = ctx
	if err := b.explain(context.Background(), "reading", errors.New("closed pool")); err != errClosed {
		t.Errorf("after Close: %v", err)
	}
}
