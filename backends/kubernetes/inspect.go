package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/elector-go/elector/backends"
)

// The rights of a candidate, and of those who only read.
var (
	verbs       = []string{"get", "create", "update", "watch"}
	readerVerbs = []string{"get", "list", "watch"}
)

// Inspect implements [backends.Inspector]. It looks at the account's rights in the
// namespace, those to read if the backend was opened for reading alone, at the API
// server's version and at its clock, which it shows to the second.
func (b *Backend) Inspect(ctx context.Context, _ time.Duration) (backends.Inspection, error) {
	return b.base.Inspect(ctx, func(ctx context.Context) (i backends.Inspection, err error) {
		answer, err := b.send(ctx, b.calls, http.MethodGet, "/version", nil)
		if err != nil {
			return i, err
		}
		defer answer.Body.Close()
		var version struct{ GitVersion string }
		if err := json.NewDecoder(io.LimitReader(answer.Body, maxRefuse)).Decode(&version); err != nil {
			return i, errNoLease
		}
		i.Clock, _ = http.ParseTime(answer.Header.Get("Date"))
		rights := backends.Finding{What: "rights", Seen: "the API server does not list them completely"}
		held, complete, err := b.rights(ctx)
		if err != nil {
			return i, err
		}
		wanted := verbs
		if b.base.ReadOnly() {
			wanted = readerVerbs
		}
		missing := slices.DeleteFunc(slices.Clone(wanted), func(verb string) bool { return held[verb] })
		switch {
		case len(missing) == 0:
			rights.Seen = strings.Join(wanted, ", ") + " leases"
		case complete:
			rights.Seen = "this account may not " + strings.Join(missing, ", ") + " leases"
			if rights.Fix = b.grant(""); !slices.Equal(missing, []string{"list"}) { // which single elections do not need
				rights.Err = backends.ErrDenied
			}
		}
		i.Findings = []backends.Finding{{What: "API server", Seen: "version " + version.GitVersion}, rights}
		return i, nil
	})
}

// rights returns what the account may do with some Lease in the namespace, or with
// each. It is not complete if the API server's authorizers cannot list rights, or do
// not let this account ask.
func (b *Backend) rights(ctx context.Context) (held map[string]bool, complete bool, err error) {
	type m = map[string]any
	var review struct {
		Status struct {
			ResourceRules []struct{ Verbs, APIGroups, Resources []string }
			Incomplete    bool
		}
	}
	err = b.call(ctx, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
		m{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": m{"namespace": b.namespace}}, &review)
	if s := (*status)(nil); errors.As(err, &s) && s.Code != http.StatusUnauthorized {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	held = map[string]bool{}
	has := func(all []string, one string) bool { return slices.Contains(all, one) || slices.Contains(all, "*") }
	for _, rule := range review.Status.ResourceRules {
		if has(rule.APIGroups, "coordination.k8s.io") && has(rule.Resources, "leases") {
			for _, verb := range slices.Concat(readerVerbs, verbs) {
				held[verb] = held[verb] || has(rule.Verbs, verb)
			}
		}
	}
	return held, !review.Status.Incomplete, nil
}
