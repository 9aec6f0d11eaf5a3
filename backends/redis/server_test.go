package redis

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// What may lose acknowledged writes is refused at Open and, where a connection is new or
// INFO shows it, later; durability=lossy accepts it, but no Cluster and no replica.
func TestRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		info   info              // besides that of serving
		config map[string]string // instead of that of synced; empty: hidden
		as     Durability
		reason string // empty: accepted
		lossy  bool   // accepted with durability=lossy
		kind   error
	}{
		"one server":                   {},
		"Valkey":                       {info: info{"server_name": "valkey", "valkey_version": "8.0.1"}},
		"volatile keys":                {info: info{"maxmemory_policy": "volatile-lru"}},
		"stated":                       {config: map[string]string{}, as: Stated},
		"a replica":                    {info: info{"connected_slaves": "1"}, reason: "without replicas", lossy: true},
		"a link that is cut":           {info: info{"repl_backlog_active": "1"}, reason: "repl-backlog-ttl", lossy: true},
		"promoted":                     {info: info{"second_repl_offset": "17"}, reason: "was promoted", lossy: true},
		"an unknown number":            {info: info{"connected_slaves": ""}, reason: "an unknown number of replicas", lossy: true},
		"as a replica":                 {info: info{"role": "slave"}, reason: "name the primary", kind: backends.ErrReadOnly},
		"no role":                      {info: info{"role": ""}, reason: "name the primary", kind: backends.ErrReadOnly},
		"several primaries":            {info: info{"role": "active-replica"}, reason: "name the primary", kind: backends.ErrReadOnly},
		"a Cluster":                    {info: info{"redis_mode": "cluster"}, reason: "use one server"},
		"a Cluster in another section": {info: info{"cluster_enabled": "1"}, reason: "use one server"},
		"a Sentinel":                   {info: info{"redis_mode": "sentinel"}, reason: "use one server"},
		"no AOF":                       {info: info{"aof_enabled": "0"}, reason: "appendonly yes", lossy: true},
		"no AOF, stated":               {info: info{"aof_enabled": "0"}, as: Stated, reason: "appendonly yes", lossy: true},
		"fsync each second":            {config: map[string]string{"appendfsync": "everysec", "no-appendfsync-on-rewrite": "no"}, reason: "appendfsync always", lossy: true},
		"fsync each second, stated":    {config: map[string]string{"appendfsync": "everysec", "no-appendfsync-on-rewrite": "no"}, as: Stated, reason: "appendfsync always", lossy: true},
		"no fsync on rewrite":          {config: map[string]string{"appendfsync": "always", "no-appendfsync-on-rewrite": "yes"}, reason: "no-appendfsync-on-rewrite no", lossy: true},
		"hidden":                       {config: map[string]string{}, reason: "durability=stated", lossy: true},
		"eviction":                     {info: info{"maxmemory_policy": "allkeys-lru"}, reason: "noeviction", lossy: true},
		"an unknown policy":            {info: info{"maxmemory_policy": ""}, reason: "noeviction", lossy: true},
		"loading":                      {info: info{"loading": "1", "aof_enabled": "0"}, reason: "loading its data", kind: backends.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			b, err := f.open(t, Options{Durability: test.as})
			if err != nil {
				t.Fatal(err)
			}
			become := func() {
				maps.Copy(f.info, test.info)
				if test.config != nil {
					f.config = test.config
				}
				if len(f.config) == 0 {
					f.config = nil
				}
			}
			kind := backends.ErrMisconfigured
			if test.kind != nil {
				kind = test.kind
			}
			refused := func(doing string, err error) {
				t.Helper()
				if test.reason == "" && err != nil || test.reason != "" && (!errors.Is(err, kind) || !strings.Contains(err.Error(), test.reason) || strings.Contains(err.Error(), "durability=lossy") != test.lossy) {
					t.Errorf("%s: %v; want %v with %q", doing, err, kind, test.reason)
				}
			}
			f.set(become)
			f.drop() // a restart
			_, err = b.Load(t.Context(), "a")
			refused("a Load after a restart", err)
			_, err = f.open(t, Options{Durability: test.as})
			refused("Open", err)
			_, err = f.open(t, Options{Durability: Lossy})
			if ok := test.lossy || test.reason == ""; ok != (err == nil) {
				t.Errorf("Open with durability=lossy: %v", err)
			}
			if _, err := f.open(t, Options{ReadOnly: true}); err != nil {
				t.Errorf("Open for reading alone: %v", err)
			}
		})
	}
}

// Load looks at the role and the replicas with each read, on an old connection too.
func TestLoadLooks(t *testing.T) {
	f := newFake(t)
	b, err := f.open(t, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[[2]string]error{
		{"role", "slave"}:              backends.ErrReadOnly,
		{"connected_slaves", "1"}:      backends.ErrMisconfigured,
		{"repl_backlog_active", "1"}:   backends.ErrMisconfigured,
		{"second_repl_offset", "2048"}: backends.ErrMisconfigured,
	} {
		f.set(func() { f.info = serving(); f.info[line[0]] = line[1] })
		if _, err := b.Load(t.Context(), "a"); !errors.Is(err, want) {
			t.Errorf("%s: Load: %v, want %v", line, err, want)
		}
		if o := b.LoadMany(t.Context(), []string{"a"}); !errors.Is(o[0].Err, want) {
			t.Errorf("%s: LoadMany: %v, want %v", line, o[0].Err, want)
		}
	}
}

// The scripts look at the same lines as Load.
func TestPreludeAgrees(t *testing.T) {
	for _, line := range []string{"role:master", "connected_slaves:0", "repl_backlog_active:0", "second_repl_offset:-1"} {
		name, value, _ := strings.Cut(line, ":")
		if !strings.Contains(prelude, "has('"+line+"')") {
			t.Errorf("the scripts do not look at %s", line)
		}
		is := serving()
		if is[name] != value {
			t.Errorf("%s: a server that serves has %q", line, is[name])
		}
		is[name] = "other"
		if err := Checked.checkReplication(is); err == nil {
			t.Errorf("Load does not look at %s", line)
		}
	}
}

// Setting up a connection outlives the request that needs it.
func TestSlowSetUp(t *testing.T) {
	f := newFake(t)
	b, err := f.open(t, Options{})
	if err != nil {
		t.Fatal(err)
	}
	taken := b.client.Conn()
	defer taken.Close()
	if err := taken.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	f.count("")
	answers := make(chan struct{})
	f.set(func() { f.late = map[string]chan struct{}{"CONFIG": answers} })
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := b.Load(ctx, "a"); !errors.Is(err, backends.ErrUnavailable) || !strings.Contains(err.Error(), "is being set up") {
		t.Errorf("a request while a connection is set up: %v", err)
	}
	close(answers)
	if _, err := b.Load(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if n := f.count("CONFIG"); n != 1 {
		t.Errorf("%d connections were set up for two requests; want 1", n)
	}
}

// A server that refuses a connection is an error, not an empty record.
func TestRefusedConnection(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		f := newFake(t)
		b, err := f.open(t, Options{ReadOnly: readOnly})
		if err != nil {
			t.Fatal(err)
		}
		b.client.Options().OnConnect = nil
		f.set(func() { f.answers["INFO"] = "-NOPERM\r\n"; f.answers["AUTH"] = "-WRONGPASS\r\n" })
		f.drop()
		b.client.Options().Password = "changed"
		if r, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrDenied) {
			t.Errorf("read-only %v: %+v, %v, want ErrDenied", readOnly, r, err)
		}
	}
}

// A write that got no answer is not sent a second time, and a script that the server does
// not know is sent with its text.
func TestNothingIsSentTwice(t *testing.T) {
	f := newFake(t)
	b, err := f.open(t, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := backends.Record{Holder: "h", Token: 1, TTL: 15e9, RenewEvery: 4e9, Attempt: backends.Attempt{Nonce: "N", Sequence: 1}}
	f.count("")
	f.set(func() { f.answers["EVALSHA"] = "" })
	if _, err := b.Swap(t.Context(), "a", backends.Record{}, r); !errors.Is(err, backends.ErrUnavailable) {
		t.Errorf("a lost answer: %v", err)
	}
	if n := f.count("EVALSHA"); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
	f.set(func() { f.answers["EVALSHA"] = "-NOSCRIPT No matching script\r\n"; f.answers["EVAL"] = "*1\r\n:1\r\n" })
	if _, err := b.Swap(t.Context(), "a", backends.Record{}, r); err != nil {
		t.Error(err)
	}
	for answer, want := range map[string]error{
		"*1\r\n:0\r\n":        backends.ErrConflict,
		"*1\r\n-OOM full\r\n": backends.ErrUnavailable,
		"*1\r\n-NOPERM\r\n":   backends.ErrDenied,
		"-ERR The user executing the script can't run this command or subcommand script: f00\r\n": backends.ErrDenied,
		"-READONLY it\r\n":     backends.ErrReadOnly,
		"-ELECTORREPLICAS\r\n": backends.ErrMisconfigured,
		"*0\r\n":               backends.ErrMisconfigured,
		":7\r\n":               backends.ErrMisconfigured,
		"*1\r\n+x\r\n":         backends.ErrMisconfigured,
	} {
		f.set(func() { f.answers["EVALSHA"] = answer })
		if _, err := b.Swap(t.Context(), "a", backends.Record{}, r); !errors.Is(err, want) || strings.Contains(answer, ":0") != errors.Is(err, backends.ErrConflict) {
			t.Errorf("%q: %v, want %v", answer, err, want)
		}
	}
}

type held backends.Acquisition

func (h held) Acquisition() (backends.Acquisition, error) { return backends.Acquisition(h), nil }

// A command that Lua could not pass on would end the script after the commands before it.
func TestCommitLongCommand(t *testing.T) {
	f := newFake(t)
	b, err := f.open(t, Options{})
	if err != nil {
		t.Fatal(err)
	}
	f.count("")
	_, err = Commit(t.Context(), held{Election: "a", Backend: b, Remaining: time.Second}, Command{"SET", "a", 1}, make(Command, mostWords+1))
	if err == nil || !strings.Contains(err.Error(), "command 2 of 2") || f.count("EVALSHA")+f.count("EVAL") != 0 {
		t.Errorf("the error is %v, after %d requests", err, f.count("EVALSHA"))
	}
}
