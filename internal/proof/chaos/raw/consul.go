package raw

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/elector-go/elector/backends/consul"
)

// A consulRecords has a key for each record.
type consulRecords struct {
	JSON
	base, prefix string
	client       *http.Client
}

func openConsul(_ context.Context, u *url.URL) (Records, func() error, error) {
	r := consulRecords{base: "http://" + u.Host + "/v1/kv/", prefix: consul.DefaultPrefix, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	if path := strings.Trim(u.Path, "/"); path != "" {
		r.prefix = path + "/"
	}
	return r, func() error { return nil }, nil
}

func (r consulRecords) call(ctx context.Context, method, election, query string, content []byte) (status int, body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, r.base+r.prefix+election+query, bytes.NewReader(content))
	if err != nil {
		return 0, nil, err
	}
	answer, err := r.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK && (answer.StatusCode != http.StatusNotFound || method != http.MethodGet) {
		err = fmt.Errorf("%s %s: %s: %s", method, election, answer.Status, body)
	}
	return answer.StatusCode, body, err
}

func (r consulRecords) Get(ctx context.Context, election string) ([]byte, error) {
	content, _, err := r.read(ctx, election)
	return content, err
}

func (r consulRecords) read(ctx context.Context, election string) (content []byte, index uint64, err error) {
	status, body, err := r.call(ctx, http.MethodGet, election, "?consistent", nil)
	if err != nil || status == http.StatusNotFound {
		return nil, 0, err
	}
	var pairs []consul.Pair
	if err := json.Unmarshal(body, &pairs); err != nil || len(pairs) != 1 {
		return nil, 0, fmt.Errorf("%q is no answer of Consul", body)
	}
	return append([]byte{}, pairs[0].Value...), pairs[0].ModifyIndex, nil
}

func (r consulRecords) Put(ctx context.Context, election string, content []byte) error {
	_, _, err := r.call(ctx, http.MethodPut, election, "", content)
	return err
}

func (r consulRecords) Replace(ctx context.Context, election string, old, content []byte) (bool, error) {
	now, index, err := r.read(ctx, election)
	if err != nil || now == nil || !bytes.Equal(now, old) {
		return false, err
	}
	_, body, err := r.call(ctx, http.MethodPut, election, "?cas="+strconv.FormatUint(index, 10), content)
	return err == nil && strings.TrimSpace(string(body)) == "true", err
}

func (r consulRecords) Delete(ctx context.Context, election string) error {
	_, _, err := r.call(ctx, http.MethodDelete, election, "", nil)
	return err
}
