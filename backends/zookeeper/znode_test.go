package zookeeper

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/zookeeper/internal/zkconn"
)

var record = backends.Record{Holder: "h", Token: 1, TTL: time.Second, RenewEvery: time.Millisecond, Attempt: backends.Attempt{Nonce: "n", Sequence: 1}}

func TestVersions(t *testing.T) {
	guard := newGuard()
	r, err := decode("a", content(guard, "a", record), &zk.Stat{Version: 7, NumChildren: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got, n, err := parseVersion(r.Version); got != guard || n != 7 || err != nil {
		t.Errorf("version %q is %q, %d and error %v", r.Version, got, n, err)
	}
	if other := version(newGuard(), 7); other == r.Version {
		t.Error("two guards are the same")
	}
	for _, v := range []string{"x", "A", "A.", ".1", "A.-1", "A.2147483648", "A.1.1", "a.1", "A/B.1", "../A.1", strings.Repeat("A", 65) + ".1"} {
		if _, _, err := parseVersion(backends.Version(v)); !errors.Is(err, backends.ErrConflict) {
			t.Errorf("version %q: got %v, want ErrConflict", v, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := string(content("A", "a", record))
	for _, data := range []string{"", "guard", "guard \n", "guard A", good[len("guard A\n"):], "guard a/b\n" + good[len("guard A\n"):], "\n" + good, "guard A\n" + good} {
		if _, err := decode("a", []byte(data), &zk.Stat{NumChildren: 1}); !errors.Is(err, backends.ErrForeignRecord) {
			t.Errorf("%q: got %v, want ErrForeignRecord", data, err)
		}
	}
	if _, err := decode("b", []byte(good), &zk.Stat{NumChildren: 1}); !errors.Is(err, backends.ErrForeignRecord) {
		t.Errorf("another election's: got %v, want ErrForeignRecord", err)
	}
	if _, err := decode("a", []byte(good), &zk.Stat{}); !errors.Is(err, backends.ErrUnavailable) {
		t.Errorf("a record without its guard: got %v, want ErrUnavailable", err)
	}
}

func TestClassify(t *testing.T) {
	for _, test := range []struct{ err, want error }{
		{zk.ErrNoAuth, backends.ErrDenied},
		{zk.ErrAuthFailed, backends.ErrDenied},
		{errors.New("unknown error: -124"), backends.ErrDenied},
		{zk.ErrInvalidPath, backends.ErrURL},
		{zk.ErrInvalidACL, backends.ErrMisconfigured},
		{zk.ErrNoChildrenForEphemerals, backends.ErrMisconfigured},
		{zk.ErrNotEmpty, backends.ErrMisconfigured},
		{errors.New("unknown error: -125"), backends.ErrMisconfigured},
		{errors.New("unknown error: -1250"), backends.ErrUnavailable},
		{zk.ErrConnectionClosed, backends.ErrUnavailable},
		{zk.ErrNoServer, backends.ErrUnavailable},
		{zk.ErrClosing, backends.ErrUnavailable},
		{zk.ErrSessionExpired, backends.ErrUnavailable},
		{zk.ErrSessionMoved, backends.ErrUnavailable},
		{zk.ErrUnknown, backends.ErrUnavailable},
		{fmt.Errorf("no server was reached: h:1: %w", zkconn.ErrProtocol), backends.ErrMisconfigured},
		{fmt.Errorf("no server was reached: h:1: %w", tls.AlertError(42)), backends.ErrMisconfigured},
		{fmt.Errorf("no server was reached: h:1: %w", tls.RecordHeaderError{}), backends.ErrMisconfigured},
		{fmt.Errorf("no server was reached: h:1: %w", &tls.CertificateVerificationError{Err: errors.New("x509")}), backends.ErrMisconfigured},
	} {
		if _, kind := classify(test.err, DefaultPrefix, false); kind != test.want {
			t.Errorf("%v: got %v, want %v", test.err, kind, test.want)
		}
	}
	if advice, kind := classify(zk.ErrNoAuth, "/x", true); kind != backends.ErrDenied || !strings.Contains(advice, "readable=true") || !strings.Contains(advice, "setAcl -R /x auth::cdrwa,world:anyone:r") {
		t.Errorf("a reader without a right: %q, %v", advice, kind)
	}
}
