package stores

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/elector-go/elector/internal/proof/chaos/network"
	"github.com/elector-go/elector/internal/proof/child"
	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// buildTool builds the command elector.
func buildTool(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../../cmd/elector")
	must(t, err)
	program := filepath.Join(t.TempDir(), "elector")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program, ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// A diagnosis is what a run of elector doctor printed.
type diagnosis struct {
	lines  []diagnosisLine
	code   int
	output string // with what went to standard error
}

type diagnosisLine struct{ Level, Check, Seen, Fix string }

// diagnose runs elector doctor.
func diagnose(t *testing.T, program, storeURL string, args ...string) (d diagnosis) {
	t.Helper()
	cmd := exec.Command(program, append([]string{"doctor", "-o", "json"}, args...)...)
	var out, log bytes.Buffer
	cmd.Env = append(os.Environ(), "ELECTOR_URL="+storeURL)
	cmd.Stdout, cmd.Stderr = &out, &log
	must(t, child.Start(cmd))
	if err := cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	d.code, d.output = cmd.ProcessState.ExitCode(), out.String()+log.String()
	for line := range bytes.Lines(out.Bytes()) {
		var l diagnosisLine
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		d.lines = append(d.lines, l)
	}
	return d
}

func TestDoctor(t *testing.T) {
	AnyCredentials()
	program := buildTool(t)
	t.Run("finds nothing", func(t *testing.T) { doctorFindsNothing(t, program) })
	t.Run("takes turns", func(t *testing.T) { doctorsTakeTurns(t, program) })
	t.Run("finds", func(t *testing.T) { doctorFinds(t, program) })
}

// On a store that is set up as its package advises, every check is ok.
func doctorFindsNothing(t *testing.T, program string) {
	// A long TTL: a slow machine is not what is looked for.
	for name, test := range map[string]struct {
		url  func(t *testing.T) string
		args []string
	}{
		"memory": {func(*testing.T) string { return "memory://" }, []string{"--ttl=10m"}},
		"file":   {func(t *testing.T) string { return "file://" + t.TempDir() }, []string{"--ttl=10m"}},
		Etcd: {func(t *testing.T) string {
			s := begin(t, Etcd)
			compact(t, s)
			return s.URL
		}, []string{"--ttl=10m"}},
		"three of etcd": {func(t *testing.T) string {
			c := cluster(t, Etcd)
			compact(t, c.Members[0])
			return c.URL()
		}, []string{"--ttl=10m"}},
		"three of zookeeper": {func(t *testing.T) string { return cluster(t, ZooKeeper).URL() + "?session_timeout=60s" }, []string{"--ttl=60s"}},
		Postgres:             {func(t *testing.T) string { return synced(t).URL }, []string{"--ttl=10m"}},
		ZooKeeper:            {func(t *testing.T) string { return begin(t, ZooKeeper).URL + "?session_timeout=60s" }, []string{"--ttl=60s"}},
		DynamoDB:             {func(t *testing.T) string { return begin(t, DynamoDB).URL }, []string{"--ttl=10m"}},
		GCS:                  {func(t *testing.T) string { return begin(t, GCS).URL }, []string{"--ttl=10m"}},
	} {
		t.Run(name, func(t *testing.T) {
			storeURL := test.url(t)
			d := diagnose(t, program, storeURL, test.args...)
			bad := func(l diagnosisLine) bool { return l.Level != "ok" || l.Seen == "" || l.Fix != "" }
			if d.code != 0 || len(d.lines) < 6 || slices.ContainsFunc(d.lines, bad) {
				t.Fatalf("exit code %d: %s", d.code, d.output)
			}
			t.Log(d.output)
			if name == "memory" { // the record ended with the process
				return
			}
			cmd := exec.Command(program, "leader", "elector-doctor")
			cmd.Env = append(os.Environ(), "ELECTOR_URL="+storeURL)
			if out, _ := cmd.Output(); cmd.ProcessState.ExitCode() != 3 {
				t.Errorf("after it the election is not vacant: %s", out)
			}
			if d := diagnose(t, program, storeURL, append(test.args, "--read-only")...); d.code != 0 || slices.ContainsFunc(d.lines, bad) {
				t.Errorf("with --read-only, exit code %d: %s", d.code, d.output)
			}
		})
	}
}

// compact does what auto-compaction does after its first period.
func compact(t *testing.T, s *Store) {
	t.Helper()
	client, err := etcdClient(t.Context(), s.Address, s.Admin)
	must(t, err)
	defer client.Close()
	written, err := client.Put(t.Context(), "/elsewhere", "")
	must(t, err)
	_, err = client.Compact(t.Context(), written.Header.Revision)
	must(t, err)
}

// cluster starts three servers.
func cluster(t *testing.T, kind string) *Cluster {
	t.Helper()
	c, err := StartCluster(t.Context(), kind, 3)
	must(t, err)
	t.Cleanup(func() { must(t, c.Stop()) })
	ready(t, c)
	return c
}

// synced starts a PostgreSQL that syncs its commits.
func synced(t *testing.T) *Store {
	t.Helper()
	s, err := start(t.Context(), Postgres, durable)
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	return s
}

// Several doctors on one store do not take each other for faults.
func doctorsTakeTurns(t *testing.T, program string) {
	storeURL := "file://" + t.TempDir()
	found := make(chan diagnosis)
	for range 3 {
		go func() { found <- diagnose(t, program, storeURL, "--ttl=10m") }()
	}
	for range 3 {
		if d := <-found; d.code != 0 || slices.ContainsFunc(d.lines, func(l diagnosisLine) bool { return l.Level == "fail" }) {
			t.Errorf("exit code %d: %s", d.code, d.output)
		}
	}
}

// Each of these set-ups is found, with what to do.
func doctorFinds(t *testing.T, program string) {
	postgres, unsynced := synced(t), begin(t, Postgres)
	admin, err := pgx.Connect(t.Context(), postgres.URL)
	must(t, err)
	defer admin.Close(context.Background())
	exec := func(sql string) {
		t.Helper()
		_, err := admin.Exec(t.Context(), sql)
		must(t, err)
	}
	exec("create table short (name text primary key, schema int, holder text, token bigint, ttl bigint, renew_every bigint, attempt text, ext text)")
	exec("create unlogged table light (name text primary key, schema int, holder text, token bigint, ttl bigint, renew_every bigint, attempt text, value text, ext text)")
	exec("create role reader login")
	exec("create schema slow_clock")
	exec("create function slow_clock.clock_timestamp() returns timestamptz language sql as $$ select pg_catalog.clock_timestamp() - interval '1 day' $$")
	exec("grant select on elector to reader")
	for _, table := range []string{"swallowed", "ruled", "unvacuumed"} {
		must(t, opener(postgres.URL+"?create=true&table="+table)(t).Close())
	}
	exec("create function nothing() returns trigger language plpgsql as $$ begin return null; end $$")
	exec("create trigger swallows before update on swallowed for each row execute function nothing()")
	exec("create rule swallows as on insert to ruled do instead nothing")
	exec("alter table unvacuumed set (autovacuum_enabled = false)")
	alone := synced(t)
	waiting, err := pgx.Connect(t.Context(), alone.URL)
	must(t, err)
	defer waiting.Close(context.Background())
	for _, sql := range []string{"alter system set synchronous_standby_names = 'gone'", "select pg_reload_conf()"} {
		_, err := waiting.Exec(t.Context(), sql)
		must(t, err)
	}
	exec("create table unguarded (like elector including defaults, primary key (name))")
	follower, err := PostgresStandby(t.Context(), postgres)
	must(t, err)
	defer func() { must(t, follower.Stop()) }()
	otherEtcd, ensembles := begin(t, Etcd), [2]*Store{}
	for i := range ensembles {
		ensembles[i], err = Start(t.Context(), ZooKeeper)
		must(t, err)
		defer func() { must(t, ensembles[i].Stop()) }()
	}

	// A standby that asks for nothing yet.
	standby, err := pgx.Connect(t.Context(), postgres.URL+"?replication=database")
	must(t, err)
	defer standby.Close(context.Background())

	link, err := network.New(postgres.Address)
	must(t, err)
	defer link.Close()
	must(t, link.Delay(0, 100e6))
	must(t, link.Break(network.Latency))

	full, overfull, gone := filledEtcd(t, 45), filledEtcd(t, 80), vacantAddress(t)
	secured, err := EtcdWithAuth(t.Context(), "/elector/")
	must(t, err)
	defer func() { must(t, secured.Stop()) }()
	etcdMayRead(t, secured, "/elector/")

	short := cluster(t, Etcd)
	must(t, short.Members[2].Kill())
	must(t, short.Ready(t.Context())) // it may have been the leader

	// Each of these has a record of its own.
	for _, s := range []*Store{postgres, unsynced, ensembles[0], ensembles[1]} {
		diagnose(t, program, s.URL, "--ttl=10m")
	}

	for name, test := range map[string]struct {
		url         string
		args        []string
		code        int
		level       string
		check, cure string // contained in the line
	}{
		"wrong password": {url: Login{postgres.User.User, "not-the-password"}.In(postgres.PasswordURL), code: 77,
			level: "fail", check: "connection", cure: "check user and password"},
		"read-only": {url: postgres.URL + "?options=-c%20default_transaction_read_only=on", code: 78,
			level: "fail", check: "connection", cure: "name the primary"},
		"pooler with listen": {url: strings.Replace(postgres.URL, postgres.Address, deafTo(t, postgres.Address), 1) + "?sslmode=disable",
			level: "warn", check: "watch", cure: "write listen=false"},
		"unsynced commit": {url: unsynced.URL, code: 78,
			level: "fail", check: "commits", cure: "set fsync = on"},
		"asynchronous standby": {url: postgres.URL,
			level: "warn", check: "replication", cure: "set synchronous_standby_names"},
		"compaction off": {url: full.URL,
			level: "warn", check: "compaction", cure: "--auto-compaction-mode=periodic"},
		"quota nearly full": {url: full.URL,
			level: "warn", check: "quota of " + full.Address, cure: "etcdctl defrag"},
		"clock off by a day": {url: postgres.URL + "?search_path=slow_clock,pg_catalog,public",
			level: "warn", check: "clock", cure: "NTP"},
		"TTL below round trips": {url: postgres.Through(link.Address()) + "?sslmode=disable", args: []string{"--ttl=500ms"}, code: 78,
			level: "fail", check: "round trips", cure: "use a TTL of"},
		"wrong schema": {url: postgres.URL + "?table=short", code: 78,
			level: "fail", check: "connection", cure: "it has no column value text"},
		"missing right": {url: strings.Replace(postgres.URL, postgresAdmin+"@", "reader@", 1), code: 77,
			level: "fail", check: "connection", cure: "grant select, insert, update on"},
		"missing right, found by writing": {url: secured.User.In(secured.PasswordURL + "/elector/"), code: 77,
			level: "fail", check: "write", cure: "grant-permission"},
		"missing right that --read-only does not need": {url: secured.User.In(secured.PasswordURL + "/elector/"), args: []string{"--read-only"},
			level: "ok", check: "write"},
		"TLS mismatch": {url: strings.Replace(full.URL, "etcd:", "etcds:", 1), code: 69,
			level: "fail", check: "connection", cure: "whether they speak TLS (etcds://) or not (etcd://)"},
		"unlogged table": {url: postgres.URL + "?table=light", code: 78,
			level: "fail", check: "connection", cure: "set logged"},
		"one of three down": {url: short.URL(),
			level: "warn", check: "server " + short.Members[2].Address, cure: "start the server"},
		"a trigger that swallows updates": {url: postgres.URL + "?table=swallowed", code: 78,
			level: "fail", check: "triggers", cure: "drop them"},
		"a trigger that swallows updates, by its effect": {url: postgres.URL + "?table=swallowed", code: 78,
			level: "fail", check: "write", cure: "a trigger, a rule or a policy"},
		"a rule that swallows insertions": {url: postgres.URL + "?table=ruled", code: 78,
			level: "fail", check: "triggers", cure: "swallows"},
		"autovacuum off for the table": {url: postgres.URL + "?table=unvacuumed",
			level: "warn", check: "autovacuum", cure: "reset (autovacuum_enabled)"},
		"no index for guards": {url: postgres.URL + "?table=unguarded",
			level: "warn", check: "guards", cure: "create unique index concurrently"},
		"sessions that end": {url: postgres.URL + "?options=-c%20idle_session_timeout=30s",
			level: "warn", check: "idle_session_timeout", cure: "raise it above the TTL"},
		"statements that end": {url: postgres.URL + "?options=-c%20statement_timeout=20s",
			level: "warn", check: "statement_timeout", cure: "half a renewal interval"},
		"two primaries": {url: strings.Replace(postgres.URL, postgres.Address, postgres.Address+","+unsynced.Address, 1), code: 78,
			level: "fail", check: "one store", cure: "name only hosts of one store"},
		"two primaries, looked at": {url: strings.Replace(postgres.URL, postgres.Address, postgres.Address+","+unsynced.Address, 1), args: []string{"--read-only"}, code: 78,
			level: "fail", check: "one store", cure: "name only hosts of one store"},
		"a primary without the table": {url: strings.Replace(postgres.URL, postgres.Address, postgres.Address+","+unsynced.Address, 1) + "?table=unvacuumed", code: 78,
			level: "fail", check: "host " + unsynced.Address, cure: "set it up like the other hosts"},
		"a host that is down": {url: strings.Replace(postgres.URL, postgres.Address, postgres.Address+","+gone, 1),
			level: "warn", check: "host " + gone, cure: "start it"},
		"commits wait for a standby": {url: alone.URL, args: []string{"--read-only"}, code: 69,
			level: "fail", check: "replication", cure: "start the standby"},
		"a primary and its standby": {url: strings.Replace(postgres.URL, postgres.Address, postgres.Address+","+follower.Address, 1),
			level: "ok", check: "one store", cure: follower.Address + " show the record"},
		"two clusters of etcd, looked at": {url: "etcd://" + full.Address + "," + otherEtcd.Address, args: []string{"--read-only"}, code: 78,
			level: "fail", check: "clusters", cure: "the members of one cluster"},
		"no room in etcd": {url: overfull.URL, args: []string{"--read-only"}, code: 78,
			level: "fail", check: "server " + overfull.Address, cure: "alarm disarm"},
		"two clusters of etcd": {url: "etcd://" + full.Address + "," + otherEtcd.Address, code: 78,
			level: "fail", check: "one store", cure: "are two stores"},
		"two ensembles of ZooKeeper": {url: "zookeeper://" + ensembles[0].Address + "," + ensembles[1].Address, code: 78,
			level: "fail", check: "one store", cure: "are two stores"},
		"two ensembles of ZooKeeper, looked at": {url: "zookeeper://" + ensembles[0].Address + "," + ensembles[1].Address, args: []string{"--read-only"}, code: 78,
			level: "fail", check: "one store", cure: "are two stores"},
		"one of three members named": {url: "etcd://" + short.Members[0].Address,
			level: "warn", check: "servers", cure: "name all of them"},
		"records in memory": {url: "file://" + onTmpfs(t),
			level: "warn", check: "file system", cure: "a directory on a disk"},
		"server down": {url: "etcd://" + vacantAddress(t), code: 69,
			level: "fail", check: "connection", cure: "see whether the servers run"},
	} {
		t.Run(name, func(t *testing.T) {
			d := diagnose(t, program, test.url, append([]string{"--ttl=10m"}, test.args...)...)
			if d.code != test.code {
				t.Errorf("exit code %d, want %d", d.code, test.code)
			}
			found := slices.ContainsFunc(d.lines, func(l diagnosisLine) bool {
				return l.Level == test.level && l.Check == test.check && strings.Contains(l.Seen+" "+l.Fix, test.cure)
			})
			if !found {
				t.Errorf("no line %q of %q with %q", test.level, test.check, test.cure)
			}
			if u, _ := url.Parse(test.url); u.User != nil {
				if password, _ := u.User.Password(); password != "" && strings.Contains(d.output, password) {
					t.Error("it prints the password")
				}
			}
			t.Log(d.output)
		})
	}
}

// filledEtcd starts an etcd that never compacts, and writes so many MB of its 64, or
// until it refuses.
func filledEtcd(t *testing.T, most int) *Store {
	t.Helper()
	program, err := binaries.Etcd()
	must(t, err)
	s, err := newServer(t.Context(), recipe{
		name:    "etcd without compaction",
		program: program,
		arguments: func(s *server) []string {
			at := "http://" + s.address()
			all := etcdArguments(quick, etcdName(s), filepath.Join(s.dir, "data"), at, at)
			all = slices.DeleteFunc(all, func(a string) bool { return strings.HasPrefix(a, "--auto-compaction") })
			return append(all, "--quota-backend-bytes=67108864") // 64 MiB
		},
		ready: func(ctx context.Context, s *server) error { return etcdReady(ctx, s.address(), etcdName(s), Login{}) },
		quit:  syscall.SIGKILL,
	})
	must(t, err)
	t.Cleanup(func() { must(t, s.stop()) })
	client, err := etcdClient(t.Context(), s.address(), Login{})
	must(t, err)
	defer client.Close()
	for range most {
		_, err := client.Put(t.Context(), "/elsewhere", strings.Repeat("x", 1<<20))
		if errors.Is(err, rpctypes.ErrNoSpace) {
			break
		}
		must(t, err)
	}
	return &Store{Kind: Etcd, URL: "etcd://" + s.address(), Address: s.address(), server: s}
}

// onTmpfs returns a directory that ends with the machine's uptime.
func onTmpfs(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "elector-")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}

// etcdMayRead takes the right to write from the user.
func etcdMayRead(t *testing.T, s *Store, prefix string) {
	t.Helper()
	client, err := etcdClient(t.Context(), s.Address, s.Admin)
	must(t, err)
	defer client.Close()
	end := clientv3.GetPrefixRangeEnd(prefix)
	_, err = client.RoleRevokePermission(t.Context(), s.User.User, prefix, end)
	must(t, err)
	_, err = client.RoleGrantPermission(t.Context(), s.User.User, prefix, end, clientv3.PermissionType(clientv3.PermRead))
	must(t, err)
}
