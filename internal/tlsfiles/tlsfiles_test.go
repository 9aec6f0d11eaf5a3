package tlsfiles

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/testca"
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
	if config.VerifyConnection == nil || config.ServerName != "other" {
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
	if err != nil || plain.InsecureSkipVerify || plain.VerifyConnection != nil || plain.GetClientCertificate != nil {
		t.Errorf("nothing was asked for: got %+v and error %v", plain, err)
	}
}

func writePair(t *testing.T, cert, key string) {
	t.Helper()
	certificate, secret := testca.Pair(testca.New().Issue(time.Now().Add(time.Hour), "db-1"))
	for file, content := range map[string][]byte{cert: certificate, key: secret} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
