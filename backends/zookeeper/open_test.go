package zookeeper

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/zookeeper/internal/zktest"
	"github.com/elector-go/elector/internal/fuzz/check"
)

// silence keeps the library from writing to standard error.
type silence struct{}

func (silence) Printf(string, ...any) {}

func TestParse(t *testing.T) {
	for _, test := range []struct {
		url, prefix, user, password string
		timeout                     time.Duration
		hosts                       []string
	}{
		{"zookeeper://h", "", "", "", 30 * time.Second, []string{"h:2181"}},
		{"zookeeper://h/", "", "", "", 30 * time.Second, []string{"h:2181"}},
		{"zookeeper://h:1,i:2/a?session_timeout=1500ms", "/a", "", "", 1500 * time.Millisecond, []string{"h:1", "i:2"}},
		{"zookeeper://h,i:2/a/b/", "/a/b", "", "", 30 * time.Second, []string{"h:2181", "i:2"}},
		{"zookeeper://[::1]", "", "", "", 30 * time.Second, []string{"[::1]:2181"}},
		{"zookeeper://[::1]:4/", "", "", "", 30 * time.Second, []string{"[::1]:4"}},
		{"zookeepers://u:p%40:x@h/%20x/zookeeper", "/ x/zookeeper", "u", "p@:x", 30 * time.Second, []string{"h:2181"}},
	} {
		u, err := url.Parse(test.url)
		if err != nil {
			t.Fatal(err)
		}
		o, err := parse(u)
		if err != nil {
			t.Errorf("%s: %v", test.url, err)
			continue
		}
		if o.prefix != test.prefix || !slices.Equal(o.hosts, test.hosts) || o.user != test.user || o.password != test.password || o.timeout != test.timeout {
			t.Errorf("%s: got %+v", test.url, o)
		}
		if (o.tls != nil) != strings.HasPrefix(test.url, "zookeepers") {
			t.Errorf("%s: TLS is %v", test.url, o.tls != nil)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, s := range []string{
		"zookeeper:h:2181",
		"zookeeper://",
		"zookeeper:///prefix",
		"zookeeper://h,,i",
		"zookeeper://:2181",
		"zookeeper://user@h",
		"zookeeper://:hunter2@h",
		"zookeeper://us%3Aer:hunter2@h",
		"zookeeper://h?tls=true",
		"zookeeper://h?ca=/ca.pem",
		"zookeeper://h?server_name=i",
		"zookeeper://h?session_timeout=0s",
		"zookeeper://h?session_timeout=-1s",
		"zookeeper://h?session_timeout=30",
		"zookeeper://h?session_timeout=1000h",
		"zookeeper://h/a//b",
		"zookeeper://h/a/../b",
		"zookeeper://h//",
		"zookeeper://h/zookeeper",
		"zookeeper://h/zookeeper/quota",
		"zookeepers://h?ca=/no/such/file",
		"zookeepers://h?cert=/no/such/file",
		"zookeepers://h?insecure=true",
		"zookeeper://user:1/hunter2@h/",
		"zookeeper://user:1?hunter2@h/",
		"zookeeper://user:1#hunter2@h/",
	} {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		_, err = parse(u)
		if !errors.Is(err, backends.ErrURL) {
			t.Errorf("%s: got %v, want ErrURL", s, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the password: %v", s, err)
		}
	}
}

// Without a server there is an error as soon as each host has been tried, not
// only when the caller's time is over.
func TestOpenGivesUpAfterOneRound(t *testing.T) {
	server := zktest.NewServer(t, true)
	server.Stop()
	_, err := open(t.Context(), &url.URL{Scheme: "zookeeper", Host: server.Address})
	if !errors.Is(err, backends.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want ErrUnavailable and no deadline", err)
	}
}

func TestNewLeavesTheConnectionOpen(t *testing.T) {
	server := zktest.NewServer(t, true)
	conn, events, err := zk.Connect([]string{server.Address}, time.Hour, zk.WithLogger(silence{}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	b := made(New(t.Context(), conn, &Options{Prefix: "/services/"}))
	check.OnlyReads(t, made(New(t.Context(), conn, &Options{ReadOnly: true})))
	if got, want := b.Describe().Store, "zookeeper://"+server.Address+"/services"; got != want {
		t.Errorf("the store is %q, want %q", got, want)
	}
	for range 2 {
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if conn.State() != zk.StateHasSession {
		t.Error("Close closed a connection that was given to New")
	}
	if _, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrUnavailable) {
		t.Errorf("Load after Close: got %v, want ErrUnavailable", err)
	}
	if n := server.Requests.Load(); n != 0 {
		t.Errorf("%d requests were sent after Close", n)
	}
}

// The client library would keep requests until it has a session.
func TestNewRefusesWithoutSession(t *testing.T) {
	server := zktest.NewServer(t, false)
	conn, _, err := zk.Connect([]string{server.Address}, time.Hour, zk.WithLogger(silence{}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { server.Stop(); conn.Close() }()
	if _, err := made(New(t.Context(), conn, nil)).Swap(t.Context(), "a", backends.Record{}, record); !errors.Is(err, backends.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
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
	check.NotMade[*Backend](t, "connection")(New(t.Context(), nil, nil))
	check.NotMade[*Backend](t, "Prefix")(New(t.Context(), new(zk.Conn), &Options{Prefix: "services"}))
	check.NotMade[*Backend](t, "Prefix")(New(t.Context(), new(zk.Conn), &Options{Prefix: "/a//b"}))
	check.NotMade[*Backend](t, "Prefix")(New(t.Context(), new(zk.Conn), &Options{Prefix: "/zookeeper/quota"}))
}
