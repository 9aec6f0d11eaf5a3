package stores

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

var kinds = []string{Etcd, Postgres}

// each runs the test against a local store of every kind, whatever the
// environment says.
func each(t *testing.T, test func(t *testing.T, s *Store)) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) { test(t, start(t, kind)) })
	}
}

func start(t *testing.T, kind string) *Store {
	t.Helper()
	begun := time.Now()
	s, err := local(t.Context(), kind)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v, ready after %v", s, time.Since(begun).Round(time.Millisecond))
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// A link is an open connection to a store.
type link interface {
	put(ctx context.Context, value string) error
	get(ctx context.Context) (string, error)
}

type etcdLink struct{ *clientv3.Client }

func (l etcdLink) put(ctx context.Context, value string) error {
	_, err := l.Put(ctx, "key", value)
	return err
}

func (l etcdLink) get(ctx context.Context) (string, error) {
	r, err := l.Get(ctx, "key")
	if err != nil || len(r.Kvs) == 0 {
		return "", err
	}
	return string(r.Kvs[0].Value), nil
}

type postgresLink struct{ *pgx.Conn }

func (l postgresLink) put(ctx context.Context, value string) error {
	_, err := l.Exec(ctx, "CREATE TABLE t AS SELECT $1::text AS value", value)
	return err
}

func (l postgresLink) get(ctx context.Context) (string, error) {
	var value string
	err := l.QueryRow(ctx, "SELECT value FROM t").Scan(&value)
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) && e.Code == "42P01" {
		return "", nil // no such table: never put
	}
	return value, err
}

// open connects to the URL that the store gives.
func open(t *testing.T, s *Store) link {
	t.Helper()
	if s.Kind == Etcd {
		client, err := etcdClient(t.Context(), strings.TrimPrefix(s.URL, "etcd://"), s.Admin)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		return etcdLink{client}
	}
	conn, err := pgx.Connect(t.Context(), s.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return postgresLink{conn}
}

func expect(t *testing.T, l link, want string) {
	t.Helper()
	got, err := l.get(t.Context())
	if err != nil || got != want {
		t.Fatalf("the store holds %q and error %v, want %q", got, err, want)
	}
}

func put(t *testing.T, l link, value string) {
	t.Helper()
	if err := l.put(t.Context(), value); err != nil {
		t.Fatal(err)
	}
}

// all returns every process of the store, its guard included.
func all(t *testing.T, s *Store) []int {
	t.Helper()
	others, err := children(s.PID)
	if err != nil {
		t.Fatal(err)
	}
	return append(others, s.PID, s.server.guard.cmd.Process.Pid)
}

func alive(t *testing.T, pids []int) (found []int) {
	t.Helper()
	table, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range table {
		for _, pid := range pids {
			if p.pid == pid && p.state != 'Z' {
				found = append(found, pid)
			}
		}
	}
	return found
}

func isThere(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func TestStartAndStop(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		l := open(t, s)
		put(t, l, "v")
		expect(t, l, "v")
		pids := all(t, s)
		if n := len(alive(t, pids)); n != len(pids) || n < 2 {
			t.Fatalf("%d of the processes %v are alive", n, pids)
		}
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		if left := alive(t, pids); left != nil {
			t.Errorf("processes %v are left", left)
		}
		if isThere(t, s.server.dir) {
			t.Errorf("folder %s is left", s.server.dir)
		}
		if err := s.Stop(); err != nil {
			t.Errorf("the second Stop: %v", err)
		}
	})
}

func TestTwoSideBySide(t *testing.T) {
	each(t, func(t *testing.T, a *Store) {
		b := start(t, a.Kind)
		put(t, open(t, a), "a")
		expect(t, open(t, b), "")
		put(t, open(t, b), "b")
		if err := b.Stop(); err != nil {
			t.Fatal(err)
		}
		expect(t, open(t, a), "a")
	})
}

func TestPauseAndContinue(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		standing := open(t, s)
		put(t, standing, "v")
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		answer := make(chan error, 1)
		go func() {
			_, err := standing.get(t.Context())
			answer <- err
		}()
		<-ctx.Done() // a paused server has no way to answer, however long this is
		select {
		case err := <-answer:
			t.Fatalf("a paused store gave an answer, error %v", err)
		default:
		}
		if err := s.Continue(); err != nil {
			t.Fatal(err)
		}
		if err := <-answer; err != nil {
			t.Fatalf("the request under way failed after Continue: %v", err)
		}
		expect(t, standing, "v")
	})
}

func TestStopWhilePaused(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		open(t, s)
		pids := all(t, s)
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		if left := alive(t, pids); left != nil {
			t.Errorf("processes %v are left", left)
		}
	})
}

func TestKillAndRestart(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		put(t, open(t, s), "v")
		pids, address := all(t, s), s.Address
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		if left := alive(t, pids); len(left) != 1 { // the guard
			t.Errorf("processes %v are left, want the guard's alone", left)
		}
		for name, f := range map[string]func() error{"Kill": s.Kill, "Pause": s.Pause, "Continue": s.Continue} {
			if err := f(); err == nil || !strings.Contains(err.Error(), "Restart") {
				t.Errorf("%s of a killed store says %v", name, err)
			}
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.Address != address {
			t.Errorf("the address became %s, was %s", s.Address, address)
		}
		expect(t, open(t, s), "v")
		before := s.PID
		if err := s.Restart(t.Context()); err != nil { // one that runs
			t.Fatal(err)
		}
		if s.PID == before {
			t.Error("Restart of a running store did not restart it")
		}
		expect(t, open(t, s), "v")
	})
}

func TestDeathIsReported(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			s, err := local(t.Context(), kind)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(s.server.logPath(), []byte("out of cheese\n"), 0); err != nil {
				t.Fatal(err)
			}
			if err := signal(syscall.SIGKILL, s.PID); err != nil {
				t.Fatal(err)
			}
			<-s.server.exited
			if err := s.Restart(t.Context()); err == nil {
				t.Error("Restart hides the death")
			}
			err = s.Stop()
			if err == nil || !strings.Contains(err.Error(), "died by itself") || !strings.Contains(err.Error(), "out of cheese") {
				t.Errorf("Stop says %v", err)
			}
			if isThere(t, s.server.dir) {
				t.Errorf("folder %s is left", s.server.dir)
			}
		})
	}
}

// No t.Parallel in this file: this test replaces choosePort.
func TestTakenPort(t *testing.T) {
	defer func() { choosePort = freePort }()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			taken := l.Addr().(*net.TCPAddr).Port
			calls := 0
			choosePort = func() (int, error) {
				if calls++; calls == 1 {
					return taken, nil
				}
				return freePort()
			}
			s := start(t, kind)
			if calls != 2 {
				t.Errorf("%d ports were chosen, want 2", calls)
			}
			put(t, open(t, s), "v")

			choosePort = func() (int, error) { return taken, nil }
			if s, err := local(t.Context(), kind); !errors.Is(err, errPortTaken) {
				t.Errorf("with every port taken: %v, %v", s, err)
			}
		})
	}
}

// A server of the same kind on the chosen port answers, but is not ours.
func TestPortTakenByTheSameKind(t *testing.T) {
	defer func() { choosePort = freePort }()
	each(t, func(t *testing.T, first *Store) {
		calls := 0
		choosePort = func() (int, error) {
			if calls++; calls == 1 {
				return first.server.port, nil
			}
			return freePort()
		}
		second := start(t, first.Kind)
		if second.Address == first.Address {
			t.Fatal("two stores have one address")
		}
	})
}

func TestMissingProgram(t *testing.T) {
	t.Setenv("ELECTOR_STORES_DIR", t.TempDir())
	t.Setenv("ELECTOR_TEST_ETCD", "")
	s, err := Start(t.Context(), Etcd)
	if err == nil {
		t.Fatal(s.Stop(), "started from an empty folder")
	}
	for _, want := range []string{"ELECTOR_TEST_ETCD is not set", "local process", "make stores"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}

func TestUnknownKind(t *testing.T) {
	if _, err := Start(t.Context(), "clay tablets"); err == nil || !strings.Contains(err.Error(), "known are") {
		t.Errorf("it says %v", err)
	}
}

func TestEnvironment(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		t.Setenv(variables[s.Kind], s.URL)
		named, err := Start(t.Context(), s.Kind)
		if err != nil {
			t.Fatal(err)
		}
		put(t, open(t, named), "v")
		for name, f := range map[string]func() error{"Kill": named.Kill, "Pause": named.Pause, "Continue": named.Continue,
			"Restart": func() error { return named.Restart(t.Context()) }} {
			if err := f(); err == nil || !strings.Contains(err.Error(), "did not start it") {
				t.Errorf("%s of somebody else's store says %v", name, err)
			}
		}
		if err := named.Stop(); err != nil {
			t.Error(err)
		}
		expect(t, open(t, s), "v") // it is still there

		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		t.Setenv(variables[s.Kind], Login{"u", "hunter2"}.In(s.URL))
		named, err = Start(t.Context(), s.Kind)
		if err == nil || strings.Contains(err.Error(), "local process") {
			t.Errorf("nothing listens there: %v, %v", named, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("a password is in: %v", err)
		}
	})
}

func TestCancelledStart(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if s, err := local(ctx, kind); !errors.Is(err, context.Canceled) {
				t.Errorf("it says %v, %v", s, err)
			}
		})
	}
}

func TestEtcdWithAuth(t *testing.T) {
	s, err := EtcdWithAuth(t.Context(), "mine/")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}()
	if err := s.Restart(t.Context()); err != nil { // it knows the new password
		t.Fatal(err)
	}
	connect := func(as Login) *clientv3.Client {
		t.Helper()
		c, err := etcdClient(t.Context(), s.Address, as)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	put := func(as Login, key string) error {
		_, err := connect(as).Put(t.Context(), key, "v")
		return err
	}
	if err := put(s.User, "mine/key"); err != nil {
		t.Error("User, own key:", err)
	}
	if err := put(s.User, "other"); !errors.Is(err, rpctypes.ErrPermissionDenied) {
		t.Error("User, another key:", err)
	}
	if err := put(s.Admin, "other"); err != nil {
		t.Error("Admin:", err)
	}
	if err := put(Login{}, "mine/key"); !errors.Is(err, rpctypes.ErrUserEmpty) {
		t.Error("nobody:", err)
	}
	if _, err := etcdClient(t.Context(), s.Address, Login{s.User.User, "wrong"}); !errors.Is(err, rpctypes.ErrAuthFailed) {
		t.Error("a wrong password:", err)
	}
}

func TestPostgresPasswords(t *testing.T) {
	s := start(t, Postgres)
	connect := func(url string) (*pgx.Conn, error) {
		conn, err := pgx.Connect(t.Context(), url)
		if err == nil {
			t.Cleanup(func() { conn.Close(context.Background()) })
		}
		return conn, err
	}
	code := func(err error) string {
		e := (*pgconn.PgError)(nil)
		if errors.As(err, &e) {
			return e.Code
		}
		return fmt.Sprint(err)
	}
	if _, err := connect(Login{s.User.User, "wrong"}.In(s.PasswordURL)); code(err) != "28P01" {
		t.Error("a wrong password:", err)
	}
	user, err := connect(s.User.In(s.PasswordURL))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := user.Exec(t.Context(), "CREATE TABLE t ()"); code(err) != "42501" {
		t.Error("User creates a table:", err)
	}
	admin, err := connect(s.Admin.In(s.PasswordURL))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Exec(t.Context(), "GRANT CREATE ON SCHEMA public TO "+s.User.User); err != nil {
		t.Fatal(err)
	}
	if _, err := user.Exec(t.Context(), "CREATE TABLE t ()"); err != nil {
		t.Error("User creates a table with the right to:", err)
	}
}

func TestLoginPrintsNoPassword(t *testing.T) {
	s := &Store{Admin: Login{"a", "hunter2"}, User: Login{"b", "hunter2"}}
	for _, format := range []string{"%v", "%+v", "%s", "%#v"} {
		for _, v := range []any{s, *s, s.Admin} {
			if got := fmt.Sprintf(format, v); strings.Contains(got, "hunter2") {
				t.Errorf("%s of %T shows the password", format, v)
			}
		}
	}
}

// helper is set in the child of TestNothingOutlivesUs.
const helper = "ELECTOR_STORES_HELPER"

// startAndHang starts a store, stops its processes if asked to, tells about it
// and waits to be killed.
func startAndHang(what string) {
	kind, paused := strings.CutSuffix(what, " paused")
	s, err := local(context.Background(), kind)
	if err == nil && paused {
		err = s.Pause()
	}
	others, err2 := children(s.PID)
	if err := errors.Join(err, err2); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(s.server.dir, s.PID, strings.Trim(fmt.Sprint(others), "[]"))
	select {}
}

func TestNothingOutlivesUs(t *testing.T) {
	for _, what := range []string{Etcd, Postgres, Etcd + " paused", Postgres + " paused"} {
		t.Run(what, func(t *testing.T) {
			child := exec.Command(os.Args[0])
			child.Env = append(os.Environ(), helper+"="+what)
			out, err := child.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			line, _ := bufio.NewReader(out).ReadString('\n')
			child.Process.Kill()
			child.Wait()
			fields := strings.Fields(line)
			if len(fields) < 2 || !filepath.IsAbs(fields[0]) {
				t.Fatalf("the child says %q", line)
			}
			var pids []int
			for _, f := range fields[1:] {
				pid, err := strconv.Atoi(f)
				if err != nil {
					t.Fatal(err)
				}
				pids = append(pids, pid)
			}
			if err := waitGone(pids); err != nil {
				t.Error(err)
			}
			for deadline := time.Now().Add(30 * time.Second); isThere(t, fields[0]); {
				if time.Now().After(deadline) {
					t.Fatalf("folder %s is left", fields[0])
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
}
