package consul

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
)

func parseText(t *testing.T, text string) (*Backend, *http.Transport, error) {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	b, err := parse(u, transport)
	return b, transport, err
}

func TestParse(t *testing.T) {
	for _, test := range []struct{ url, prefix, addresses, datacenter string }{
		{"consul://h", "elector/", "http://h:8500", ""},
		{"consul://h/", "elector/", "http://h:8500", ""},
		{"consul://h:1,i:2/a", "a/", "http://h:1 http://i:2", ""},
		{"consul://[::1]/a/b.c/", "a/b.c/", "http://[::1]:8500", ""},
		{"consuls://h:8501?dc=eu-1", "elector/", "https://h:8501", "eu-1"},
	} {
		b, transport, err := parseText(t, test.url)
		if err != nil {
			t.Errorf("%s: %v", test.url, err)
			continue
		}
		var addresses []string
		for _, a := range b.addresses {
			addresses = append(addresses, a.String())
		}
		if b.prefix != test.prefix || strings.Join(addresses, " ") != test.addresses || b.datacenter != test.datacenter || (transport.TLSClientConfig != nil) != strings.HasPrefix(test.url, "consuls") {
			t.Errorf("%s: got %q, %q, %q, TLS %v", test.url, b.prefix, addresses, b.datacenter, transport.TLSClientConfig)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, s := range []string{
		"consul:h:8500",
		"consul://",
		"consul:///prefix",
		"consul://h,,i",
		"consul://:8500",
		"consul://hunter2@h",
		"consul://:hunter2@h",
		"consul://h?token=hunter2",
		"consul://h?token_file=/no/such/file",
		"consul://h?stale=true",
		"consul://h?ca=/ca.pem",
		"consul://h?dc=a/b",
		"consul://h/a//b",
		"consul://h/a/../b",
		"consul://h/a..",
		"consul://h/%20x",
		"consuls://h?ca=/no/such/file",
		"consuls://h?cert=/no/such/file&key=/no/such/file",
		"consul://user:1/hunter2@h/",
		"consul://user:1?hunter2@h/",
		"consul://user:1#hunter2@h/",
	} {
		if _, _, err := parseText(t, s); !errors.Is(err, backends.ErrURL) {
			t.Errorf("%s: got %v, want ErrURL", s, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the token: %v", s, err)
		}
	}
}

// Open asks for a key, and what it finds says what to change.
func TestOpenRefuses(t *testing.T) {
	f := newFake()
	s := f.serve(t)
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   error
		text   string
	}{
		"no right":        {refusing(403, "Permission denied: token lacks permission 'key:read'"), backends.ErrDenied, `key_prefix "elector/"`},
		"a wrong token":   {refusing(403, "ACL not found"), backends.ErrDenied, "CONSUL_HTTP_TOKEN"},
		"no leader":       {refusing(500, "No cluster leader"), backends.ErrUnavailable, "No cluster leader"},
		"another program": {refusing(404, "404 page not found"), backends.ErrMisconfigured, "not Consul's"},
	} {
		f.instead("", test.answer)
		b, err := openAt(t.Context(), s)
		if b != nil || !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) || !strings.Contains(err.Error(), "opening consul://127.0.0.1") {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
	}
	s.Close()
	if _, err := openAt(t.Context(), s); !errors.Is(err, backends.ErrUnavailable) {
		t.Errorf("no server: got %v, want ErrUnavailable", err)
	}
}

func TestTLS(t *testing.T) {
	f := newFake()
	s := httptest.NewUnstartedServer(f)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshakes that fail
	s.StartTLS()
	defer s.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	host := s.Listener.Addr().String()
	plain := f.serve(t).Listener.Addr().String()
	for text, want := range map[string]error{
		"consuls://" + host + "?ca=" + ca:                         nil,
		"consuls://" + host + "?server_name=example.com&ca=" + ca: nil,
		"consuls://" + host:                                       backends.ErrMisconfigured,
		"consuls://" + host + "?server_name=other&ca=" + ca:       backends.ErrMisconfigured,
		"consul://" + host:                                        backends.ErrMisconfigured,
		"consuls://" + plain + "?ca=" + ca:                        backends.ErrMisconfigured,
	} {
		b, err := backends.Open(t.Context(), text)
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", text, err, want)
		}
		if err == nil {
			if _, err := b.Swap(t.Context(), "a", backends.Record{}, record); err != nil && !errors.Is(err, backends.ErrConflict) {
				t.Error(err)
			}
			b.Close()
		}
	}
}

func TestNewLeavesTheClientOpen(t *testing.T) {
	f := newFake()
	client := &http.Client{Transport: f}
	b := made(New(t.Context(), client, &Options{Address: "http://h:8500"}))
	for range 2 {
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrUnavailable) || len(f.sent()) > 0 {
		t.Errorf("Load after Close: got %v, want ErrUnavailable and no request", err)
	}
	if _, err := made(New(t.Context(), client, &Options{Address: "http://h:8500"})).Load(context.Background(), "a"); err != nil {
		t.Error(err)
	}
}

func TestNewRefuses(t *testing.T) {
	f := newFake()
	client := &http.Client{Transport: f}
	check.NotMade[*Backend](t, "client")(New(t.Context(), nil, nil))
	check.NotMade[*Backend](t, "Address")(New(t.Context(), client, &Options{Address: "h:8500"}))
	check.NotMade[*Backend](t, "Address")(New(t.Context(), client, &Options{Address: "http://h secret"}))
	check.NotMade[*Backend](t, "Address")(New(t.Context(), client, &Options{Address: "http://u:secret@h"}))
	check.NotMade[*Backend](t, "Address")(New(t.Context(), client, &Options{Address: "http://h/v1"}))
	check.NotMade[*Backend](t, "Prefix")(New(t.Context(), client, &Options{Prefix: "a//b/"}))
	check.NotMade[*Backend](t, "Datacenter")(New(t.Context(), client, &Options{Datacenter: "a b"}))
	check.OnlyReads(t, made(New(t.Context(), client, &Options{ReadOnly: true})))
	if n := f.sent(); len(n) > 0 {
		t.Errorf("it was asked: %v", n)
	}
}
