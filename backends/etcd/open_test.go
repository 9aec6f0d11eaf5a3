package etcd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/elector-go/elector/backends"
)

func TestParse(t *testing.T) {
	for _, test := range []struct {
		url, prefix, user string
		endpoints         []string
	}{
		{"etcd://h", "/elector/", "", []string{"http://h:2379"}},
		{"etcd://h/", "/elector/", "", []string{"http://h:2379"}},
		{"etcd://h:1,i:2/a", "/a/", "", []string{"http://h:1", "http://i:2"}},
		{"etcd://h,i:2/a/b/", "/a/b/", "", []string{"http://h:2379", "http://i:2"}},
		{"etcd://[::1]", "/elector/", "", []string{"http://[::1]:2379"}},
		{"etcd://[::1]:4/", "/elector/", "", []string{"http://[::1]:4"}},
		{"etcds://u:p%40@h/%20x", "/ x/", "u", []string{"https://h:2379"}},
	} {
		u, err := url.Parse(test.url)
		if err != nil {
			t.Fatal(err)
		}
		config, prefix, err := parse(u)
		if err != nil {
			t.Errorf("%s: %v", test.url, err)
			continue
		}
		if prefix != test.prefix || !slices.Equal(config.Endpoints, test.endpoints) || config.Username != test.user {
			t.Errorf("%s: got %q, %q, user %q", test.url, prefix, config.Endpoints, config.Username)
		}
		if (config.TLS != nil) != strings.HasPrefix(test.url, "etcds") {
			t.Errorf("%s: TLS is %v", test.url, config.TLS != nil)
		}
		if config.Logger == nil {
			t.Errorf("%s: the client library would log to standard error", test.url)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, s := range []string{
		"etcd:h:2379",
		"etcd://",
		"etcd:///prefix",
		"etcd://h,,i",
		"etcd://:2379",
		"etcd://user@h",
		"etcd://:hunter2@h",
		"etcd://h?tls=true",
		"etcd://h?ca=/ca.pem",
		"etcd://h?server_name=i",
		"etcds://h?ca=/no/such/file",
		"etcds://h?cert=/no/such/file",
		"etcds://h?cert=/no/such/file&key=/no/such/file",
		"etcds://h?ca=a&ca=b",
		"etcds://h?insecure=true",
		"etcd://user:1/hunter2@h/",
		"etcd://user:1?hunter2@h/",
		"etcd://user:1#hunter2@h/",
	} {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = parse(u)
		if !errors.Is(err, backends.ErrURL) {
			t.Errorf("%s: got %v, want ErrURL", s, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the password: %v", s, err)
		}
	}
}

func TestParseReadsTLSFiles(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePair(t, cert, key)
	u := &url.URL{Scheme: "etcds", Host: "h", RawQuery: url.Values{"ca": {cert}, "cert": {cert}, "key": {key}, "server_name": {"other"}}.Encode()}
	config, _, err := parse(u)
	if err != nil {
		t.Fatal(err)
	}
	if config.TLS.RootCAs == nil || config.TLS.ServerName != "other" {
		t.Error("ca or server_name is not used")
	}
	before, err := config.TLS.GetClientCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	writePair(t, cert, key)
	after, err := config.TLS.GetClientCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Equal(before.Certificate[0], after.Certificate[0]) {
		t.Error("a rotated client certificate is not read again")
	}

	u.RawQuery = url.Values{"ca": {key}}.Encode()
	if _, _, err := parse(u); !errors.Is(err, backends.ErrURL) {
		t.Errorf("a ca file without a certificate: got %v, want ErrURL", err)
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

func TestNewLeavesTheClientOpen(t *testing.T) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://u:hunter2@127.0.0.1:1", "127.0.0.1:2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	b := New(client, "")
	if got := b.Describe().Store; got != "etcd://127.0.0.1:1,127.0.0.1:2/elector/" {
		t.Errorf("the store is %q", got)
	}
	for range 2 {
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if client.Ctx().Err() != nil {
		t.Error("Close closed a client that was given to New")
	}
	if _, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrUnavailable) {
		t.Errorf("Load after Close: got %v, want ErrUnavailable", err)
	}
}
