//go:build consul

package storms

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/consul"
	"github.com/elector-go/elector/internal/proof/stores"
)

func TestConsul(t *testing.T) {
	s := start(t, stores.Consul)
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	at := consulServer{"http://" + s.Address, &http.Client{Transport: transport}}
	handle := func() backends.Backend {
		return made(consul.New(t.Context(), at.client, &consul.Options{Address: at.base}))
	}
	storm := func(election string, write func(context.Context, *Attempt) error) Storm {
		o := &consulOrder{server: at, election: election}
		return Storm{Handles: []backends.Backend{handle(), handle(), handle()}, Election: election, Every: 25 * time.Millisecond, Pause: 40 * time.Millisecond, Seed: 1,
			Write: write, Acquired: o.acquired, Order: o.marks}
	}
	set := func(a *Attempt) consul.Operation {
		return consul.Operation{Verb: "set", Key: fmt.Sprintf("data/%s/%d", a.Election, a.Number), Value: []byte(strconv.FormatUint(a.Token, 10))}
	}
	// read returns the record's index, or ErrStale if another acquisition made it.
	read := func(ctx context.Context, a *Attempt) (uint64, error) {
		pairs, err := at.read(ctx, consul.DefaultPrefix+a.Election)
		if err != nil {
			return 0, err
		}
		if r, err := backends.Decode(a.Election, pairs[0].Value); err != nil || r.Token != a.Token || r.Vacant() {
			return 0, errors.Join(backends.ErrStale, err)
		}
		return pairs[0].ModifyIndex, nil
	}

	t.Run("guarded", func(t *testing.T) {
		pass(t, storm("guarded-"+run, func(ctx context.Context, a *Attempt) error {
			a.Pause()
			a.Send()
			_, err := consul.Commit(ctx, a, set(a))
			return err
		}))
	})
	t.Run("read, then set", func(t *testing.T) {
		caught(t, storm("read-set-"+run, func(ctx context.Context, a *Attempt) error {
			if _, err := read(ctx, a); err != nil {
				return err
			}
			a.Pause()
			a.Send()
			return at.transact(ctx, set(a))
		}), late)
	})
	t.Run("the record's index checked", func(t *testing.T) {
		caught(t, storm("index-"+run, func(ctx context.Context, a *Attempt) error {
			index, err := read(ctx, a)
			if err != nil {
				return err
			}
			a.Pause()
			a.Send()
			return at.transact(ctx, consul.Operation{Verb: "check-index", Key: consul.DefaultPrefix + a.Election, Index: index}, set(a))
		}), falselyRefused)
	})
	t.Run("a lease", func(t *testing.T) { consulLease(t, at, handle()) })
}

// A consulServer is asked without the adapter.
type consulServer struct {
	base   string
	client *http.Client
}

func (s consulServer) call(ctx context.Context, method, path string, body any) (status int, content []byte, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, s.base+path, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	content, err = io.ReadAll(answer.Body)
	return answer.StatusCode, content, err
}

// read returns the keys that begin with a prefix, with their values.
func (s consulServer) read(ctx context.Context, prefix string) (pairs []consul.Pair, err error) {
	status, content, err := s.call(ctx, http.MethodGet, "/v1/kv/"+prefix+"?recurse&consistent", nil)
	switch {
	case err != nil || status == http.StatusNotFound:
		return nil, err
	case status != http.StatusOK:
		return nil, fmt.Errorf("reading %s: status %d: %s", prefix, status, content)
	}
	return pairs, json.Unmarshal(content, &pairs)
}

// transact makes operations, and returns ErrStale if one was refused.
func (s consulServer) transact(ctx context.Context, operations ...consul.Operation) error {
	type kv struct{ KV consul.Operation }
	var all []kv
	for _, o := range operations {
		all = append(all, kv{o})
	}
	status, content, err := s.call(ctx, http.MethodPut, "/v1/txn?consistent", all)
	switch {
	case err != nil:
		return err
	case status == http.StatusConflict:
		return backends.ErrStale
	case status != http.StatusOK:
		return fmt.Errorf("status %d: %s", status, content)
	}
	return nil
}

// A consulOrder is in the indexes of Consul's log: those of the acquisitions, and
// those that have created the keys of the writes.
type consulOrder struct {
	server   consulServer
	election string

	mutex        sync.Mutex
	acquisitions []Mark
}

func (o *consulOrder) acquired(_ context.Context, h backends.Lease) error {
	a, err := h.Acquisition()
	if err != nil {
		return err
	}
	index, err := strconv.ParseInt(string(a.Record.Version), 10, 64)
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.acquisitions = append(o.acquisitions, Mark{a.Record.Token, index})
	return err
}

func (o *consulOrder) marks(ctx context.Context) (acquisitions, writes []Mark, err error) {
	pairs, err := o.server.read(ctx, "data/"+o.election+"/")
	if err != nil {
		return nil, nil, err
	}
	for _, p := range pairs {
		token, err := strconv.ParseUint(string(p.Value), 10, 64)
		if err != nil {
			return nil, nil, err
		}
		writes = append(writes, Mark{token, int64(p.CreateIndex)})
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.acquisitions, writes, nil
}

// One guard is good for as long as a lease lasts, whatever the lease writes
// meanwhile, and no longer.
func consulLease(t *testing.T, at consulServer, b backends.Backend) {
	name := "lease-" + run
	e, lease := lead(t, b, name)
	guard, err := consul.Guard(lease)
	must(t, err)
	passes := func(when string, want error) {
		t.Helper()
		wants(t, "a guard "+when, at.transact(t.Context(), guard, consul.Operation{Verb: "set", Key: "data/" + name}), want)
	}
	passes("after the acquisition", nil)
	must(t, lease.Proclaim(t.Context(), "a value"))
	passes("after a renewal with a value", nil)
	results, err := consul.Commit(t.Context(), lease, consul.Operation{Verb: "set", Key: "data/" + name, Value: []byte("1")})
	if err != nil || len(results) != 1 || results[0].ModifyIndex == 0 {
		t.Errorf("Commit answers %+v, %v; want that to the operation", results, err)
	}
	_, err = consul.Commit(t.Context(), lease, consul.Operation{Verb: "set", Key: "data/" + name}, consul.Operation{Verb: "cas", Key: "data/" + name, Index: 1})
	var refused *consul.RefusedError
	if !errors.As(err, &refused) || refused.Operation != 1 {
		t.Errorf("Commit with an operation that fails: %v", err)
	}
	must(t, lease.Release(t.Context()))
	passes("after the release", backends.ErrStale)
	_, err = consul.Commit(t.Context(), lease)
	wants(t, "Commit after the release", err, elector.ErrResigned)
	lease, err = e.TryCampaign(t.Context())
	must(t, err)
	passes("after another acquisition", backends.ErrStale)
	guard, err = consul.Guard(lease)
	must(t, err)
	passes("of the other acquisition", nil)
	pairs, err := at.read(t.Context(), consul.DefaultPrefix+name+"/")
	if must(t, err); len(pairs) != 1 || pairs[0].Key != guard.Key {
		t.Errorf("beside the record there are %+v, want the guard's key alone", pairs)
	}
}

// A token for the data alone needs no right to the guard's key.
func TestConsulOtherToken(t *testing.T) {
	s, err := stores.ConsulWithACL(t.Context(), `key_prefix "data/" { policy = "write" }`)
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	_, lease := lead(t, made(consul.New(t.Context(), &http.Client{Transport: transport}, &consul.Options{Address: "http://" + s.Address, Token: s.Admin.Password})), "other")
	guard, err := consul.Guard(lease)
	must(t, err)
	user := consulServer{"http://" + s.Address, &http.Client{Transport: signed{transport, s.User.Password}}}
	must(t, user.transact(t.Context(), guard, consul.Operation{Verb: "set", Key: "data/a", Value: []byte("1")}))
	must(t, lease.Release(t.Context()))
	wants(t, "a guard of another token after the release", user.transact(t.Context(), guard, consul.Operation{Verb: "set", Key: "data/a"}), backends.ErrStale)
	status, content, err := user.call(t.Context(), http.MethodGet, "/v1/kv/"+guard.Key, nil)
	if must(t, err); status != http.StatusForbidden {
		t.Errorf("the guard's key may be read by the token for the data: %d %s", status, content)
	}
}

// A signed request has a token.
type signed struct {
	http.RoundTripper
	token string
}

func (s signed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Consul-Token", s.token)
	return s.RoundTripper.RoundTrip(r)
}
