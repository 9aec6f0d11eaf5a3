package tlsfiles

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

func TestConfig(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePair(t, cert, key)
	p := backends.NewParameters(&url.URL{RawQuery: url.Values{"ca": {cert}, "cert": {cert}, "key": {key}, "server_name": {"other"}}.Encode()})
	files := From(p)
	if err := p.Done(); err != nil {
		t.Fatal(err)
	}
	config, err := files.Config()
	if err != nil {
		t.Fatal(err)
	}
	if config.RootCAs == nil || config.ServerName != "other" {
		t.Error("ca or server_name is not used")
	}
	before, err := config.GetClientCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	writePair(t, cert, key)
	after, err := config.GetClientCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Equal(before.Certificate[0], after.Certificate[0]) {
		t.Error("a rotated client certificate is not read again")
	}

	for parameter, bad := range map[string]Files{
		"ca":                 {CA: key},
		"ca:":                {CA: "/no/such/file"},
		"cert and key go":    {Cert: cert},
		"cert and key go ":   {Key: key},
		"cert and key: ":     {Cert: key, Key: cert},
		"cert and key: open": {Cert: "/no/such/file", Key: key},
	} {
		if _, err := bad.Config(); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(parameter)) {
			t.Errorf("%+v: got %v, want an error about %s", bad, err, parameter)
		}
	}

	plain, err := Files{}.Config()
	if err != nil || plain.RootCAs != nil || plain.GetClientCertificate != nil {
		t.Errorf("nothing was asked for: got %+v and error %v", plain, err)
	}
}

func writePair(t *testing.T, cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
