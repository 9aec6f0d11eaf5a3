//go:build redis

package stores

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/redis"
	"github.com/elector-go/elector/conformance"
)

// allowRedis makes a user with the rights, and nothing else.
func allowRedis(t testing.TB, s *Store, user string, rights []string) Login {
	t.Helper()
	l := Login{user, uuid()}
	must(t, s.RedisUser(context.Background(), l, rights...))
	return l
}

// The suite runs with users that have the documented rights and no others.
func TestRedis(t *testing.T) {
	s := obtain(t, Redis)
	candidate, reader := s.URL, s.URL
	if s.server != nil {
		candidate = allowRedis(t, s, "candidate", RedisCandidate).In(s.URL)
		reader = allowRedis(t, s, "reader", RedisReader).In(s.URL)
	}
	client, ctx := s.RedisClient(), context.Background() // the test's context ends before clean-ups run
	t.Cleanup(func() { client.Close() })
	conform(t, Redis, s.How, conformance.Harness{
		Open:         opener(candidate),
		OpenReadOnly: readOnlyOpener(reader),
		OpenFaulty:   faulty(s, candidate),
		Slow:         true,
		Raw: &conformance.Raw{
			Get: func(t testing.TB, name string) []byte {
				content, err := client.Get(ctx, "elector:"+name).Bytes()
				if errors.Is(err, goredis.Nil) {
					return nil
				}
				must(t, err)
				return content
			},
			Put: func(t testing.TB, name string, content []byte) {
				must(t, client.Set(ctx, "elector:"+name, content, 0).Err())
			},
			Delete: func(t testing.TB, name string) { must(t, client.Del(ctx, "elector:"+name).Err()) },
		},
		Setups: redisSetups(t),
	})
}

// redisSetups are servers and users that do not serve.
func redisSetups(t *testing.T) map[string]func(testing.TB) error {
	start := func(settings ...string) *Store {
		s, err := StartRedis(t.Context(), settings...)
		must(t, err)
		t.Cleanup(func() { must(t, s.Stop()) })
		return s
	}
	durable := start(RedisDurable...)
	with := func(query string, settings ...string) func(testing.TB) error {
		return func(t testing.TB) error { return openError(t, start(settings...).URL+query) }
	}
	as := func(url string) func(testing.TB) error {
		return func(t testing.TB) error { return openError(t, url) }
	}
	setups := map[string]func(testing.TB) error{
		"no server":            as("redis://" + vacantAddress(t)),
		"a wrong password":     as(Login{allowRedis(t, durable, "candidate", RedisCandidate).User, "not-the-password"}.In(durable.URL)),
		"no rights":            as(allowRedis(t, durable, "stranger", nil).In(durable.URL)),
		"another prefix":       as(allowRedis(t, durable, "reader", RedisReader).In(durable.URL) + "?readonly=true&prefix=other:"),
		"TLS":                  as("rediss://" + durable.Address),
		"no such database":     as(durable.URL + "/99"),
		"an unknown parameter": as(durable.URL + "?stale=true"),
		"two servers":          as(durable.URL + "," + durable.Address),
		"nothing on disk":      with("", "--appendonly", "no"),
		"fsync each second":    with("", "--appendonly", "yes"),
		"no fsync on rewrite":  with("", append(RedisDurable, "--no-appendfsync-on-rewrite", "yes")...),
		"eviction":             with("", append(RedisDurable, "--maxmemory-policy", "allkeys-lru")...),
		"stated and evicting":  with("?durability=stated", append(RedisDurable, "--maxmemory-policy", "allkeys-lfu")...),
		"a cluster":            with("?durability=lossy", append(RedisDurable, "--cluster-enabled", "yes")...),
	}
	for name, open := range setups {
		setups[name] = func(t testing.TB) error {
			err := open(t)
			t.Logf("%s: %v", name, err)
			return err
		}
	}
	hidden := RedisCandidate[:len(RedisCandidate)-1]
	secret := allowRedis(t, durable, "hidden", hidden).In(durable.URL)
	setups["a hidden configuration"] = as(secret)
	b := opener(secret + "?durability=stated")(t) // what the operator says
	must(t, b.Close())
	if d := b.Describe(); d.Lossy != "" {
		t.Errorf("stated: %q", d.Lossy)
	}
	return setups
}

// A user with the documented rights may do what it must; a reader writes nothing.
func TestRedisReader(t *testing.T) {
	s := obtain(t, Redis)
	readsOnly(t, allowRedis(t, s, "candidate", RedisCandidate).In(s.URL), allowRedis(t, s, "reader", RedisReader).In(s.URL), "")
}

// A service's own client, with the library's defaults, does for New, and is left as it is.
func TestRedisNew(t *testing.T) {
	s := obtain(t, Redis)
	o, err := goredis.ParseURL(s.URL)
	must(t, err)
	client := goredis.NewClient(o)
	t.Cleanup(func() { client.Close() })
	b, err := redis.New(t.Context(), client, &redis.Options{Prefix: "mine:"})
	must(t, err)
	r := swap(t, b, "a", backends.Record{}, term(1))
	if loaded, err := b.Load(t.Context(), "a"); err != nil || loaded != r {
		t.Errorf("got %+v, %v", loaded, err)
	}
	must(t, b.Close())
	if n, err := client.Exists(t.Context(), "mine:a").Result(); err != nil || n != 1 {
		t.Errorf("the client finds %d records after Close: %v", n, err)
	}
}

// elector doctor finds each set-up that loses acknowledged writes.
func TestRedisDoctor(t *testing.T) {
	program := buildTool(t)
	start := func(settings ...string) *Store {
		s, err := StartRedis(t.Context(), settings...)
		must(t, err)
		t.Cleanup(func() { must(t, s.Stop()) })
		return s
	}
	durable := start(RedisDurable...)
	for _, args := range [][]string{nil, {"--read-only"}} {
		d := diagnose(t, program, durable.URL, append(args, "--ttl=10m")...)
		if d.code != 0 || len(d.lines) < 6 || slices.ContainsFunc(d.lines, func(l diagnosisLine) bool { return l.Level != "ok" || l.Seen == "" || l.Fix != "" }) {
			t.Errorf("%v: exit code %d: %s", args, d.code, d.output)
		}
		t.Log(d.output)
	}
	everysec, evicts := start("--appendonly", "yes"), start(append(RedisDurable, "--maxmemory-policy", "allkeys-lru")...)
	primary := start(RedisDurable...)
	host, port, err := net.SplitHostPort(primary.Address)
	must(t, err)
	replica := start(append(RedisDurable, "--replicaof", host, port)...)
	attached(t, primary)
	cluster := start(append(RedisDurable, "--cluster-enabled", "yes")...)
	hidden := allowRedis(t, durable, "hidden", RedisCandidate[:len(RedisCandidate)-1]).In(durable.URL)
	for name, test := range map[string]struct {
		url         string
		code        int
		level       string
		check, cure string
	}{
		"fsync each second":        {everysec.URL, 78, "fail", "connection", "appendfsync always"},
		"fsync each second, lossy": {everysec.URL + "?durability=lossy", 0, "warn", "disk", "appendfsync always"},
		"lossy":                    {everysec.URL + "?durability=lossy", 0, "warn", "durability", "keeps what it acknowledged"},
		"eviction":                 {evicts.URL, 78, "fail", "connection", "noeviction"},
		"a replica":                {primary.URL, 78, "fail", "connection", "without replicas"},
		"a replica, lossy":         {primary.URL + "?durability=lossy", 0, "warn", "replication", "without replicas"},
		"on the replica":           {replica.URL, 78, "fail", "connection", "name the primary"},
		"a cluster":                {cluster.URL, 78, "fail", "connection", "use one server"},
		"a hidden configuration":   {hidden, 78, "fail", "connection", "durability=stated"},
		"stated":                   {hidden + "?durability=stated", 0, "ok", "disk", "durability=stated"},
		"no server":                {"redis://" + vacantAddress(t), 69, "fail", "connection", "see whether the server runs"},
	} {
		t.Run(name, func(t *testing.T) {
			d := diagnose(t, program, test.url, "--ttl=10m")
			found := slices.ContainsFunc(d.lines, func(l diagnosisLine) bool {
				return l.Level == test.level && l.Check == test.check && strings.Contains(l.Seen+" "+l.Fix, test.cure)
			})
			if d.code != test.code || !found {
				t.Errorf("exit code %d, want %d and a line %q of %q with %q: %s", d.code, test.code, test.level, test.check, test.cure, d.output)
			}
		})
	}
}

// attached waits until a replica is connected.
func attached(t *testing.T, s *Store) {
	t.Helper()
	c := s.RedisClient()
	defer c.Close()
	for {
		is, err := c.Info(t.Context(), "replication").Result()
		must(t, err)
		if strings.Contains(is, "state=online") {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("no replica is connected")
		}
	}
}

// A server that gets a replica, or becomes one, after a handle was opened is refused by the
// next request of that handle, and by those that open.
func TestRedisBecomesAPair(t *testing.T) {
	start := func(settings ...string) *Store {
		s, err := StartRedis(t.Context(), settings...)
		must(t, err)
		t.Cleanup(func() { must(t, s.Stop()) })
		return s
	}
	ctx := t.Context()
	s := start(RedisDurable...)
	b := opener(s.URL)(t)
	defer b.Close()
	r := backends.Record{Holder: "h", Token: 1, TTL: 15e9, RenewEvery: 4e9, Attempt: backends.Attempt{Nonce: "N", Sequence: 1}}
	made, err := b.Swap(ctx, "a", backends.Record{}, r)
	must(t, err)
	refused := func(when string, want error) {
		t.Helper()
		next := made
		next.Attempt.Sequence++
		_, written := b.Swap(ctx, "a", made, next)
		_, read := b.Load(ctx, "a")
		_, listed := b.(backends.Lister).List(ctx)
		many := b.(backends.BatchSwapper).SwapMany(ctx, []backends.Change{{Name: "a", Prev: made, Next: next}})[0].Err
		for call, err := range map[string]error{"Swap": written, "Load": read, "List": listed, "SwapMany": many, "Open": openError(t, s.URL)} {
			if !errors.Is(err, want) {
				t.Errorf("%s, %s: %v", when, call, err)
			}
		}
		t.Logf("%s: %v", when, written)
	}
	host, port, err := net.SplitHostPort(s.Address)
	must(t, err)
	replica := start(append(RedisDurable, "--replicaof", host, port)...)
	attached(t, s)
	refused("with a replica", backends.ErrMisconfigured)
	must(t, replica.RedisDo(ctx, "REPLICAOF", "NO", "ONE"))
	c := s.RedisClient()
	defer c.Close()
	for ctx.Err() == nil {
		is, err := c.Info(ctx, "replication").Result()
		must(t, err)
		if strings.Contains(is, "connected_slaves:0") {
			break
		}
	}
	refused("without the link to its replica", backends.ErrMisconfigured)
	if err := openError(t, replica.URL); !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), "promoted") {
		t.Errorf("a promoted replica: %v", err)
	}
	must(t, s.RedisDo(ctx, "REPLICAOF", "127.0.0.1", replica.Address[len("127.0.0.1:"):]))
	refused("as a replica", backends.ErrReadOnly)
	must(t, replica.Restart(ctx)) // with its arguments, as a replica
	must(t, s.Restart(ctx))       // as one server: it keeps its data
	b2 := opener(s.URL)(t)
	defer b2.Close()
}

// A server that refuses new connections is no empty record: the client library leaves the
// commands of a pipeline as if they had empty answers.
func TestRedisUserGone(t *testing.T) {
	s := obtain(t, Redis)
	for user, readOnly := range map[string]bool{"candidate": false, "reader": true} {
		login := allowRedis(t, s, user, RedisCandidate)
		b := map[bool]func(string) func(testing.TB) backends.Backend{false: opener, true: readOnlyOpener}[readOnly](login.In(s.URL))(t)
		must(t, s.RedisDo(t.Context(), "ACL", "DELUSER", user)) // which ends its connections
		r, err := b.Load(t.Context(), "a")
		if errors.Is(err, backends.ErrUnavailable) { // it was sent on such a connection
			r, err = b.Load(t.Context(), "a")
		}
		if !errors.Is(err, backends.ErrDenied) {
			t.Errorf("%s: Load of a user that is gone: %+v, %v", user, r, err)
		}
		for _, o := range b.(backends.BatchLoader).LoadMany(t.Context(), []string{"a", "b"}) {
			if !errors.Is(o.Err, backends.ErrDenied) {
				t.Errorf("%s: LoadMany of a user that is gone: %+v, %v", user, o.Record, o.Err)
			}
		}
		must(t, b.Close())
	}
}

func TestRedisRotates(t *testing.T) {
	ctx := t.Context()
	s := obtain(t, Redis)
	rotates(t, s.URL, allowRedis(t, s, "rotated", RedisCandidate), func(l Login) {
		must(t, s.RedisUser(ctx, l, RedisCandidate...))
		must(t, s.RedisDo(ctx, "CLIENT", "KILL", "USER", l.User))
	})
}

// On a server that may lose writes elector leader says so.
func TestRedisLossyIsShown(t *testing.T) {
	program := buildTool(t)
	s := obtain(t, Redis)
	leadOnce(t, s.URL+"?durability=lossy")
	for query, shown := range map[string]bool{"": false, "?durability=lossy": true} {
		cmd := exec.CommandContext(t.Context(), program, "leader", readElection, "-o", "json")
		cmd.Env = append(os.Environ(), "ELECTOR_URL="+s.URL+query)
		var out, said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &said
		_ = cmd.Run() // 3: no candidate leads any more
		if found := strings.Contains(out.String(), `"lossy":"its URL has durability=lossy`) && strings.Contains(said.String(), "another process may lead at the same time"); found != shown || out.Len() == 0 {
			t.Errorf("%q: %s%s", query, out.String(), said.String())
		}
	}
}
