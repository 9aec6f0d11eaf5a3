package etcd

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
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
		o, err := parse(t.Context(), u)
		if err != nil {
			t.Errorf("%s: %v", test.url, err)
			continue
		}
		config, user := o.client, ""
		if o.login != nil {
			user, _, _ = o.login()
		}
		if o.prefix != test.prefix || !slices.Equal(config.Endpoints, test.endpoints) || user != test.user {
			t.Errorf("%s: got %q, %q, user %q", test.url, o.prefix, config.Endpoints, user)
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
		"etcd://h?password_file=/no/such/file",
		"etcd://u:hunter2@h?password_file=/no/such/file",
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
		_, err = parse(t.Context(), u)
		if !errors.Is(err, backends.ErrURL) {
			t.Errorf("%s: got %v, want ErrURL", s, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the password: %v", s, err)
		}
	}
}

func TestParseTakesTLS(t *testing.T) {
	u, err := url.Parse("etcds://h?server_name=other")
	if err != nil {
		t.Fatal(err)
	}
	o, err := parse(t.Context(), u)
	if err != nil || o.client.TLS == nil || o.client.TLS.ServerName != "other" {
		t.Errorf("got %+v and error %v", o.client.TLS, err)
	}
}

func TestNewLeavesTheClientOpen(t *testing.T) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://u:hunter2@127.0.0.1:1", "127.0.0.1:2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	b := made(New(t.Context(), client, nil))
	check.OnlyReads(t, made(New(t.Context(), client, &Options{ReadOnly: true})))
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

// made returns what New has made.
func made(b *Backend, err error) *Backend {
	if err != nil {
		panic(err)
	}
	return b
}

func TestNewRefuses(t *testing.T) {
	check.NotMade[*Backend](t, "client")(New(t.Context(), nil, nil))
}
