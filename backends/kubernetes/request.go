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
// userAgent names this program to the API server, which takes it for the manager of what it
// writes.
const userAgent = "elector"

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

// noNamespace reports whether the API server answered that there is no such namespace.
func (s *status) noNamespace() bool {
	return s.Code == http.StatusNotFound && s.Kind == "Status" && s.Details.Kind == "namespaces"
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
// the caller closes.
//
// While an API server starts it refuses everybody, because it does not know all
// accounts and rights yet. So a refusal by a server that is ready counts only when
// the request, which was not carried out, is refused again.
func (b *Backend) send(ctx context.Context, through *http.Client, method, path string, body any) (*http.Response, error) {
	answer, err := b.sendOnce(ctx, through, b.token, method, path, body)
	var s *status
	if !errors.As(err, &s) || s.Kind != "Status" || s.Code != http.StatusUnauthorized && s.Code != http.StatusForbidden {
		return answer, err
	}
	if s.starting = b.starting(ctx, through, s.Code); s.starting {
		return nil, s
	}
	return b.sendOnce(ctx, through, b.token, method, path, body)
}

// starting reports whether an API server that has refused a request may not be ready.
// Everybody may ask it that, with or without credentials, once it knows the roles that
// are built in; until then it refuses this too.
func (b *Backend) starting(ctx context.Context, through *http.Client, code int) bool {
	token := b.token
	if code == http.StatusUnauthorized {
		token = nil
	}
	answer, err := b.sendOnce(ctx, through, token, http.MethodGet, "/readyz", nil)
	if err == nil {
		answer.Body.Close()
		return false
	}
	var s *status
	return !errors.As(err, &s) || s.Code != http.StatusUnauthorized // which is how some refuse all who have no credentials
}

// sendOnce does not repeat the request. Without GetBody no transport can send its
// body again.
func (b *Backend) sendOnce(ctx context.Context, through *http.Client, token func() (string, error), method, path string, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, b.server+path, content)
	if err != nil {
		return nil, fmt.Errorf("%w: the API server's URL cannot be used", backends.ErrURL)
	}
	r.GetBody = nil
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", userAgent)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != nil {
		text, err := token()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errToken, err)
		}
		if text != "" {
			r.Header.Set("Authorization", "Bearer "+text)
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
	return nil, refusal
}
