package nats

import (
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
)

func parseText(t *testing.T, text string) (*Backend, natsgo.Options, Options, error) {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t.Context(), u)
}

func TestParse(t *testing.T) {
	for _, test := range []struct {
		url, prefix, servers string
		own                  Options
	}{
		{"nats://h/b", "elector", "nats://h:4222", Options{}},
		{"nats://h:1,i:2/b/?prefix=a.c&replicas=5&create=true", "a.c", "nats://h:1 nats://i:2", Options{Create: true, Replicas: 5}},
		{"nats://[::1]/b", "elector", "nats://[::1]:4222", Options{}},
		{"natss://h/b?tls_first=true&server_name=i", "elector", "tls://h:4222", Options{}},
		{"nats://u:p%40@h/b?inbox=_INBOX_app&readonly=true", "elector", "nats://h:4222", Options{}},
	} {
		b, o, own, err := parseText(t, test.url)
		if err != nil {
			t.Errorf("%s: %v", test.url, err)
			continue
		}
		secure := strings.HasPrefix(test.url, "natss")
		if b.bucket != "b" || b.prefix != test.prefix || strings.Join(o.Servers, " ") != test.servers || own != test.own || o.Secure != secure || (o.TLSConfig != nil) != secure || o.TLSHandshakeFirst != secure || o.ReconnectBufSize != -1 || o.MaxReconnect != -1 {
			t.Errorf("%s: got %+v, %+v, %+v", test.url, b, o, own)
		}
		if strings.Contains(test.url, "u:p") && (o.InboxPrefix != "_INBOX_app" || !b.Describe().ReadOnly) {
			t.Errorf("%s: got %+v", test.url, o)
		} else if o.UserInfo != nil {
			if user, password := o.UserInfo(); user != "u" || password != "p@" {
				t.Errorf("%s: %q, %q", test.url, user, password)
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hunter2")
	if err := os.WriteFile(file, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{
		"nats:h/b", "nats://h", "nats://h/", "nats:///b", "nats://h,,i/b", "nats://:4222/b",
		"nats://h/a/b", "nats://h/a.b", "nats://h/a*", "nats://h/b?prefix=", "nats://h/b?prefix=a..b", "nats://h/b?prefix=>", "nats://h/b?prefix=a/b",
		"nats://hunter2@h/b", "nats://:hunter2@h/b", "nats://u:@h/b", "nats://h/b?token=hunter2", "nats://h/b?a=u:hunter2@i",
		"nats://h/b?direct=true", "nats://h/b?replicas=0", "nats://h/b?replicas=6", "nats://h/b?replicas=x", "nats://h/b?create=x", "nats://h/b?inbox=>", "nats://h/b?readonly=x",
		"nats://h/b?ca=/x", "nats://h/b?tls_first=true", "natss://h/b?ca=/no/such/file", "natss://h/b?cert=a",
		"nats://h/b?creds=/no/such/file", "nats://h/b?nkey=" + file, "nats://h/b?creds=" + file, "nats://h/b?token_file=/no/such/file", "nats://h/b?token_file=hunter2",
		"nats://u:hunter2@h/b?token_file=" + file, "nats://u:hunter2@h/b?password_file=" + file, "nats://h/b?password_file=" + file, "nats://u@h/b?password_file=/no/such/file", "nats://u@h/b?creds=" + file + "&password_file=" + file, "nats://h/b?nkey=" + file + "&token_file=" + file,
	} {
		_, _, _, err := parseText(t, s)
		if !errors.Is(err, backends.ErrURL) || strings.Contains(strings.ReplaceAll(err.Error(), file, ""), "hunter2") {
			t.Errorf("%s: got %v, want ErrURL", s, err)
		}
	}
}

func TestCredentials(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	token := write("token", "first\n")
	_, o, _, err := parseText(t, "nats://h/b?token_file="+token)
	if err != nil || o.TokenHandler() != "first" {
		t.Fatalf("got %v", err)
	}
	write("token", "second")
	if got := o.TokenHandler(); got != "second" {
		t.Errorf("a rotated token: sent %q", got)
	}
	password := write("password", "first\n")
	b, o, _, err := parseText(t, "nats://u@h/b?password_file="+password)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first", "second"} {
		write("password", want)
		if user, got := o.UserInfo(); user != "u" || got != want {
			t.Errorf("a password %s: sent %q, %q", want, user, got)
		}
	}
	write("password", "")
	o.UserInfo()
	b.told(natsgo.ErrAuthorization)
	if why := b.refusal.Load(); !strings.Contains((*why).Error(), password+" is empty") {
		t.Errorf("a refusal without a password: %v", *why)
	}
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	if _, o, _, err = parseText(t, "nats://h/b?nkey="+write("seed", string(seed))); err != nil || o.Nkey != public || o.SignatureCB == nil {
		t.Errorf("an NKey: %v, %q", err, o.Nkey)
	}
	if _, o, _, err = parseText(t, "nats://h/b?creds="+write("creds", string(seed))); err != nil || o.UserJWT == nil || o.SignatureCB == nil {
		t.Errorf("credentials: %v", err)
	}
}

// What is no NATS, or says nothing, is an error in time.
func TestOpenElsewhere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			c.Close()
		}
	}()
	if _, err := backends.Open(t.Context(), "nats://u:hunter2@"+l.Addr().String()+"/b"); !errors.Is(err, backends.ErrMisconfigured) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v, want ErrMisconfigured", err)
	}
	l.Close()
	if _, err := backends.Open(t.Context(), "nats://"+l.Addr().String()+"/b"); !errors.Is(err, backends.ErrUnavailable) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("no server: got %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	check.NotMade[*Backend](t, "connection")(New(t.Context(), nil, nil))
	check.NotMade[*Backend](t, "Bucket")(New(t.Context(), new(natsgo.Conn), nil))
	check.NotMade[*Backend](t, "Bucket")(New(t.Context(), new(natsgo.Conn), &Options{Bucket: "a.b"}))
	check.NotMade[*Backend](t, "Prefix")(New(t.Context(), new(natsgo.Conn), &Options{Bucket: "b", Prefix: "a..b"}))
	check.NotMade[*Backend](t, "Replicas")(New(t.Context(), new(natsgo.Conn), &Options{Bucket: "b", Replicas: 6}))
}
