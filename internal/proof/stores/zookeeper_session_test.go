package stores

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/zookeeper"
)

// enough is how long a test waits for what must happen; it is no measure.
const enough = time.Minute

func within[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(enough):
		t.Fatalf("nothing within %v: %s", enough, what)
		panic("unreachable")
	}
}

func patient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), enough)
	t.Cleanup(cancel)
	return ctx
}

func term(token uint64) backends.Record {
	return backends.Record{Holder: "holder", Token: token, TTL: 15 * time.Second, RenewEvery: 4 * time.Second,
		Attempt: backends.Attempt{Nonce: rand.Text(), Sequence: 1}}
}

func renewed(r backends.Record) backends.Record {
	r.Attempt.Sequence++
	return r
}

func vacated(r backends.Record) backends.Record {
	r.Holder = ""
	return renewed(r)
}

// ownZooKeeper is a server of the test's own, whatever the environment says.
func ownZooKeeper(t *testing.T) *Store {
	s, err := StartLocal(t.Context(), ZooKeeper)
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	return s
}

func connectZooKeeper(t testing.TB, url string) backends.PresenceWatcher {
	t.Helper()
	b, err := backends.Open(t.Context(), url)
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	return b.(backends.PresenceWatcher)
}

func swap(t testing.TB, b backends.Backend, name string, prev, next backends.Record) backends.Record {
	t.Helper()
	r, err := b.Swap(patient(t), name, prev, next)
	must(t, err)
	return r
}

func wants(t testing.TB, doing string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: got error %v, want %v", doing, err, want)
	}
}

// A report is a Watch, or a WatchPresence, that runs.
type report struct {
	records chan backends.Record
	result  chan error
	end     context.CancelFunc
}

func watchZooKeeper(t testing.TB, b backends.Watcher, name string) *report {
	ctx, cancel := context.WithCancel(t.Context())
	r := &report{records: make(chan backends.Record, 1000), result: make(chan error, 1), end: cancel}
	go func() { r.result <- b.Watch(ctx, name, func(record backends.Record) { r.records <- record }) }()
	t.Cleanup(cancel)
	return r
}

func attendZooKeeper(t testing.TB, b backends.PresenceWatcher, name string, held backends.Record) *report {
	ctx, cancel := context.WithCancel(t.Context())
	r := &report{result: make(chan error, 1), end: cancel}
	go func() { r.result <- b.WatchPresence(ctx, name, held) }()
	t.Cleanup(cancel)
	return r
}

func (r *report) until(t testing.TB, want backends.Record) {
	t.Helper()
	for within(t, r.records, "Watch reports a change") != want {
	}
}

// untilUsable waits until the handle is connected again.
func untilUsable(t testing.TB, b backends.Backend, name string) backends.Record {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for ctx := patient(t); ; <-again.C {
		r, err := b.Load(ctx, name)
		if err == nil {
			return r
		}
		if ctx.Err() != nil || !errors.Is(err, backends.ErrUnavailable) {
			t.Fatalf("a handle recovers when the server can be reached again: %v", err)
		}
	}
}

// untilLost waits until the handle has noticed that it is cut off.
func untilLost(t testing.TB, b backends.Backend, name string) {
	t.Helper()
	for ctx := patient(t); ; {
		if _, err := b.Load(ctx, name); err != nil {
			wants(t, "reading without a session", err, backends.ErrUnavailable)
			return
		}
	}
}

// The watches of the client library cannot be taken back. Many Watches, at the
// same time and one after the other, have one in common, and a renewal costs one
// read for all of them.
func TestZooKeeperSharesWatches(t *testing.T) {
	s := ownZooKeeper(t)
	g := newGate(t, s.Address, nil)
	writer := connectZooKeeper(t, s.URL)
	b := connectZooKeeper(t, "zookeeper://"+g.address())
	g.since()
	expect := func(what string, want map[string]int) {
		t.Helper()
		if got := g.since(); !maps.Equal(got, want) {
			t.Fatalf("%s: requests %v, want %v", what, got, want)
		}
	}

	first := watchZooKeeper(t, b, "a")
	first.until(t, backends.Record{})
	expect("the first Watch of a record that is not there", map[string]int{"sync": 1, "get and watch": 1, "exists and watch": 1})
	for range 20 {
		w := watchZooKeeper(t, b, "a")
		w.until(t, backends.Record{})
		w.end()
		wants(t, "a Watch whose context ends", within(t, w.result, "Watch ends"), context.Canceled)
	}
	expect("20 Watches one after the other", map[string]int{"get": 20})

	r := swap(t, writer, "a", backends.Record{}, term(1))
	first.until(t, r)
	expect("a new record", map[string]int{"get and watch": 1})
	all := []*report{first}
	for range 10 {
		w := watchZooKeeper(t, b, "a")
		w.until(t, r)
		all = append(all, w)
	}
	expect("10 more", map[string]int{"get": 10})
	for range 5 {
		r = swap(t, writer, "a", r, renewed(r))
		for _, w := range all {
			w.until(t, r)
		}
		expect("a renewal, and 11 Watches", map[string]int{"get and watch": 1})
	}
	for _, w := range all {
		w.end()
		within(t, w.result, "Watch ends")
	}
	r = swap(t, writer, "a", r, renewed(r))
	if got, err := b.Load(patient(t), "a"); err != nil || got != r {
		t.Fatalf("got %+v and error %v", got, err)
	}
	expect("a renewal without a watch, and a read", map[string]int{"sync": 1, "get": 1})
	w := watchZooKeeper(t, b, "a")
	w.until(t, r)
	expect("a Watch after that", map[string]int{"get and watch": 1})

	// One request for each change of a holder, and one watch on its node.
	mine := swap(t, b, "b", backends.Record{}, term(1))
	for range 3 {
		mine = swap(t, b, "b", mine, renewed(mine))
	}
	expect("an acquisition and three renewals", map[string]int{"multi": 4})
	for range 5 {
		a := attendZooKeeper(t, b, "b", mine)
		g.await(t, "get and watch", 1)
		if _, err := b.Load(patient(t), "b"); err != nil { // is answered after what WatchPresence asked
			t.Fatal(err)
		}
		a.end()
		wants(t, "a WatchPresence whose context ends", within(t, a.result, "WatchPresence ends"), context.Canceled)
	}
	if n := g.since()["get and watch"]; n != 1 {
		t.Errorf("five times WatchPresence make %d watches of the client library, not 1", n)
	}
	mine = swap(t, b, "b", mine, vacated(mine))
	mine = swap(t, b, "b", mine, term(2))
	swap(t, b, "b", mine, term(3))
	expect("a resignation, an acquisition and a takeover", map[string]int{"multi": 3})
}

// A short disconnection ends Watches, which may then be made again, and leaves
// the session and the leader's node alone. Nothing is kept to be sent later.
func TestZooKeeperReconnects(t *testing.T) {
	s := ownZooKeeper(t)
	g := newGate(t, s.Address, nil)
	z := zooKeeperTree(t, s)
	writer := connectZooKeeper(t, s.URL+"/suite")
	b := connectZooKeeper(t, "zookeeper://"+g.address()+"/suite")
	mine := swap(t, b, "mine", backends.Record{}, term(1))
	theirs := swap(t, writer, "theirs", backends.Record{}, term(1))
	w, a := watchZooKeeper(t, b, "theirs"), attendZooKeeper(t, b, "mine", mine)
	w.until(t, theirs)

	g.set(true)
	wants(t, "a Watch whose connection is lost", within(t, w.result, "Watch ends"), backends.ErrUnavailable)
	err := within(t, a.result, "WatchPresence ends")
	wants(t, "a WatchPresence whose connection is lost", err, backends.ErrUnavailable)
	if errors.Is(err, backends.ErrDeposed) {
		t.Fatalf("a lost connection is no deposition: %v", err)
	}
	untilLost(t, b, "mine")
	for i := range 50 {
		stale := renewed(mine)
		stale.Value = fmt.Sprint(i)
		_, err := b.Swap(patient(t), "mine", mine, stale)
		wants(t, "writing without a session", err, backends.ErrUnavailable)
		wants(t, "watching without a session", b.Watch(patient(t), "mine", func(backends.Record) {}), backends.ErrUnavailable)
	}
	theirs = swap(t, writer, "theirs", theirs, renewed(theirs))

	g.since()
	g.set(false)
	if got := untilUsable(t, b, "mine"); got != mine {
		t.Fatalf("what was refused for want of a session was sent later: %+v became %+v", mine, got)
	}
	if n := g.since()["multi"]; n != 0 {
		t.Fatalf("%d writes were kept and sent after the connection was made again", n)
	}
	w, a = watchZooKeeper(t, b, "theirs"), attendZooKeeper(t, b, "mine", mine)
	w.until(t, theirs)
	theirs = swap(t, writer, "theirs", theirs, renewed(theirs))
	w.until(t, theirs)
	swap(t, b, "mine", mine, renewed(mine))
	z.depose(t, "mine")
	wants(t, "a WatchPresence after a reconnection", within(t, a.result, "WatchPresence ends"), backends.ErrDeposed)
}

// A session that expires deposes the holder, and no more: the handle gets
// another one.
func TestZooKeeperSurvivesSessions(t *testing.T) {
	s := ownZooKeeper(t)
	g := newGate(t, s.Address, nil)
	z := zooKeeperTree(t, s)
	writer := connectZooKeeper(t, s.URL+"/suite")
	b := connectZooKeeper(t, "zookeeper://"+g.address()+"/suite?session_timeout=1s")
	mine := swap(t, b, "mine", backends.Record{}, term(1))
	data, stat, gone, err := z.conn.GetW("/suite/mine/leader")
	must(t, err)
	if string(data) != mine.Attempt.Nonce || stat.EphemeralOwner == 0 {
		t.Fatalf("the leader's node must be ephemeral and name the acquisition: it holds %q, of session %x", data, stat.EphemeralOwner)
	}
	a := attendZooKeeper(t, b, "mine", mine)

	g.set(true)
	if e := within(t, gone, "the session expires"); e.Type != zk.EventNodeDeleted {
		t.Fatalf("the leader's node: %v", e)
	}
	wants(t, "a WatchPresence whose connection is lost", within(t, a.result, "WatchPresence ends"), backends.ErrUnavailable)
	if got, err := writer.Load(patient(t), "mine"); err != nil || got != mine {
		t.Fatalf("the end of a session must not touch the record: %+v became %+v, error %v", mine, got, err)
	}
	g.set(false)
	if got := untilUsable(t, b, "mine"); got != mine {
		t.Fatalf("the record is %+v, want %+v", got, mine)
	}
	wants(t, "WatchPresence after the session", b.WatchPresence(patient(t), "mine", mine), backends.ErrDeposed)
	_, err = b.Swap(patient(t), "mine", mine, renewed(mine))
	wants(t, "renewing after the session", err, backends.ErrDeposed)

	// A node of another session that names our acquisition is not ours either.
	z.make(t, "/suite/mine/leader", mine.Attempt.Nonce, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	wants(t, "WatchPresence of another session's node", b.WatchPresence(patient(t), "mine", mine), backends.ErrDeposed)

	former := mine
	mine = swap(t, b, "mine", mine, term(2)) // and is replaced
	swap(t, b, "mine", mine, renewed(mine))
	wants(t, "WatchPresence of a former acquisition", b.WatchPresence(patient(t), "mine", former), backends.ErrDeposed)
	if data, _, err = z.conn.Get("/suite/mine/leader"); err != nil || string(data) != mine.Attempt.Nonce {
		t.Fatalf("the leader's node holds %q, error %v", data, err)
	}
}

// Calls on a server that says nothing return at their deadline, and so do
// opening and closing; when it goes on, the handle does.
func TestZooKeeperDeadlines(t *testing.T) {
	s := ownZooKeeper(t)
	b, closing := connectZooKeeper(t, s.URL), connectZooKeeper(t, s.URL)
	r := swap(t, b, "a", backends.Record{}, term(1))
	must(t, s.Pause())
	short := func(doing string, call func(ctx context.Context) error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		result := make(chan error, 1)
		go func() { result <- call(ctx) }()
		err := within(t, result, doing+" returns at its deadline")
		wants(t, doing, err, context.DeadlineExceeded)
		wants(t, doing, err, backends.ErrUnavailable)
	}
	short("Load", func(ctx context.Context) error { _, err := b.Load(ctx, "a"); return err })
	short("Swap", func(ctx context.Context) error { _, err := b.Swap(ctx, "a", r, renewed(r)); return err })
	short("Watch", func(ctx context.Context) error { return b.Watch(ctx, "a", func(backends.Record) {}) })
	short("WatchPresence", func(ctx context.Context) error { return b.WatchPresence(ctx, "a", r) })
	short("Open", func(ctx context.Context) error { _, err := backends.Open(ctx, s.URL); return err })
	result := make(chan error, 1)
	go func() { result <- closing.Close() }()
	must(t, within(t, result, "Close returns"))
	must(t, s.Continue())
	got := untilUsable(t, b, "a")
	if got != r && got.Attempt != renewed(r).Attempt {
		t.Fatalf("the record is %+v", got)
	}
	w := watchZooKeeper(t, b, "a")
	w.until(t, got)
}

// Changes to the tree by hand are survived or refused.
func TestZooKeeperTree(t *testing.T) {
	s := ownZooKeeper(t)
	z := zooKeeperTree(t, s)
	anyone := zk.WorldACL(zk.PermAll)
	b := connectZooKeeper(t, s.URL+"/suite/deep/down")
	path := "/suite/deep/down/"
	r := swap(t, b, "a", backends.Record{}, term(1))
	w := watchZooKeeper(t, b, "a")
	w.until(t, r)

	t.Run("the prefix vanishes", func(t *testing.T) {
		z.deleteAll(t, "/suite/deep")
		w.until(t, backends.Record{})
		_, err := b.Swap(patient(t), "a", r, renewed(r))
		wants(t, "renewing", err, backends.ErrConflict)
		r = swap(t, b, "a", backends.Record{}, term(2))
		w.until(t, r)
	})
	t.Run("a deletion that stops halfway", func(t *testing.T) {
		r := swap(t, b, "half", backends.Record{}, vacated(term(1)))
		z.deleteChildren(t, path+"half")
		_, err := b.Load(patient(t), "half")
		wants(t, "reading", err, backends.ErrUnavailable)
		if !strings.Contains(err.Error(), "deleteall") {
			t.Errorf("the error does not say what to do: %v", err)
		}
		_, err = b.Swap(patient(t), "half", r, term(2))
		wants(t, "writing", err, backends.ErrUnavailable)
		_, err = b.Swap(patient(t), "half", backends.Record{}, term(2))
		wants(t, "creating", err, backends.ErrConflict)
		z.deleteAll(t, path+"half")
		swap(t, b, "half", backends.Record{}, term(2))
	})
	t.Run("somebody else's znode", func(t *testing.T) {
		for name, data := range map[string]string{"empty": "", "other": "host-1:8080", "word": "guard ", "id": "guard a/b\n{}"} {
			z.make(t, path+name, data, 0, anyone)
			z.make(t, path+name+"/child", "", 0, anyone)
			_, err := b.Load(patient(t), name)
			wants(t, "reading", err, backends.ErrForeignRecord)
			_, err = b.Swap(patient(t), name, backends.Record{}, term(1))
			wants(t, "creating", err, backends.ErrConflict)
			got, _, err := z.conn.Get(path + name)
			must(t, err)
			if string(got) != data {
				t.Fatalf("%q became %q", data, got)
			}
		}
	})
	t.Run("a leader's node made by hand", func(t *testing.T) {
		r := swap(t, b, "hand", backends.Record{}, vacated(term(1)))
		z.make(t, path+"hand/leader", "me", 0, anyone)
		r = swap(t, b, "hand", r, term(2)) // replaces it
		z.deleteChildren(t, path+"hand/leader")
		must(t, z.conn.Delete(path+"hand/leader", -1))
		z.make(t, path+"hand/leader", "me", 0, anyone)
		z.make(t, path+"hand/leader/child", "", 0, anyone)
		_, err := b.Swap(patient(t), "hand", r, term(3))
		wants(t, "taking over", err, backends.ErrMisconfigured)
		if got, err := b.Load(patient(t), "hand"); err != nil || got != r {
			t.Fatalf("%+v became %+v, error %v", r, got, err)
		}
	})
	t.Run("further children", func(t *testing.T) {
		z.make(t, path+"a/notes", "ours", 0, anyone)
		r = swap(t, b, "a", r, renewed(r))
		w.until(t, r)
	})
}

func (z tree) deleteChildren(t testing.TB, path string) {
	t.Helper()
	children, _, err := z.conn.Children(path)
	must(t, err)
	for _, child := range children {
		z.deleteAll(t, path+"/"+child)
	}
}

// deleteAll removes one znode after the other, as zkCli.sh does.
func (z tree) deleteAll(t testing.TB, path string) {
	t.Helper()
	z.deleteChildren(t, path)
	must(t, z.conn.Delete(path, -1))
}

// With a login znodes are that user's alone; the login is repeated on every new
// connection, and never told.
func TestZooKeeperLogin(t *testing.T) {
	s := ownZooKeeper(t)
	g := newGate(t, s.Address, nil)
	z := zooKeeperTree(t, s)
	app, other := Login{"app", "p:ss@/word"}, Login{"app", "another-password"}
	b := connectZooKeeper(t, app.In("zookeeper://"+g.address()+"/suite/ours"))
	r := swap(t, b, "a", backends.Record{}, term(1))
	for _, path := range []string{"/suite/ours", "/suite/ours/a", "/suite/ours/a/leader"} {
		if _, _, err := z.conn.Get(path); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("anybody can read %s: %v", path, err)
		}
	}
	g.set(true)
	untilLost(t, b, "a")
	g.set(false)
	if got := untilUsable(t, b, "a"); got != r {
		t.Fatalf("%+v became %+v", r, got)
	}
	swap(t, connectZooKeeper(t, app.In(s.URL+"/suite/ours")), "a", r, term(2))

	err := openError(t, other.In(s.URL+"/suite/ours"))
	wants(t, "opening with another password", err, backends.ErrDenied)
	if strings.Contains(err.Error(), other.Password) || strings.Contains(b.Describe().Store, "p:ss") {
		t.Error("a password is told")
	}

	// A prefix that everybody may read, as the documentation sets it up, with
	// records that only their user may: what is open is no way in.
	z.make(t, "/suite/shared", "", 0, zk.WorldACL(zk.PermRead|zk.PermCreate))
	shared := connectZooKeeper(t, app.In(s.URL+"/suite/shared"))
	r = swap(t, shared, "a", backends.Record{}, term(1))
	swap(t, shared, "a", r, term(2))
	stranger := connectZooKeeper(t, other.In(s.URL+"/suite/shared"))
	_, err = stranger.Load(patient(t), "a")
	wants(t, "reading another's record", err, backends.ErrDenied)
	wants(t, "watching another's record", stranger.Watch(patient(t), "a", func(backends.Record) {}), backends.ErrDenied)
	_, err = stranger.Swap(patient(t), "a", r, term(3))
	wants(t, "writing another's record", err, backends.ErrDenied)

	// A connection of one's own.
	conn, _, err := zk.Connect([]string{s.Address}, 30*time.Second, zk.WithLogger(silence{}), zk.WithLogInfo(false))
	must(t, err)
	t.Cleanup(conn.Close)
	must(t, conn.AddAuth("digest", []byte(app.User+":"+app.Password)))
	own, err := zookeeper.New(t.Context(), conn, &zookeeper.Options{Prefix: "/suite/shared/", ACL: zk.DigestACL(zk.PermAll, app.User, app.Password)})
	must(t, err)
	r = untilUsable(t, own, "a")
	w := watchZooKeeper(t, own, "a")
	w.until(t, r)
	r = swap(t, own, "a", r, term(4))
	w.until(t, r)
	a := attendZooKeeper(t, own, "a", r)
	must(t, own.Close())
	wants(t, "a Watch whose handle is closed", within(t, w.result, "Watch ends"), backends.ErrUnavailable)
	wants(t, "a WatchPresence whose handle is closed", within(t, a.result, "WatchPresence ends"), backends.ErrUnavailable)
	if _, _, err := conn.Get("/suite/shared/a/leader"); err != nil {
		t.Errorf("Close of a handle from New must leave the connection and its nodes: %v", err)
	}
}

// One server of several is enough, and TLS is spoken if the URL says so, with
// the name that the URL has.
func TestZooKeeperHostsAndTLS(t *testing.T) {
	s := ownZooKeeper(t)
	certificate, ca := selfSigned(t)
	g := newGate(t, s.Address, &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAnyClientCert})
	_, port, err := net.SplitHostPort(g.address())
	must(t, err)
	files := "?ca=" + ca + "&cert=" + ca + "&key=" + ca
	b := connectZooKeeper(t, "zookeepers://"+vacantAddress(t)+",localhost:"+port+","+vacantAddress(t)+"/tls"+files)
	r := swap(t, b, "a", backends.Record{}, term(1))
	g.set(true)
	untilLost(t, b, "a")
	g.set(false)
	if got := untilUsable(t, b, "a"); got != r {
		t.Fatalf("%+v became %+v", r, got)
	}
	for what, url := range map[string]string{
		"an unknown authority": "zookeepers://localhost:" + port,
		"another name":         "zookeepers://localhost:" + port + "/tls" + files + "&server_name=other",
	} {
		wants(t, what, openError(t, url), backends.ErrMisconfigured)
	}
}

func selfSigned(t testing.TB) (tls.Certificate, string) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"},
		IsCA: true, BasicConstraintsValid: true}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	file := filepath.Join(t.TempDir(), "both.pem")
	both := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...)
	must(t, os.WriteFile(file, both, 0o600))
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: private}, file
}
