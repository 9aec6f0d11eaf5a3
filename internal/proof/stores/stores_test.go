package stores

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
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

	"github.com/elector-go/elector/internal/proof/child"
)

// each runs the test against a local store of every kind, whatever the
// environment says.
func each(t *testing.T, test func(t *testing.T, s *Store)) {
	for _, kind := range Kinds {
		t.Run(kind, func(t *testing.T) { test(t, begin(t, kind)) })
	}
}

func begin(t *testing.T, kind string) *Store {
	t.Helper()
	begun := time.Now()
	s, err := StartLocal(t.Context(), kind)
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

// ours is the process behind a store that local has started.
func ours(s *Store) *server { return s.server.(*server) }

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
	others, err := child.Of(s.PID)
	if err != nil {
		t.Fatal(err)
	}
	return append(others, s.PID, ours(s).guard.cmd.Process.Pid)
}

func alive(t *testing.T, pids []int) (found []int) {
	t.Helper()
	table, err := child.Table()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range table {
		for _, pid := range pids {
			if p.PID == pid && p.State != 'Z' {
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
		// PostgreSQL's processes come and go, the server and the guard stay.
		if n := len(alive(t, pids[len(pids)-2:])); n != 2 {
			t.Fatalf("%d of the processes %v are alive, want both", n, pids[len(pids)-2:])
		}
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		if left := alive(t, pids); left != nil {
			t.Errorf("processes %v are left", left)
		}
		if isThere(t, ours(s).dir) {
			t.Errorf("folder %s is left", ours(s).dir)
		}
		if err := s.Stop(); err != nil {
			t.Errorf("the second Stop: %v", err)
		}
	})
}

func TestTwoSideBySide(t *testing.T) {
	each(t, func(t *testing.T, a *Store) {
		b := begin(t, a.Kind)
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

// What compare-and-swap compares is on the disk too, and does not come back.
func TestGenerationsSurviveRestart(t *testing.T) {
	s := begin(t, GCS)
	generation := func() int64 {
		t.Helper()
		r, err := open(t, s).(gcsLink).NewReader(t.Context())
		must(t, err)
		defer r.Close()
		return r.Attrs.Generation
	}
	put(t, open(t, s), "v")
	before := generation()
	must(t, s.Kill())
	must(t, s.Restart(t.Context()))
	if after := generation(); after != before {
		t.Errorf("the generation became %d, was %d", after, before)
	}
	put(t, open(t, s), "v")
	if next := generation(); next == before {
		t.Errorf("the generation %d came again", next)
	}
}

func TestDeathIsReported(t *testing.T) {
	for _, kind := range Kinds {
		t.Run(kind, func(t *testing.T) {
			s, err := StartLocal(t.Context(), kind)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(ours(s).logPath(), []byte("out of cheese\n"), 0); err != nil {
				t.Fatal(err)
			}
			if err := child.Signal(syscall.SIGKILL, s.PID); err != nil {
				t.Fatal(err)
			}
			<-ours(s).exited
			if err := s.Restart(t.Context()); err == nil {
				t.Error("Restart hides the death")
			}
			err = s.Stop()
			if err == nil || !strings.Contains(err.Error(), "died by itself") || !strings.Contains(err.Error(), "out of cheese") {
				t.Errorf("Stop says %v", err)
			}
			if isThere(t, ours(s).dir) {
				t.Errorf("folder %s is left", ours(s).dir)
			}
		})
	}
}

func TestMissingProgram(t *testing.T) {
	t.Setenv("ELECTOR_STORES_DIR", t.TempDir())
	t.Setenv(methodVariable, "")
	for _, kind := range Kinds {
		if kind == Postgres {
			continue // one that is installed on the machine will do
		}
		t.Setenv(variables[kind], "")
		_, err := first(t.Context(), kind, []method{{byEnvironment, environment}, {byProcess, StartLocal}})
		for _, want := range []string{variables[kind] + " is not set", byProcess, "make stores"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error does not say %q: %v", kind, want, err)
			}
		}
	}
}

func TestUnknownKind(t *testing.T) {
	if _, err := Start(t.Context(), "clay tablets"); err == nil || !strings.Contains(err.Error(), "known are") {
		t.Errorf("it says %v", err)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv(methodVariable, "")
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
				t.Errorf("%s of a store that it did not start returns %v", name, err)
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

func TestAddressIn(t *testing.T) {
	for _, c := range []struct{ kind, url, want string }{
		{Etcd, "etcd://a:1,b:2/prefix", "a:1"},
		{Etcd, "etcd://u:p@a,b", "a:2379"},
		{Postgres, "postgres://u:p@a/db?sslmode=disable", "a:5432"},
		{Postgres, "postgres://u:p@[::1]/db", "[::1]:5432"},
		{ZooKeeper, "zookeeper://[::1]:1/prefix", "[::1]:1"},
		{ZooKeeper, "zookeeper:///prefix", "error"},
		{DynamoDB, "dynamodb://table?region=eu-west-1", ""},
		{DynamoDB, "dynamodb://table?endpoint=http%3A%2F%2Fa%3A1", "a:1"},
		{DynamoDB, "dynamodb://table?endpoint=http://a", "a:80"},
		{DynamoDB, "dynamodb://?region=eu-west-1", "error"},
		{GCS, "gs://bucket/prefix", ""},
		{GCS, "gs://bucket?endpoint=https%3A%2F%2Fa%2Fstorage%2Fv1%2F", "a:443"},
		{GCS, "gs://bucket?endpoint=a:1", "error"},
		{GCS, "%", "error"},
		{AzureBlob, "azureblob://account/container", ""},
		{AzureBlob, "azureblob://a/c?endpoint=http%3A%2F%2F127.0.0.1%3A1%2Fa", "127.0.0.1:1"},
	} {
		got, err := addressIn(c.kind, c.url)
		if err != nil {
			got = "error"
		}
		if got != c.want {
			t.Errorf("%s: %q, %v, want %q", c.url, got, err, c.want)
		}
	}
}

func TestCancelledStart(t *testing.T) {
	for _, kind := range Kinds {
		t.Run(kind, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if s, err := StartLocal(ctx, kind); !errors.Is(err, context.Canceled) {
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
		t.Error("without a login:", err)
	}
	if _, err := etcdClient(t.Context(), s.Address, Login{s.User.User, "wrong"}); !errors.Is(err, rpctypes.ErrAuthFailed) {
		t.Error("a wrong password:", err)
	}
}

func TestPostgresPasswords(t *testing.T) {
	s := begin(t, Postgres)
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
	s, err := StartLocal(context.Background(), kind)
	if err == nil && paused {
		err = s.Pause()
	}
	others, err2 := child.Of(s.PID)
	if err := errors.Join(err, err2); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(ours(s).dir, s.PID, strings.Trim(fmt.Sprint(others), "[]"))
	select {}
}

func TestNothingOutlivesUs(t *testing.T) {
	var whats []string
	for _, kind := range Kinds {
		whats = append(whats, kind, kind+" paused")
	}
	for _, what := range whats {
		t.Run(what, func(t *testing.T) {
			helped := exec.Command(os.Args[0])
			helped.Env = append(os.Environ(), helper+"="+what)
			out, err := helped.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := helped.Start(); err != nil {
				t.Fatal(err)
			}
			line, _ := bufio.NewReader(out).ReadString('\n')
			helped.Process.Kill()
			helped.Wait()
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
			if err := child.WaitGone(pids...); err != nil {
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
