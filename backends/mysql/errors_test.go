package mysql

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/elector-go/elector/backends"
)

const password = `p@s/s:w?o#r'd%x`

// refusing is a server that answers each connection with an error number, and hangs up
// without an answer when that is 0.
func refusing(t *testing.T, number uint16) (address string) {
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
			if number != 0 {
				message := "no"
				conn.Write(append([]byte{byte(3 + len(message)), 0, 0, 0, 0xff, byte(number), byte(number >> 8)}, message...))
			}
			conn.Close()
		}
	}()
	return l.Addr().String()
}

func TestOpenErrors(t *testing.T) {
	for number, kind := range map[uint16]error{
		0:    backends.ErrUnavailable,
		1040: backends.ErrUnavailable,
		1045: backends.ErrDenied,
		1130: backends.ErrDenied,
		1049: backends.ErrMisconfigured,
	} {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			u := &url.URL{Scheme: "mysql", User: url.UserPassword("app", password), Host: refusing(t, number), Path: "/app"}
			_, err := open(context.Background(), u)
			if !errors.Is(err, kind) {
				t.Fatalf("%v, want %v", err, kind)
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

func TestClassify(t *testing.T) {
	b := &Backend{table: table{"app", "elector"}, user: "app"}
	for number, want := range map[uint16]struct {
		kind   error
		advice string
	}{
		1044: {backends.ErrDenied, "grant select, insert, update on `app`.`elector` to 'app'@'%'"},
		1142: {backends.ErrDenied, "grant select, insert, update"},
		1045: {backends.ErrDenied, "password"},
		1049: {backends.ErrMisconfigured, "create the database"},
		1146: {backends.ErrMisconfigured, "restore the table"}, // not: create another one
		1054: {backends.ErrMisconfigured, "altered"},
		1364: {backends.ErrMisconfigured, "constraint"},
		1644: {backends.ErrMisconfigured, "trigger"},
		1290: {backends.ErrReadOnly, "replica"},
		1792: {backends.ErrReadOnly, "replica"},
		1836: {backends.ErrReadOnly, "replica"},
		// Not applied.
		1205: {backends.ErrUnavailable, "nothing was written"},
		1213: {backends.ErrUnavailable, "nothing was written"},
		3101: {backends.ErrUnavailable, "nothing was written"},
		1040: {backends.ErrUnavailable, "nothing was written"},
		1047: {backends.ErrUnavailable, "nothing was written"},
		// It may have been applied.
		1053: {backends.ErrUnavailable, "unknown whether"},
		1180: {backends.ErrUnavailable, "unknown whether"},
		1317: {backends.ErrUnavailable, "unknown whether"},
		1927: {backends.ErrUnavailable, "unknown whether"},
		1969: {backends.ErrUnavailable, "unknown whether"},
		3024: {backends.ErrUnavailable, "unknown whether"},
		9999: {backends.ErrUnavailable, "log"},
	} {
		advice, kind := b.classify(fmt.Errorf("reading: %w", &gomysql.MySQLError{Number: number, Message: "no"}))
		if kind != want.kind || !strings.Contains(advice, want.advice) {
			t.Errorf("%d: %v, %s; want %v, %s", number, kind, advice, want.kind, want.advice)
		}
	}
	for err, want := range map[error]struct {
		kind   error
		advice string
	}{
		gomysql.ErrInvalidConn:   {backends.ErrUnavailable, "unknown whether"},
		gomysql.ErrNoTLS:         {backends.ErrMisconfigured, "mysqls://"},
		gomysql.ErrUnknownPlugin: {backends.ErrDenied, "plugin"},
		gomysql.ErrMalformPkt:    {backends.ErrMisconfigured, "neither"},
		errors.New("x"):          {backends.ErrUnavailable, "network"},
	} {
		advice, kind := b.classify(fmt.Errorf("reading: %w", err))
		if kind != want.kind || !strings.Contains(advice, want.advice) {
			t.Errorf("%v: %v, %s; want %v, %s", err, kind, advice, want.kind, want.advice)
		}
	}
}
