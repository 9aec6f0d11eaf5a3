package data

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/consul"
)

// A consulData has a key for each write. No two are made with one index.
type consulData struct {
	backends []*consul.Backend // of each server
	bases    []string
	client   *http.Client
}

func openConsul(u *url.URL) Data {
	d := consulData{client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	for _, host := range strings.Split(u.Host, ",") {
		d.bases = append(d.bases, "http://"+host)
		b, err := consul.New(context.Background(), d.client, &consul.Options{Address: "http://" + host})
		if err != nil {
			panic(err)
		}
		d.backends = append(d.backends, b)
	}
	return d
}

func (consulData) prefix(election string) string { return "data/" + election + "/" }

// A moved lease writes through another server than its election.
type moved struct {
	backends.Lease
	to *consul.Backend
}

// Acquisition implements [backends.Lease].
func (m moved) Acquisition() (backends.Acquisition, error) {
	a, err := m.Lease.Acquisition()
	a.Backend = m.to
	return a, err
}

func (d consulData) Write(ctx context.Context, lease backends.Lease, election string, w Write) error {
	server := d.backends[int(w.Number)%len(d.backends)]
	_, err := consul.Commit(ctx, moved{lease, server}, consul.Operation{Verb: "cas", Key: fmt.Sprintf("%s%s-%d", d.prefix(election), w.Candidate, w.Number), Value: []byte(w.String())})
	return err
}

func (d consulData) Read(ctx context.Context, election string) (all []Write, err error) {
	var pairs []consul.Pair
	for _, base := range d.bases {
		if pairs, err = d.read(ctx, base+"/v1/kv/"+d.prefix(election)+"?recurse&consistent"); err == nil {
			break
		}
	}
	slices.SortFunc(pairs, func(a, b consul.Pair) int { return int(a.CreateIndex) - int(b.CreateIndex) })
	for _, p := range pairs {
		w, err := parse(string(p.Value))
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, err
}

func (d consulData) read(ctx context.Context, at string) (pairs []consul.Pair, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	answer, err := d.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	switch {
	case err != nil || answer.StatusCode == http.StatusNotFound:
		return nil, err
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s: %s: %s", at, answer.Status, content)
	}
	return pairs, json.Unmarshal(content, &pairs)
}

func (d consulData) Close() error { return nil }
