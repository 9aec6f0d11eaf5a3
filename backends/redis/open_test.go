package redis

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
)

func parseURL(t *testing.T, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestParse(t *testing.T) {
	c, to, o, err := parse(t.Context(), parseURL(t, "redis://me:p%40s%2Fs%3A%25@h1,h2:6380/7?prefix=ops:&durability=lossy&readonly=true"))
	if user, password, _ := c.CredentialsProviderContext(t.Context()); err != nil || user != "me" || password != "p@s/s:%" || c.DB != 7 || to.tls != nil || !slices.Equal(to.hosts, []string{"h1:6379", "h2:6380"}) || o != (Options{Prefix: "ops:", Durability: Lossy, ReadOnly: true}) {
		t.Errorf("%+v, %q, %+v, %v", c, to.hosts, o, err)
	}
	c, to, o, err = parse(t.Context(), parseURL(t, "rediss://:secret@[::1]?server_name=other"))
	if user, password, _ := c.CredentialsProviderContext(t.Context()); err != nil || user != "" || password != "secret" || c.DB != 0 || to.tls == nil || !slices.Equal(to.hosts, []string{"[::1]:6379"}) || o != (Options{Prefix: DefaultPrefix}) {
		t.Errorf("defaults: %+v, %q, %+v, %v", c, to.hosts, o, err)
	}
}

func TestPasswordIsReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	var c *goredis.Options
	for i, want := range []string{"first", "second"} {
		if err := os.WriteFile(file, []byte(want+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			var err error
			if c, _, _, err = parse(t.Context(), parseURL(t, "redis://me@h?password_file="+file)); err != nil {
				t.Fatal(err)
			}
		}
		if user, password, err := c.CredentialsProviderContext(t.Context()); user != "me" || password != want || err != nil {
			t.Errorf("it signs in with %q, %q, %v; want %q", user, password, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	check.Refuses(t,
		"redis:opaque",
		"redis://h?stale=true",
		"redis://h?prefix=a&prefix=b",
		"redis://h?readonly=perhaps",
		"redis://h?durability=checked",
		"redis://h?durability=some",
		"redis://h?prefix=a%20b",
		"redis://h?prefix=a%0a",
		"redis://h?prefix=a%27",
		"redis://h?ca=/x",
		"rediss://h?ca=/no/such/file",
		"redis:///0",
		"redis://h,/0",
		"redis://h/x",
		"redis://h/-1",
		"redis://h/0/1",
		"redis://h1,h2",
		"redis://h1,h2?durability=stated",
		"redis://me@h",
		"redis://me@h?password_file=/no/such/file",
		"redis://h?password_file=/no/such/file",
		"redis://me:hunter2@h?password_file=/no/such/file",
		// Passwords that are not encoded: 12/secret, 12#secret and so on.
		"redis://u:12/secret@h/0",
		"redis://u:12#secret@h/0",
		"redis://u:12?secret@h/0",
		"redis://u:12?secret=a@h/0",
	)
}

// Of several servers the one that is the primary is used.
func TestSeveralServers(t *testing.T) {
	replica, primary := newFake(t), newFake(t)
	replica.info["role"] = "slave"
	at := replica.listener.Addr().String() + "," + primary.listener.Addr().String()
	b, err := backends.Open(t.Context(), "redis://"+at+"?durability=lossy")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if d := b.Describe(); d.Lossy == "" {
		t.Error("its description has no reason for being lossy")
	}
	// They change places, and the old primary ends its connections, or keeps them.
	for _, ends := range []bool{true, false} {
		replica.set(func() { replica.info["role"], replica.answers["EVALSHA"] = "master", "*0\r\n" })
		primary.set(func() {
			primary.info["role"], primary.answers["EVALSHA"] = "slave", "-READONLY it is not the primary\r\n"
		})
		if ends {
			primary.drop()
		}
		last := errors.New("nothing was read")
		for range 3 {
			if last != nil {
				_, last = b.Load(t.Context(), "a")
			}
		}
		if last != nil {
			t.Errorf("the new primary is not used; the old one ends its connections: %v; %v", ends, last)
		}
		replica, primary = primary, replica
	}
}

// Calls at the same time keep their connections for the next ones: each new one costs
// requests that look at the server.
func TestConnectionsAreKept(t *testing.T) {
	f := newFake(t)
	b, err := f.open(t, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var taken []*goredis.Conn // by calls at the same time
		for range maxCalls {
			c := b.client.Conn()
			if err := c.Ping(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			taken = append(taken, c)
		}
		for _, c := range taken {
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	f.set(func() {
		if n := len(f.conns); n > maxCalls {
			t.Errorf("%d connections were made; want at most %d", n, maxCalls)
		}
	})
}

// A connection that was dialed when the handle was closed does not stay: the client library
// keeps it unless it is refused.
func TestConnectedLate(t *testing.T) {
	f := newFake(t)
	late, greeted := false, errors.New("it was greeted")
	b, err := New(t.Context(), f.client(t, goredis.Options{OnConnect: func(context.Context, *goredis.Conn) error {
		if late {
			return greeted
		}
		return nil
	}}), nil)
	if err != nil {
		t.Fatal(err)
	}
	connected := b.client.Options().OnConnect
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	late = true
	if err := connected(t.Context(), nil); !errors.Is(err, goredis.ErrClosed) {
		t.Errorf("a connection that is made after Close: %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	f := newFake(t)
	client := f.client(t, goredis.Options{})
	check.NotMade[*Backend](t, "client")(New(t.Context(), nil, nil))
	check.NotMade[*Backend](t, "Durability")(New(t.Context(), client, &Options{Durability: "some"}))
	check.NotMade[*Backend](t, "Prefix")(New(t.Context(), client, &Options{Prefix: "a b"}))
	failing := goredis.NewFailoverClient(&goredis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{f.listener.Addr().String()}})
	defer failing.Close()
	check.NotMade[*Backend](t, "NewFailoverClient")(New(t.Context(), failing, nil))
	if n := f.asked; len(n) > 0 {
		t.Errorf("it was asked: %v", n)
	}
}

// A client of Sentinels leads to the primary that they name.
func TestNewWithSentinels(t *testing.T) {
	primary := newFake(t)
	host, port, err := net.SplitHostPort(primary.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	sentinel := newFake(t)
	sentinel.answers["SENTINEL"] = "*2\r\n" + bulk(host) + bulk(port)
	client := goredis.NewFailoverClient(&goredis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{sentinel.listener.Addr().String()}})
	defer client.Close()
	b, err := New(t.Context(), client, &Options{Durability: Lossy})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := b.Load(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

// A limiter refuses all.
type closedLimiter struct{}

func (closedLimiter) Allow() error       { return errors.New("not now") }
func (closedLimiter) ReportResult(error) {}

// A client that retries, limits its requests and has short timeouts leaves that to itself, and
// stays open.
func TestNewLeavesTheClientAlone(t *testing.T) {
	f := newFake(t)
	client := f.client(t, goredis.Options{MaxRetries: 5, Limiter: closedLimiter{}, ReadTimeout: time.Nanosecond, PoolSize: 1})
	b, err := New(t.Context(), client, nil)
	if err != nil {
		t.Fatal(err)
	}
	if o := b.client.Options(); o.MaxRetries != 0 || o.Limiter != nil || o.Protocol != 2 || !o.ContextTimeoutEnabled {
		t.Errorf("it connects with %+v", o)
	}
	f.set(func() { f.asked, f.answers["EVALSHA"] = nil, "-LOADING Redis is loading the dataset in memory\r\n" })
	if _, err := b.Swap(t.Context(), check.Election, backends.Record{}, check.Good()); !errors.Is(err, backends.ErrUnavailable) {
		t.Errorf("Swap: got %v, want ErrUnavailable", err)
	}
	f.set(func() {
		if n := slices.Index(f.asked, "EVALSHA"); n < 0 || slices.Contains(f.asked[n+1:], "EVALSHA") {
			t.Errorf("it was asked %v, want one script", f.asked)
		}
	})
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if o := client.Options(); o.MaxRetries != 5 || o.Limiter == nil || o.ReadTimeout != time.Nanosecond {
		t.Errorf("the client was changed: %+v", o)
	}
	// The limiter answers before the pool is asked.
	if err := client.Ping(t.Context()).Err(); err == nil || err.Error() != "not now" {
		t.Errorf("the client is closed: %v", err)
	}
}

// A closer tells when its connection is closed.
type closer struct {
	net.Conn
	closed chan struct{}
	once   sync.Once
}

func (c *closer) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// A Dialer that ignores its context, as that of the client library does with TLS, holds up
// nothing, and what it makes late is closed.
func TestDialerWithoutContext(t *testing.T) {
	f := newFake(t)
	late, conn := make(chan struct{}), make(chan *closer, 1)
	client := f.client(t, goredis.Options{Dialer: func(_ context.Context, network, address string) (net.Conn, error) {
		<-late
		c, err := net.Dial(network, address)
		if err != nil {
			return nil, err
		}
		made := &closer{Conn: c, closed: make(chan struct{})}
		conn <- made
		return made, nil
	}})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := New(ctx, client, nil); !errors.Is(err, backends.ErrUnavailable) || time.Since(start) > 5*time.Second {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
	close(late)
	select {
	case <-(<-conn).closed:
	case <-time.After(10 * time.Second):
		t.Error("the connection stays")
	}
}
