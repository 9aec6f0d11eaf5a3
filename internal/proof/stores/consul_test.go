//go:build consul

package stores

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/elector-go/elector/backends"
	_ "github.com/elector-go/elector/backends/consul"
	"github.com/elector-go/elector/conformance"
)

func TestConsulCluster(t *testing.T) { testCluster(t, Consul) }

func TestConsul(t *testing.T) {
	s := obtain(t, Consul)
	const prefix = "suite/"
	call := func(t testing.TB, method, name, query string, content []byte, into any) int {
		// Not of the test's context, which ends before clean-ups run.
		status, err := consulCall(context.Background(), s.Address, s.Admin.Password, method, "/v1/kv/"+prefix+name+query, content, into)
		if status != http.StatusNotFound {
			must(t, err)
		}
		return status
	}
	conform(t, Consul, s.How, conformance.Harness{
		Open:         opener(s.URL + "/" + prefix),
		OpenReadOnly: readOnlyOpener(s.URL + "/" + prefix),
		OpenFaulty:   faulty(s, s.URL+"/"+prefix),
		Slow:         true,
		Raw: &conformance.Raw{
			Get: func(t testing.TB, name string) (content []byte) {
				if call(t, http.MethodGet, name, "?raw&consistent", nil, &content) == http.StatusNotFound {
					return nil
				}
				return append([]byte{}, content...)
			},
			Put: func(t testing.TB, name string, content []byte) {
				call(t, http.MethodPut, name, "", content, nil)
			},
			Delete: func(t testing.TB, name string) { call(t, http.MethodDelete, name, "", nil, nil) },
		},
		Setups: consulSetups(t),
	})
}

// consulSetups are servers and tokens that do not serve.
func consulSetups(t *testing.T) map[string]func(testing.TB) error {
	secured := withACL(t)
	file := tokenFile(t, secured.User.Password)
	return map[string]func(testing.TB) error{
		"no server":            func(t testing.TB) error { return openError(t, "consul://"+vacantAddress(t)) },
		"no token":             func(t testing.TB) error { return openError(t, secured.URL) },
		"an unknown token":     func(t testing.TB) error { return openError(t, secured.URL+"?token_file="+tokenFile(t, uuid())) },
		"another's prefix":     func(t testing.TB) error { return openError(t, secured.URL+"/other?token_file="+file) },
		"TLS":                  func(t testing.TB) error { return openError(t, "consuls"+strings.TrimPrefix(secured.URL, "consul")) },
		"an unknown parameter": func(t testing.TB) error { return openError(t, secured.URL+"?stale=true") },
		"another datacenter":   func(t testing.TB) error { return openError(t, secured.URL+"?dc=nowhere&token_file="+file) },
	}
}

// consulRules are what the package's documentation says under Permissions.
const consulRules = `key_prefix "elector/" { policy = "write" }`

func withACL(t *testing.T) *Store {
	t.Helper()
	s, err := ConsulWithACL(t.Context(), consulRules)
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	return s
}

func tokenFile(t testing.TB, token string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(path, []byte(token+"\n"), 0o600))
	return path
}

// The documented rule is enough for all that an elector does, and does not reach
// beyond the prefix.
func TestConsulACL(t *testing.T) {
	s := withACL(t)
	b := opener(s.URL + "?token_file=" + tokenFile(t, s.User.Password))(t)
	defer func() { must(t, b.Close()) }()
	r := backends.Record{Holder: "h", Token: 1, TTL: 15e9, RenewEvery: 4e9, Attempt: backends.Attempt{Nonce: "N", Sequence: 1}}
	made, err := b.Swap(t.Context(), "a", backends.Record{}, r)
	must(t, err)
	next := made
	next.Attempt.Sequence++
	for _, o := range b.(backends.BatchSwapper).SwapMany(t.Context(), []backends.Change{{Name: "a", Prev: made, Next: next}}) {
		must(t, o.Err)
		made = o.Record
	}
	found, err := b.Load(t.Context(), "a")
	if must(t, err); found != made {
		t.Errorf("read %+v, want %+v", found, made)
	}
	names, err := b.(backends.Lister).List(t.Context())
	if must(t, err); strings.Join(names, " ") != "a" {
		t.Errorf("listed %q", names)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := b.(backends.Watcher).Watch(ctx, "a", func(backends.Record) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("Watch: %v", err)
	}
	vacant := made
	vacant.Holder = ""
	if _, err := b.Swap(t.Context(), "a", made, vacant); err != nil {
		t.Errorf("a release: %v", err)
	}

	// A token that may only read observes, and sees why it cannot write.
	reader := *s
	reader.User = Login{uuid(), uuid()}
	must(t, consulAllow(t.Context(), &reader, strings.Replace(consulRules, "write", "read", 1)))
	observer := opener(s.URL + "?token_file=" + tokenFile(t, reader.User.Password))(t)
	defer func() { must(t, observer.Close()) }()
	if _, err := observer.Load(t.Context(), "a"); err != nil {
		t.Errorf("an observer's Load: %v", err)
	}
	if _, err := observer.Swap(t.Context(), "b", backends.Record{}, r); !errors.Is(err, backends.ErrDenied) || !strings.Contains(err.Error(), consulRules) {
		t.Errorf("an observer's Swap: got %v, want ErrDenied with the rule", err)
	}
}

// elector doctor finds nothing on three servers, and on one that another can fail.
func TestConsulDoctor(t *testing.T) {
	program := buildTool(t)
	c := cluster(t, Consul)
	for _, args := range [][]string{nil, {"--read-only"}} {
		d := diagnose(t, program, c.URL(), append(args, "--ttl=10m")...)
		if d.code != 0 || len(d.lines) < 6 || slices.ContainsFunc(d.lines, func(l diagnosisLine) bool { return l.Level != "ok" || l.Seen == "" || l.Fix != "" }) {
			t.Errorf("%v: exit code %d: %s", args, d.code, d.output)
		}
		t.Log(d.output)
	}
	secured := withACL(t)
	file := tokenFile(t, secured.User.Password)
	for name, test := range map[string]struct {
		url         string
		args        []string
		code        int
		level       string
		check, cure string
	}{
		"one server":         {secured.URL + "?token_file=" + file, nil, 0, "warn", "servers", "run three servers"},
		"settings not shown": {secured.URL + "?token_file=" + file, nil, 0, "warn", "agent", "agent_prefix"},
		"slow servers":       {c.URL(), []string{"--ttl=4s"}, 0, "warn", "failover", "raft_multiplier = 1"},
		"no token":           {secured.URL, nil, 77, "fail", "connection", consulRules},
		"server down":        {"consul://" + vacantAddress(t), nil, 69, "fail", "connection", "see whether the agent runs"},
	} {
		t.Run(name, func(t *testing.T) {
			d := diagnose(t, program, test.url, append([]string{"--ttl=10m"}, test.args...)...)
			found := slices.ContainsFunc(d.lines, func(l diagnosisLine) bool {
				return l.Level == test.level && l.Check == test.check && strings.Contains(l.Seen+" "+l.Fix, test.cure)
			})
			if d.code != test.code || !found || strings.Contains(d.output, secured.User.Password) {
				t.Errorf("exit code %d, want %d and a line %q of %q with %q: %s", d.code, test.code, test.level, test.check, test.cure, d.output)
			}
		})
	}
}

// A write of the same bytes does not move a key's index. So every write must differ,
// which the attempt sees to.
func TestConsulSameBytes(t *testing.T) {
	s := obtain(t, Consul)
	type pair struct{ ModifyIndex uint64 }
	write := func(value string) uint64 {
		t.Helper()
		_, err := consulCall(t.Context(), s.Address, "", http.MethodPut, "/v1/kv/same", []byte(value), nil)
		must(t, err)
		var pairs []pair
		_, err = consulCall(t.Context(), s.Address, "", http.MethodGet, "/v1/kv/same?consistent", nil, &pairs)
		must(t, err)
		return pairs[0].ModifyIndex
	}
	first, same, other := write("1"), write("1"), write("2")
	if same != first || other <= first {
		t.Errorf("indexes %d, %d after a write of the same bytes and %d after one of others", first, same, other)
	}
	back := write("1")
	if back <= other {
		t.Errorf("index %d after the first bytes came back, and %d before", back, other)
	}
	body, err := json.Marshal([]any{map[string]any{"KV": map[string]any{"Verb": "cas", "Key": "same", "Index": first, "Value": []byte("3")}}})
	must(t, err)
	if status, err := consulCall(t.Context(), s.Address, "", http.MethodPut, "/v1/txn", body, nil); status != http.StatusConflict {
		t.Errorf("a cas from the first index: status %d, %v", status, err)
	}
}

// A token that may read the keys is enough on Consul.
func TestConsulReader(t *testing.T) {
	s := withACL(t)
	reader := *s
	reader.User = Login{uuid(), uuid()}
	must(t, consulAllow(t.Context(), &reader, strings.Replace(consulRules, "write", "read", 1)))
	readsOnly(t, s.URL+"?token_file="+tokenFile(t, s.User.Password), s.URL+"?token_file="+tokenFile(t, reader.User.Password), "")
}

// Where the servers want a right of its own to list keys, a reader needs the policy list.
func TestConsulKeyList(t *testing.T) {
	admin := Login{"admin", uuid()}
	s, err := startConsulAs(t.Context(), fmt.Sprintf(`acl { enabled = true default_policy = "deny" enable_key_list_policy = true tokens { initial_management = %q } }`, admin.Password), admin.Password)
	must(t, err)
	defer func() { must(t, s.Stop()) }()
	s.Admin = admin
	as := func(policy string) string {
		t.Helper()
		with := *s
		with.User = Login{uuid(), uuid()}
		must(t, consulAllow(t.Context(), &with, strings.Replace(consulRules, "write", policy, 1)))
		return s.URL + "?token_file=" + tokenFile(t, with.User.Password)
	}
	candidate := as("write")
	readsOnly(t, candidate, as("list"), "")
	calls := readerCalls(t, as("read"))
	if err := calls["list"]; !errors.Is(err, backends.ErrDenied) || !strings.Contains(err.Error(), `key_prefix "elector/" { policy = "list" }`) {
		t.Errorf("list with the policy read: %v", err)
	}
	delete(calls, "list")
	for call, err := range calls {
		if err != nil {
			t.Errorf("%s with the policy read: %v", call, err)
		}
	}
}
