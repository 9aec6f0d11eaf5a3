package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/elector-go/elector/backends"
)

// maxAnswer bounds what is read of an answer, and of an event: more than a Lease can
// have, or a page of records.
const (
	maxAnswer = 8 << 20
	maxRefuse = 64 << 10
)

// A status is the API server's answer to a request that failed.
type status struct {
	Kind    string // "Status" if it is the API server's own
	Code    int    // the HTTP status
	Reason  string
	Message string
	Details struct{ Name, Kind string }

	starting bool // the API server, which does not know all accounts and rights yet
}

// Error implements error, in one short line.
func (s *status) Error() string {
	text, _, _ := strings.Cut(s.Message, "\n")
	if text == "" {
		text = http.StatusText(s.Code)
	}
	if len(text) > 400 {
		text = text[:400] + "…"
	}
	return strings.ToValidUTF8(fmt.Sprintf("HTTP %d: %s", s.Code, text), "?")
}

// isStatus reports whether the API server refused a request for the Lease with this
// code and reason. An answer of a proxy, or about a namespace or quota, does not
// count.
func isStatus(err error, code int, reason, object string) bool {
	var s *status
	return errors.As(err, &s) && s.Kind == "Status" && s.Code == code && s.Reason == reason && s.Details.Kind == "leases" && s.Details.Name == object
}

func isAbsent(err error, object string) bool {
	return isStatus(err, http.StatusNotFound, "NotFound", object)
}

// call makes one request and reads its answer as JSON.
func (b *Backend) call(ctx context.Context, method, path string, body, into any) error {
	answer, err := b.send(ctx, b.calls, method, path, body)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		b.closeIdle()
		return fmt.Errorf("the answer broke off: %w", err)
	case len(content) > maxAnswer:
		return errTooLong
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%w: %w", errNoLease, err)
	}
	return nil
}

// send makes one request and returns an answer that is not a refusal, whose body
// the caller closes. The request is sent once: without GetBody no transport can send
// its body again.
func (b *Backend) send(ctx context.Context, through *http.Client, method, path string, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, b.base+path, content)
	if err != nil {
		return nil, fmt.Errorf("%w: the API server's URL cannot be used", backends.ErrURL)
	}
	r.GetBody = nil
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "elector")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if b.token != nil {
		token, err := b.token()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errToken, err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
	}
	answer, err := through.Do(r)
	if err != nil {
		// The network may have gone dark. Then the idle connections are dead too,
		// and finding out one call at a time could cost a lease.
		b.closeIdle()
		return nil, err
	}
	if answer.StatusCode/100 == 2 {
		return answer, nil
	}
	defer answer.Body.Close()
	refusal := &status{}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxRefuse))
	if err != nil || json.Unmarshal(text, refusal) != nil || refusal.Kind != "Status" {
		refusal = &status{}
	}
	refusal.Code = answer.StatusCode
	if refusal.Code == http.StatusUnauthorized || refusal.Code == http.StatusForbidden {
		refusal.starting = b.starting(ctx, through)
	}
	return nil, refusal
}

// starting reports whether the API server is not ready. It answers before it knows
// all accounts and rights, and tells everybody that.
func (b *Backend) starting(ctx context.Context, through *http.Client) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+"/readyz", nil)
	if err != nil {
		return false
	}
	answer, err := through.Do(r)
	if err != nil {
		return true // it has gone again
	}
	defer answer.Body.Close()
	return answer.StatusCode/100 == 5
}
