package consul

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// maxAnswer is how many bytes of an answer are read, more than any record takes
// in base64.
const maxAnswer = 128 << 10

// An Operation is one operation on a key in a transaction of Consul.
type Operation struct {
	Verb  string // "set", "cas", "delete", "delete-cas", "check-not-exists" or another of Consul's
	Key   string
	Value []byte `json:",omitempty"`
	Flags uint64 `json:",omitempty"`
	Index uint64 `json:",omitempty"` // the ModifyIndex that cas, delete-cas and check-index want; 0 means that the key must not exist
}

// A Pair is a key as Consul returns it.
type Pair struct {
	Key         string
	Value       []byte // empty in the answer to a write
	Flags       uint64
	CreateIndex uint64
	ModifyIndex uint64
}

// An answer is what Consul answered with a status of success, or 404 or 409.
type answer struct {
	status  int
	header  http.Header
	content []byte // at most one byte more than the limit
}

// send sends a request once, and may add to the query. An answer with another
// status is a *statusError.
func (b *Backend) send(ctx context.Context, method, path string, query url.Values, body []byte, limit int) (answer, error) {
	token, err := b.token()
	if err != nil {
		return answer{}, fmt.Errorf("%w: %w", errTokenFile, err)
	}
	n := b.current.Load()
	a, err := b.exchange(ctx, b.addresses[int(n)%len(b.addresses)], token, method, path, query, body, limit)
	switch {
	case err != nil:
		// The network may have gone dark. Then the idle connections are dead too,
		// and finding out one call at a time could cost a lease. A call that Close
		// ended may have dialed since.
		b.idle()
		if !errors.Is(ctx.Err(), context.Canceled) {
			b.current.CompareAndSwap(n, n+1)
		}
	case a.status >= http.StatusInternalServerError:
		b.current.CompareAndSwap(n, n+1) // another server may still see the leader
	}
	if err == nil && a.status != http.StatusOK && a.status != http.StatusNotFound && a.status != http.StatusConflict {
		err = a.failure()
	}
	return a, err
}

func (b *Backend) exchange(ctx context.Context, at *url.URL, token, method, path string, query url.Values, body []byte, limit int) (answer, error) {
	if b.datacenter != "" {
		query.Set("dc", b.datacenter)
	}
	to := &url.URL{Scheme: at.Scheme, Host: at.Host, Path: path, RawQuery: query.Encode()}
	r, err := http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if token != "" {
		r.Header.Set("X-Consul-Token", token)
	}
	response, err := b.client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, int64(limit)+1))
	if err != nil {
		return answer{}, fmt.Errorf("the answer broke off: %w", err)
	}
	return answer{response.StatusCode, response.Header, content}, nil
}

// failure returns the answer as an error.
func (a answer) failure() *statusError {
	return &statusError{a.status, short(string(a.content))}
}

// index returns the store's index that comes with every answer to a read.
func (a answer) index() (uint64, error) {
	n, err := strconv.ParseUint(a.header.Get("X-Consul-Index"), 10, 64)
	if err != nil {
		return 0, errNotConsul
	}
	return n, nil
}

// consistent asks for a linearizable read: the leader first makes sure that it
// still leads.
const consistent = "consistent"

// get reads a key. It returns nil if there is none, and the store's index.
func (b *Backend) get(ctx context.Context, key string, query url.Values) (*Pair, uint64, error) {
	query.Set(consistent, "")
	a, err := b.send(ctx, http.MethodGet, "/v1/kv/"+key, query, nil, maxAnswer)
	if err != nil {
		return nil, 0, err
	}
	index, err := a.index() // which a 404 of another server does not have
	switch {
	case err != nil:
		return nil, 0, err
	case a.status == http.StatusNotFound:
		return nil, index, nil
	case a.status != http.StatusOK:
		return nil, 0, a.failure()
	case len(a.content) > maxAnswer:
		return nil, 0, tooLarge()
	}
	var pairs []Pair
	if err := json.Unmarshal(a.content, &pairs); err != nil || len(pairs) != 1 || pairs[0].Key != key || pairs[0].ModifyIndex == 0 {
		return nil, 0, errNotConsul
	}
	return &pairs[0], index, nil
}

// keys returns the keys right below the prefix, and the folders with their slash.
func (b *Backend) keys(ctx context.Context) (keys []string, err error) {
	const most = 64 << 20
	a, err := b.send(ctx, http.MethodGet, "/v1/kv/"+b.prefix, url.Values{consistent: {""}, "keys": {""}, "separator": {"/"}}, nil, most)
	if err != nil {
		return nil, err
	}
	if _, err := a.index(); err != nil || a.status == http.StatusNotFound {
		return nil, err
	}
	if json.Unmarshal(a.content, &keys) != nil {
		return nil, errNotConsul
	}
	return keys, nil
}

// transact makes the operations in one transaction. It returns a *refusal if
// Consul made none of them because some cannot be made.
func (b *Backend) transact(ctx context.Context, operations []Operation, limit int) ([]Pair, error) {
	type kv struct{ KV Operation }
	all := make([]kv, len(operations))
	for i, o := range operations {
		all[i].KV = o
	}
	body, err := json.Marshal(all)
	if err != nil {
		panic(err) // texts, bytes and numbers always marshal
	}
	// Without a write, Consul answers as to a read.
	a, err := b.send(ctx, http.MethodPut, "/v1/txn", url.Values{consistent: {""}}, body, limit)
	if err != nil {
		return nil, err
	}
	var outcome struct {
		Results []struct{ KV Pair }
		Errors  []refused
	}
	if a.status == http.StatusNotFound || json.Unmarshal(a.content, &outcome) != nil || (a.status == http.StatusConflict) != (len(outcome.Errors) > 0) {
		return nil, errNotConsul
	}
	if len(outcome.Errors) > 0 {
		return nil, &refusal{outcome.Errors}
	}
	results := make([]Pair, len(outcome.Results))
	for i, r := range outcome.Results {
		results[i] = r.KV
	}
	return results, nil
}
