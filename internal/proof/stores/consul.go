package stores

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

func startConsul(ctx context.Context) (*Store, error) { return startConsulAs(ctx, "", "") }

// startConsulAs starts one server, with more settings. The token may ask it
// anything.
func startConsulAs(ctx context.Context, settings, token string) (*Store, error) {
	program, err := binaries.Consul()
	if err != nil {
		return nil, fmt.Errorf("%w; run go run ./cmd/fetch consul in internal/proof", err)
	}
	var rpc, serf int
	s, err := newServer(ctx, recipe{
		name:    "consul " + binaries.ConsulVersion,
		program: program,
		before: func(*server) (err error) {
			if rpc, err = choosePort(); err == nil {
				serf, err = choosePort()
			}
			return err
		},
		arguments: func(s *server) []string {
			return append(consulArguments(s.dirName(), filepath.Join(s.dir, "data"), "127.0.0.1", strconv.Itoa(s.port), rpc, serf),
				"-bind=127.0.0.1", "-bootstrap-expect=1", "-hcl="+settings)
		},
		ready: func(ctx context.Context, s *server) error { return consulReady(ctx, s.address(), s.dirName(), token) },
		quit:  syscall.SIGKILL,
	})
	if err != nil {
		return nil, err
	}
	return &Store{
		Kind:    Consul,
		How:     "local process consul " + binaries.ConsulVersion + " (built from its module)",
		URL:     "consul://" + s.address(),
		Address: s.address(),
		PID:     s.pid,
		server:  s,
	}, nil
}

// dirName is a name that no other server has.
func (s *server) dirName() string { return filepath.Base(s.dir) }

// consulArguments are for every server, whatever others there are. A follower
// waits for a second for its leader, as HashiCorp recommends for production. Values
// may be larger than by default, for the suite's bad records.
func consulArguments(name, data, client, http string, rpc, serf int) []string {
	return []string{"agent", "-server",
		"-node=" + name,
		"-data-dir=" + data,
		"-client=" + client,
		"-http-port=" + http,
		"-server-port=" + strconv.Itoa(rpc),
		"-serf-lan-port=" + strconv.Itoa(serf),
		"-serf-wan-port=-1", "-dns-port=-1", "-grpc-port=-1", "-grpc-tls-port=-1",
		"-disable-host-node-id",
		"-log-level=error",
		`-hcl=performance { raft_multiplier = 1 } disable_update_check = true connect { enabled = false } autopilot { cleanup_dead_servers = false } limits { kv_max_value_size = 2097152 http_max_conns_per_client = 1000 }`,
	}
}

// A consulSelf is what an agent says of itself.
type consulSelf struct {
	Config struct{ NodeName string }
	Stats  struct {
		Raft   struct{ State, Term string }
		Consul struct {
			Leader string `json:"leader_addr"`
		}
	}
}

// consulReady reads a key, for which there has to be a leader.
func consulReady(ctx context.Context, address, name, token string) error {
	var self consulSelf
	if _, err := consulCall(ctx, address, token, http.MethodGet, "/v1/agent/self", nil, &self); err != nil {
		return err
	}
	if self.Config.NodeName != name {
		return errors.New("another Consul answers on its port")
	}
	return consulAnswers(ctx, address, token)
}

// consulAnswers reads a key that no test writes, linearizably.
func consulAnswers(ctx context.Context, address, token string) error {
	status, err := consulCall(ctx, address, token, http.MethodGet, "/v1/kv/elector-ready?consistent", nil, nil)
	if err != nil && status == http.StatusNotFound {
		return nil
	}
	return err
}

// consulClient keeps no connection: who asks may ask once.
var consulClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// consulCall sends a request and reads what it answers, if it is asked for, as
// JSON or, into a *[]byte, as it is. Any other status than 200 is an error.
func consulCall(ctx context.Context, address, token, method, path string, body []byte, into any) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("X-Consul-Token", token)
	response, err := consulClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %s", method, path, response.Status, bytes.TrimSpace(content))
	}
	if raw, ok := into.(*[]byte); ok && err == nil {
		*raw = content
	} else if into != nil && err == nil {
		err = json.Unmarshal(content, into)
	}
	return response.StatusCode, err
}

// ConsulWithACL starts a Consul, whatever address the environment has, in
// which nothing is allowed without a token. The passwords are tokens: Admin may do
// everything, User what the rules say.
func ConsulWithACL(ctx context.Context, rules string) (*Store, error) {
	admin := Login{"admin", uuid()}
	s, err := startConsulAs(ctx, fmt.Sprintf(`acl { enabled = true default_policy = "deny" tokens { initial_management = %q } }`, admin.Password), admin.Password)
	if err != nil {
		return nil, err
	}
	s.Admin, s.User = admin, Login{uuid(), uuid()}
	if err := consulAllow(ctx, s, rules); err != nil {
		return nil, errors.Join(fmt.Errorf("making a token on %s: %w", s, err), s.Stop())
	}
	return s, nil
}

// ConsulRevoke deletes the token of the store's User.
func ConsulRevoke(ctx context.Context, s *Store) error {
	_, err := consulCall(ctx, s.Address, s.Admin.Password, http.MethodDelete, "/v1/acl/token/"+s.User.User, nil, nil)
	return err
}

// consulAllow makes the token of the store's User, whose name is its accessor.
func consulAllow(ctx context.Context, s *Store, rules string) error {
	if err := consulPut(ctx, s, "/v1/acl/policy", map[string]any{"Name": s.User.User, "Rules": rules}); err != nil {
		return err
	}
	return ConsulGrant(ctx, s)
}

// ConsulGrant makes the token of the store's User, as it was before ConsulRevoke.
func ConsulGrant(ctx context.Context, s *Store) error {
	return consulPut(ctx, s, "/v1/acl/token", map[string]any{"AccessorID": s.User.User, "SecretID": s.User.Password, "Policies": []any{map[string]any{"Name": s.User.User}}})
}

func consulPut(ctx context.Context, s *Store, path string, content map[string]any) error {
	body, err := json.Marshal(content)
	if err != nil {
		return err
	}
	_, err = consulCall(ctx, s.Address, s.Admin.Password, http.MethodPut, path, body, nil)
	return err
}

// uuid is a random one, as Consul wants its tokens to be.
func uuid() string {
	b := make([]byte, 16)
	rand.Read(b)
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
