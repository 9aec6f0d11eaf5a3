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

func TestClassify(t *testing.T) {
	b := &Backend{table: table{"public", "elector"}, role: "app", database: "app"}
	for state, want := range map[string]struct {
		kind   error
		advice string
	}{
		"42P01": {backends.ErrMisconfigured, "restore the table"}, // not: create another one
		"42703": {backends.ErrMisconfigured, "altered"},
		"42P10": {backends.ErrMisconfigured, "altered"},
		"23502": {backends.ErrMisconfigured, "constraint"},
		"22021": {backends.ErrMisconfigured, "encoding"},
		"0A000": {backends.ErrMisconfigured, "not PostgreSQL"},
		"42501": {backends.ErrDenied, `grant select, insert, update on "public"."elector" to "app"`},
		"25006": {backends.ErrReadOnly, "standby"},
		"57014": {backends.ErrUnavailable, "overloaded"},
		"40P01": {backends.ErrUnavailable, "pass"},
		"53100": {backends.ErrUnavailable, "pass"},
		"55P03": {backends.ErrUnavailable, "pg_locks"},
		"XX000": {backends.ErrUnavailable, "log"},
		"1":     {backends.ErrUnavailable, ""},
		"54000": {backends.ErrUnavailable, ""},
	} {
		advice, kind := b.classify(fmt.Errorf("reading: %w", &pgconn.PgError{Severity: "ERROR", Code: state, Message: "no"}))
		if kind != want.kind || !strings.Contains(advice, want.advice) || strings.Contains(advice, "create") {
			t.Errorf("%s: %v, %s; want %v, %s", state, kind, advice, want.kind, want.advice)
		}
	}
}
