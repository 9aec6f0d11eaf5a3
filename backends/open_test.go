package backends_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

func TestParameters(t *testing.T) {
	read := func(query string) (s string, b bool, d time.Duration, err error) {
		p := backends.NewParameters(&url.URL{Scheme: "x", RawQuery: query})
		s, b, d = p.String("table", "elector"), p.Bool("create", true), p.Duration("patience", 3*time.Second)
		return s, b, d, p.Done()
	}
	if s, b, d, err := read(""); s != "elector" || !b || d != 3*time.Second || err != nil {
		t.Errorf("defaults: %q %v %v %v", s, b, d, err)
	}
	if s, b, d, err := read("table=a%20b&create=0&patience=1.5s"); s != "a b" || b || d != 1500*time.Millisecond || err != nil {
		t.Errorf("values: %q %v %v %v", s, b, d, err)
	}
	for query, says := range map[string]string{
		"tabel=x":           `unknown parameter "tabel"; it takes create, patience, table`,
		"table=a&table=b":   `"table" is given 2 times`,
		"create=yes":        `"create" is neither true nor false`,
		"patience=5":        `"patience" is not a time like 1.5s`,
		"patience=-5s":      `"patience" is not a time like 1.5s`,
		"table=%zz":         "cannot be parsed",
		"table=a;create=no": "cannot be parsed",
	} {
		if _, _, _, err := read(query); !errors.Is(err, backends.ErrURL) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: error %v is not an ErrURL that says %q", query, err, says)
		}
	}
}

func TestRedact(t *testing.T) {
	u, err := url.Parse("postgres://app:s3cret@db:5432/app?password=s3cret&sslmode=disable#s3cret")
	if err != nil {
		t.Fatal(err)
	}
	if s := backends.Redact(u); strings.Contains(s, "s3cret") || !strings.Contains(s, "db:5432/app") {
		t.Errorf("Redact: %s", s)
	}
}

// What people write who know the host of their store, and not its URL.
func TestOpenHints(t *testing.T) {
	for raw, says := range map[string]string{
		"127.0.0.1:2379":                   "127.0.0.1:2379 has no scheme, which names the store: write etcd://127.0.0.1:2379",
		"localhost:2379":                   "write etcd://localhost:2379",
		"etcd:2379":                        "write etcd://etcd:2379",
		"[::1]:2181":                       "write zookeeper://[::1]:2181",
		"db.example:5432":                  "write postgres://USER@db.example:5432/DATABASE",
		"10.0.0.1:2379,10.0.0.2:2379":      "write etcd://10.0.0.1:2379,10.0.0.2:2379",
		"host:7000":                        "write etcd://host:7000 if that is etcd",
		"http://localhost:2379":            "write etcd://localhost:2379",
		"https://user:s3cret@[::1]:8501/x": "write consuls://[::1]:8501",
		" etcd://host:2379":                "a space or a quotation mark",
		`"etcd://host:2379"`:               "a space or a quotation mark",
	} {
		_, err := backends.Open(t.Context(), raw)
		if !errors.Is(err, backends.ErrURL) && !errors.Is(err, backends.ErrUnknownScheme) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v; want %q", raw, err, says)
		}
	}
	u, err := url.Parse("etcd://")
	if s := backends.Redact(u); err != nil || s != "etcd://" {
		t.Errorf("a URL without a host is shown as %q, %v", s, err)
	}
}

func TestPermanent(t *testing.T) {
	for err, want := range map[error]bool{
		backends.ErrConflict: false, backends.ErrUnavailable: false, backends.ErrReadOnly: false, errors.New("other"): false,
		backends.ErrDenied: true, backends.ErrMisconfigured: true, backends.ErrForeignRecord: true, backends.ErrURL: true, backends.ErrName: true,
	} {
		if backends.Permanent(err) != want {
			t.Errorf("Permanent(%v) is not %v", err, want)
		}
	}
}
