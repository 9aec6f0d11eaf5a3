package tlsfiles

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/internal/testca"
)

// connect connects to a server at an address, as a client library does.
func connect(config *tls.Config, address string, server tls.Certificate) error {
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{server}})
	if err != nil {
		return err
	}
	defer l.Close()
	go func() {
		if far, err := l.Accept(); err == nil {
			defer far.Close()
			far.(*tls.Conn).Handshake()
		}
	}()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return err
	}
	defer near.Close()
	config = config.Clone()
	if config.ServerName == "" {
		config.ServerName = address
	}
	return tls.Client(near, config).Handshake()
}

// The authorities are those that the file has at each connection: a new one lets the server's
// new certificate in, and no longer the old one. What is refused without the file's change
// would be refused by package tls too.
func TestAuthoritiesRotate(t *testing.T) {
	file, later := filepath.Join(t.TempDir(), "ca.pem"), time.Now().Add(time.Hour)
	write := func(content []byte) {
		t.Helper()
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before, after := testca.New(), testca.New()
	write(before.PEM())
	config, err := Files{CA: file}.Config("db-1:2379", "10.0.0.1:2379", "[fd00::1]")
	if err != nil {
		t.Fatal(err)
	}
	check := func(what, address string, server tls.Certificate, refused string) {
		t.Helper()
		err := connect(config, address, server)
		if refused == "" {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
			return
		}
		if err == nil || !strings.Contains(err.Error(), refused) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: got %v, want an error with %q and the file", what, err, refused)
		}
	}
	check("its name", "db-1", before.Issue(later, "db-1"), "")
	check("another name", "db-1", before.Issue(later, "db-2"), "db-2, not db-1")
	check("its address", "10.0.0.1", before.Issue(later, "10.0.0.1"), "")
	check("its address, of IPv6", "fd00::1", before.Issue(later, "fd00::1"), "")
	check("an address that the URL does not name", "10.0.0.1", before.Issue(later, "10.0.0.2"), "10.0.0.2, not")
	check("another authority", "db-1", after.Issue(later, "db-1"), "unknown authority")
	check("a certificate that has expired", "db-1", before.Issue(time.Now().Add(-time.Hour), "db-1"), "expired")
	if err := connect(config, "db-1", after.Issue(later, "db-1")); !errors.As(err, new(*tls.CertificateVerificationError)) {
		t.Errorf("its type is %T", err)
	}

	write(after.PEM())
	check("the new authority", "db-1", after.Issue(later, "db-1"), "")
	check("the old authority", "db-1", before.Issue(later, "db-1"), "unknown authority")
	write(append(before.PEM(), after.PEM()...))
	check("both", "db-1", before.Issue(later, "db-1"), "")
	check("both", "db-1", after.Issue(later, "db-1"), "")
	write(nil)
	check("an empty file", "db-1", after.Issue(later, "db-1"), "has no PEM certificate")
	write(after.PEM()[:100])
	check("half a file", "db-1", after.Issue(later, "db-1"), "has no PEM certificate")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	check("no file", "db-1", after.Issue(later, "db-1"), "no such file")
	write(after.PEM())
	check("the file is there again", "db-1", after.Issue(later, "db-1"), "")

	// A configuration for one address is exact.
	exact, err := Files{CA: file}.For("10.0.0.1:2379")
	if err != nil {
		t.Fatal(err)
	}
	if err := connect(exact, "", after.Issue(later, "10.0.0.1")); err != nil {
		t.Error("For:", err)
	}
	for what, server := range map[string]tls.Certificate{"another address": after.Issue(later, "10.0.0.2"), "another authority": before.Issue(later, "10.0.0.1")} {
		if err := connect(exact, "", server); !errors.As(err, new(*tls.CertificateVerificationError)) {
			t.Errorf("For: a certificate of %s: %v", what, err)
		}
	}

	named, err := Files{CA: file, ServerName: "other"}.Config("10.0.0.1:2379")
	if err != nil {
		t.Fatal(err)
	}
	if err := connect(named, "10.0.0.1", after.Issue(later, "other")); err != nil {
		t.Error("server_name:", err)
	}
	if err := connect(named, "10.0.0.1", after.Issue(later, "10.0.0.1")); err == nil {
		t.Error("server_name: a certificate for the address is taken")
	}
}
