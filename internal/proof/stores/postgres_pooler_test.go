package stores

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

// deafTo forwards connections to a PostgreSQL and keeps notifications back, as a
// transaction pooler does: it says yes to LISTEN, and what the server's
// connection then hears belongs to no client.
func deafTo(t *testing.T, address string) (through string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", address)
			if err != nil {
				client.Close()
				continue
			}
			all.Go(func() { io.Copy(server, client); server.Close() })
			all.Go(func() { withoutNotifications(client, server); client.Close() })
		}
	})
	return l.Addr().String()
}

// withoutNotifications copies a server's messages: a letter, a length, the rest.
func withoutNotifications(to io.Writer, from io.Reader) {
	for {
		message := make([]byte, 5)
		if _, err := io.ReadFull(from, message); err != nil {
			return
		}
		message = append(message, make([]byte, binary.BigEndian.Uint32(message[1:])-4)...)
		if _, err := io.ReadFull(from, message[5:]); err != nil {
			return
		}
		if message[0] == 'A' {
			continue
		}
		if _, err := to.Write(message); err != nil {
			return
		}
	}
}

// lines are a log's.
type lines struct {
	mutex sync.Mutex
	text  strings.Builder
	more  chan struct{} // holds one value when there is more
}

func newLines() *lines { return &lines{more: make(chan struct{}, 1)} }

func (l *lines) Write(b []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.text.Write(b)
}

func (l *lines) count(what string) int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return strings.Count(l.text.String(), what)
}

// Where no notification comes through, Watch says so, the elector finds changes
// by reading, and the log tells it once.
func TestPostgresPooler(t *testing.T) {
	s := begin(t, Postgres)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pooled := strings.Replace(s.URL, s.Address, deafTo(t, s.Address), 1) + "?sslmode=disable"
	b := opener(pooled)(t)
	defer b.Close()
	err := b.(backends.Watcher).Watch(ctx, "pooled", func(r backends.Record) { t.Errorf("Watch reports %+v", r) })
	if !errors.Is(err, backends.ErrUnavailable) || backends.Permanent(err) || !strings.Contains(err.Error(), "listen=false") {
		t.Fatalf("through a pooler Watch ends with %v", err)
	}

	silent := opener(pooled + "&listen=false")(t)
	defer silent.Close()
	if _, watches := backends.AsWatcher(silent); watches {
		t.Error("with listen=false the backend is taken for one that can watch")
	}

	campaign := func(url string, log io.Writer) *elector.Lease {
		e, err := elector.Open(ctx, url, "pooled", &elector.Options{TTL: 4 * time.Second, Logger: slog.New(slog.NewTextHandler(log, nil))})
		must(t, err)
		t.Cleanup(func() { e.Close() })
		lease, err := e.Campaign(ctx)
		must(t, err)
		return lease
	}
	first := campaign(s.URL, io.Discard)
	log := newLines()
	go func() {
		for log.count("listen=false") == 0 {
			select {
			case <-log.more:
			case <-ctx.Done():
			}
		}
		first.Release(ctx)
	}()
	if second := campaign(pooled, log); second.Token() <= first.Token() {
		t.Errorf("token %d after %d", second.Token(), first.Token())
	}
	if n := log.count("listen=false"); n != 1 {
		t.Errorf("the log says %d times what to do about the pooler, want once", n)
	}
}

// The log has a line for a table that is created: it may have been renamed under a
// running leader. Half of its pages is left for renewals; a table without that
// is used as it is.
func TestPostgresCreates(t *testing.T) {
	s := begin(t, Postgres)
	log, before := newLines(), slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	defer slog.SetDefault(before)
	admin, err := pgx.Connect(t.Context(), s.URL)
	must(t, err)
	defer admin.Close(context.Background())
	for range 2 {
		must(t, opener(s.URL+"?create=true&table=fresh")(t).Close())
		if n := log.count("elector: created the table"); n != 1 || log.count("level=WARN") != 0 || log.count(`\"public\".\"fresh\"`) != 1 {
			t.Errorf("of one table created the log tells %d times: %s", n, &log.text)
		}
		var filled bool
		must(t, admin.QueryRow(t.Context(), "select 'fillfactor=50' = any(reloptions) from pg_class where relname = 'fresh'").Scan(&filled))
		if !filled {
			t.Error("the table was created without fillfactor 50")
		}
	}
	_, err = admin.Exec(t.Context(), "alter table fresh reset (fillfactor)")
	must(t, err)
	must(t, opener(s.URL+"?create=true&table=fresh")(t).Close())
}

// Processes of a new store that start at once all get the table.
func TestPostgresCreatesAtOnce(t *testing.T) {
	createAtOnce(t, begin(t, Postgres).URL+"?create=true&table=fresh")
}

// createAtOnce opens handles by a URL that creates what is missing.
func createAtOnce(t *testing.T, storeURL string) {
	t.Helper()
	handles := make([]backends.Backend, 8)
	var all sync.WaitGroup
	for i := range handles {
		all.Go(func() {
			b, err := backends.Open(t.Context(), storeURL)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { b.Close() })
			handles[i] = b
		})
	}
	if all.Wait(); t.Failed() {
		return
	}
	made := swap(t, handles[0], "a", backends.Record{}, term(1))
	for _, b := range handles {
		if r, err := b.Load(t.Context(), "a"); err != nil || r != made {
			t.Errorf("got %+v, %v; want the record that another handle has written", r, err)
		}
	}
}

// A server without TLS is no reason where TLS is only preferred.
func TestPostgresReason(t *testing.T) {
	s := begin(t, Postgres)
	err := openError(t, Login{s.User.User, "not-the-password"}.In(s.PasswordURL))
	reason, tls := strings.Index(err.Error(), "password authentication failed"), strings.Index(err.Error(), "refused TLS")
	if !errors.Is(err, backends.ErrDenied) || reason < 0 || tls >= 0 && tls < reason {
		t.Errorf("the reason is not what comes first: %v", err)
	}
}
