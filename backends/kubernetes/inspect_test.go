package kubernetes

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

func TestInspect(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	i, err := b.Inspect(t.Context(), 15*time.Second)
	must(t, err)
	if i.Clock.IsZero() || len(i.Findings) != 2 || i.Findings[0].Seen != "version v1.36.3" || i.Findings[1].Fix != "" || i.Findings[1].Seen != "get, create, update, watch leases" {
		t.Errorf("got %+v", i)
	}
	for rules, want := range map[string]string{
		`{"resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}]}`:                                          "get, create, update, watch leases",
		`{"resourceRules":[{"verbs":["get","create"],"apiGroups":["coordination.k8s.io"],"resources":["leases"]}]}`:        "may not update, watch leases",
		`{"resourceRules":[{"verbs":["*"],"apiGroups":["apps"],"resources":["leases"]}]}`:                                  "may not get, create, update, watch leases",
		`{"resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["pods"]}]}`:                                       "may not get, create, update, watch leases",
		`{"resourceRules":[],"incomplete":true}`:                                                                           "does not list them",
		`{"incomplete":true,"resourceRules":[{"verbs":["*"],"apiGroups":["coordination.k8s.io"],"resources":["leases"]}]}`: "get, create, update, watch leases",
	} {
		f.on("RULES", says(`{"status":`+rules+`}`))
		i, err := b.Inspect(t.Context(), 15*time.Second)
		must(t, err)
		right := i.Findings[1]
		missing := strings.Contains(want, "may not")
		if !strings.Contains(right.Seen, want) || errors.Is(right.Err, backends.ErrDenied) != missing || strings.Contains(right.Fix, "create role") != missing {
			t.Errorf("%s: got %+v", rules, right)
		}
	}
	f.on("RULES", refuses(403, "Forbidden", "", "", ""))
	i, err = b.Inspect(t.Context(), 15*time.Second)
	must(t, err)
	if !strings.Contains(i.Findings[1].Seen, "does not list them") {
		t.Errorf("got %+v", i.Findings[1])
	}
}
