package kubernetes

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// kinds are those of all requests, in order.
func (f *fake) kinds() (kinds []string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, r := range f.asked {
		kinds = append(kinds, r.what)
	}
	return kinds
}

const readerRules = `{"status":{"resourceRules":[{"verbs":["get","list","watch"],"apiGroups":["coordination.k8s.io"],"resources":["leases"]}]}}`

// A handle for reading alone sends nothing but reads, and asks for no right to more.
func TestReadOnly(t *testing.T) {
	f := newFake(t)
	f.on("RULES", says(readerRules))
	if _, err := f.open(t).Swap(t.Context(), "a", backends.Record{}, record); err != nil {
		t.Fatal(err)
	}
	before := len(f.kinds())
	b, err := backends.OpenReadOnly(t.Context(), f.address("").String())
	must(t, err)
	defer b.Close()
	if got := f.kinds()[before:]; !slices.Equal(got, []string{"LIST"}) {
		t.Errorf("opening sends %q", got)
	}
	if !b.Describe().ReadOnly {
		t.Error("its description has ReadOnly false")
	}
	if r, err := b.Load(t.Context(), "a"); err != nil || r.Holder != record.Holder {
		t.Errorf("got %+v, %v", r, err)
	}
	if names, err := b.(backends.Lister).List(t.Context()); err != nil || !slices.Equal(names, []string{"a"}) {
		t.Errorf("got %q, %v", names, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := b.(backends.Watcher).Watch(ctx, "a", func(backends.Record) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("a watch: %v", err)
	}
	if _, err := b.Swap(t.Context(), "b", backends.Record{}, record); !errors.Is(err, backends.ErrReadOnly) {
		t.Errorf("a write: %v", err)
	}
	if _, err := PointService(b.(*Backend), Endpoint{Service: "a", Address: netip.MustParseAddr("10.0.0.1"), Port: 80}, func(context.Context, Holder) error { return nil }); !errors.Is(err, backends.ErrReadOnly) {
		t.Errorf("PointService: %v", err)
	}
	for _, kind := range f.kinds()[before:] {
		if kind != "GET" && kind != "LIST" && kind != "WATCH" {
			t.Errorf("it sends %s", kind)
		}
	}
	i, err := b.(backends.Inspector).Inspect(t.Context(), time.Second)
	must(t, err)
	if right := i.Findings[1]; right.Seen != "get, list, watch leases" || right.Fix != "" {
		t.Errorf("its rights are %+v", right)
	}
}

// Rights that are missing, and a namespace that is.
func TestReadOnlyRights(t *testing.T) {
	forbidden := refuses(http.StatusForbidden, "Forbidden", `leases.coordination.k8s.io is forbidden: User "u" cannot list resource "leases"`, "leases", "")
	names := func(verbs string) http.HandlerFunc {
		return says(`{"status":{"resourceRules":[{"verbs":[` + verbs + `],"apiGroups":["coordination.k8s.io"],"resources":["leases"],"resourceNames":["a"]}]}}`)
	}
	for what, c := range map[string]struct {
		list, rules, namespace http.HandlerFunc
		kind                   error
		says                   string
	}{
		"some elections":       {list: forbidden, rules: names(`"get","watch"`)},
		"rights not listed":    {list: forbidden, rules: forbidden},
		"no right to get":      {list: forbidden, rules: names(`"create"`), kind: backends.ErrDenied, says: "--verb=get,list,watch"},
		"no rights at all":     {list: forbidden, rules: says(`{"status":{}}`), kind: backends.ErrDenied, says: "if there is no namespace team, no election has ever used it"},
		"a proxy refuses":      {list: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }), kind: backends.ErrDenied, says: "--verb=get,list,watch"},
		"another server":       {list: says(`{}`), kind: backends.ErrMisconfigured, says: "not that of a Kubernetes API server"},
		"no namespace":         {namespace: refuses(404, "NotFound", `namespaces "team" not found`, "namespaces", "team"), kind: backends.ErrMisconfigured, says: "there is no namespace team, so no election has ever used it"},
		"a namespace, unshown": {namespace: refuses(403, "Forbidden", "", "namespaces", "team")},
		"a namespace":          {namespace: says(`{"kind":"Namespace"}`)},
	} {
		t.Run(what, func(t *testing.T) {
			f := newFake(t)
			f.on("LIST", c.list)
			f.on("RULES", c.rules)
			f.on("NAMESPACE", c.namespace)
			b, err := backends.OpenReadOnly(t.Context(), f.address("").String())
			if err == nil {
				b.Close()
			}
			if !errors.Is(err, c.kind) || err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2")) {
				t.Errorf("got %v", err)
			}
		})
	}
	f := newFake(t)
	f.on("RULES", names(`"get","watch"`))
	b, err := backends.OpenReadOnly(t.Context(), f.address("").String())
	must(t, err)
	defer b.Close()
	i, err := b.(backends.Inspector).Inspect(t.Context(), time.Second)
	must(t, err)
	if right := i.Findings[1]; right.Err != nil || !strings.Contains(right.Seen, "may not list") || !strings.Contains(right.Fix, "role=elector-reader") {
		t.Errorf("without the right to list: %+v", right)
	}
}
