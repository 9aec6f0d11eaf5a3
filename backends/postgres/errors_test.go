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

// refusing is a server without TLS that answers every login with one SQLSTATE,
// and hangs up without an answer when that is "".
func refusing(t *testing.T, state, message string) (address string) {
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
			m, err := server.ReceiveStartupMessage()
			if _, ok := m.(*pgproto3.SSLRequest); ok {
				conn.Write([]byte("N"))
				_, err = server.ReceiveStartupMessage()
			}
			if err == nil && state != "" {
				server.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: state, Message: message})
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
			u := &url.URL{Scheme: "postgres", User: url.UserPassword("app", password), Host: refusing(t, state, "no"), Path: "/app", RawQuery: "sslmode=disable"}
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

// A server without TLS is no reason where TLS is only preferred.
func TestOpenReason(t *testing.T) {
	_, err := open(context.Background(), parseURL(t, "postgres://app@"+refusing(t, "28P01", "wrong password")+"/app"))
	if err == nil {
		t.Fatal("no error")
	}
	reason, tls := strings.Index(err.Error(), "wrong password"), strings.Index(err.Error(), "tls error")
	if !errors.Is(err, backends.ErrDenied) || tls < reason || strings.Contains(err.Error(), "\n") {
		t.Errorf("the reason is not what comes first: %v", err)
	}
	_, err = open(context.Background(), parseURL(t, "postgres://app@"+refusing(t, "28P01", "wrong password")+"/app?sslmode=require"))
	if err == nil || !strings.Contains(err.Error(), refusedTLS) {
		t.Errorf("a server without TLS, which was demanded: %v", err)
	}
}

// A pooler refuses parameters that it does not keep apart for its clients.
func TestOpenPooler(t *testing.T) {
	for message, kind := range map[string]error{
		"unsupported startup parameter: search_path":          backends.ErrMisconfigured,
		"unsupported startup parameter in options: work_mem":  backends.ErrMisconfigured,
		"server conn crashed?":                                backends.ErrUnavailable,
		"no such parameter as unsupported in a query of ours": backends.ErrUnavailable,
	} {
		for _, mode := range []string{"prefer", "disable"} {
			_, err := open(context.Background(), parseURL(t, "postgres://app@"+refusing(t, "08P01", message)+"/app?search_path=a&sslmode="+mode))
			if !errors.Is(err, kind) || kind == backends.ErrMisconfigured && !strings.Contains(err.Error(), "table=schema.name") {
				t.Errorf("a pooler that says %q: %v", message, err)
			}
		}
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
	gone := b.explain(context.Background(), "reading", &pgconn.PgError{Code: "42P01"})
	if strings.Contains(gone.Error(), "create") {
		t.Errorf("the error invites to create another table: %v", gone)
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
