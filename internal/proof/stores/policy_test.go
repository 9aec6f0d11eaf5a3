package stores

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/page"
)

// A cloud is a service whose emulator looks at no rights. Its page has two blocks of
// JSON: a policy for candidates, and one for those who only read.
type cloud struct {
	page   string
	action func(*http.Request) string // that a request needs
	refuse http.HandlerFunc           // as the service does

	// An object that does not exist is only shown to those who may list. Empty if the
	// service shows it to all who may read.
	list string

	// The calls that fail without an action of the policies. None for one that
	// is for more checks.
	candidate, reader map[string][]string
}

// A policyGate stands in front of an emulator, passes what a policy allows, and refuses all
// else as the service does.
type policyGate struct {
	*httptest.Server
	mutex         sync.Mutex
	used, refused map[string]bool // actions
}

// gate returns one in front of an emulator at an address.
func (c cloud) gate(t *testing.T, address string, allowed []string) *policyGate {
	t.Helper()
	g := &policyGate{used: map[string]bool{}, refused: map[string]bool{}}
	pass := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: address})
			r.Out.Host = r.In.Host // which is signed
		},
		ModifyResponse: func(r *http.Response) error {
			if r.StatusCode != http.StatusNotFound || c.list == "" {
				return nil
			}
			if !slices.Contains(allowed, c.list) {
				return errHidden
			}
			g.note(g.used, c.list)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if !errors.Is(err, errHidden) {
				panic(http.ErrAbortHandler)
			}
			g.note(g.refused, c.list)
			c.refuse(w, r)
		},
	}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		action := c.action(r)
		if !slices.Contains(allowed, action) {
			g.note(g.refused, action)
			c.refuse(w, r)
			return
		}
		g.note(g.used, action)
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(g.Close)
	return g
}

var errHidden = errors.New("the object does not exist, which this policy does not show")

func (g *policyGate) note(where map[string]bool, action string) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	where[action] = true
}

func (g *policyGate) noted(where map[string]bool) []string {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return slices.Sorted(maps.Keys(where))
}

// policies returns the actions that the page's policies allow.
func (c cloud) policies(t *testing.T) (candidate, reader []string) {
	t.Helper()
	blocks := page.Blocks(t, "../../../docs/stores/"+c.page, "json", 2)
	return policyActions(t, blocks[0]), policyActions(t, blocks[1])
}

// policyActions are those of a policy of Amazon, or of a role of Google's or Azure's.
func policyActions(t *testing.T, block string) (actions []string) {
	t.Helper()
	var p struct {
		Statement []struct {
			Effect string
			Action any
		}
		IncludedPermissions  []string
		Actions, DataActions []string
	}
	must(t, json.Unmarshal([]byte(block), &p))
	for _, s := range p.Statement {
		if s.Effect != "Allow" {
			t.Errorf("a statement has the effect %s", s.Effect)
		}
		switch a := s.Action.(type) {
		case string:
			actions = append(actions, a)
		case []any:
			for _, one := range a {
				actions = append(actions, one.(string))
			}
		}
	}
	actions = slices.Concat(actions, p.IncludedPermissions, p.Actions, p.DataActions)
	slices.Sort(actions)
	return actions
}

// prove shows that each of the page's policies is enough, and no more than enough: all
// of its actions are used, and without one the calls that need it are denied.
func (c cloud) prove(t *testing.T, s *Store) {
	if s.server == nil {
		t.Skip("the rights at a store of the environment are not ours to change")
	}
	missing := strings.Replace(s.URL, "elector?", "elector-that-is-not-there?", 1)
	b, err := backends.OpenReadOnly(t.Context(), missing)
	if err == nil {
		b.Close()
	}
	if !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), "elector-that-is-not-there") || !strings.Contains(err.Error(), "no election has ever used it; check") {
		t.Errorf("what does not exist: %v", err)
	}
	candidate, reader := c.policies(t)
	leadOnce(t, s.URL)
	for _, role := range []struct {
		name    string
		policy  []string
		without map[string][]string
		calls   func(*testing.T, string) map[string]error
	}{
		{"a candidate", candidate, c.candidate, candidateCalls},
		{"a reader", reader, c.reader, readerCalls},
	} {
		t.Run(role.name, func(t *testing.T) {
			if known := slices.Sorted(maps.Keys(role.without)); !slices.Equal(known, role.policy) {
				t.Fatalf("the policy of %s has %q; the test knows what needs %q", c.page, role.policy, known)
			}
			g := c.gate(t, s.Address, role.policy)
			for call, err := range role.calls(t, s.Through(g.Listener.Addr().String())) {
				if err != nil {
					t.Errorf("%s: %v", call, err)
				}
			}
			if used, refused := g.noted(g.used), g.noted(g.refused); len(refused) > 0 || !slices.Equal(used, role.policy) {
				t.Errorf("of the policy's actions %q it uses %q, and besides %q", role.policy, used, refused)
			}
			for action, fail := range role.without {
				less := slices.DeleteFunc(slices.Clone(role.policy), func(a string) bool { return a == action })
				denied := []string{}
				for call, err := range role.calls(t, s.Through(c.gate(t, s.Address, less).Listener.Addr().String())) {
					if errors.Is(err, backends.ErrDenied) {
						denied = append(denied, call)
					} else if err != nil {
						t.Errorf("without %s, %s: %v", action, call, err)
					}
				}
				if slices.Sort(denied); !slices.Equal(denied, fail) {
					t.Errorf("without %s, denied are %q, want %q", action, denied, fail)
				}
			}
		})
	}
}

// readElection is the election that readers read.
const readElection = "invoices"

// leadOnce makes the election that readers read: with a leader, who has been so before.
func leadOnce(t *testing.T, storeURL string) {
	t.Helper()
	b, err := backends.Open(t.Context(), storeURL)
	must(t, err)
	defer b.Close()
	e, err := elector.New(b, readElection, &elector.Options{ID: "leader"})
	must(t, err)
	defer e.Close()
	for range 2 {
		lease, err := e.TryCampaign(t.Context())
		must(t, err)
		must(t, lease.Release(t.Context()))
	}
}

// candidateCalls leads a new election once, and returns the error of each call.
func candidateCalls(t *testing.T, storeURL string) map[string]error {
	t.Helper()
	calls := map[string]error{}
	b, err := backends.Open(t.Context(), storeURL)
	if calls["open"] = err; err != nil {
		return calls
	}
	defer b.Close()
	name := "rights-" + rand.Text()
	e, err := elector.New(b, name, &elector.Options{ID: "leader"})
	must(t, err)
	defer e.Close()
	if many, ok := b.(backends.BatchLoader); ok {
		calls["many"] = many.LoadMany(t.Context(), []string{name, readElection})[0].Err
	}
	lease, err := e.TryCampaign(t.Context())
	if calls["campaign"] = err; err != nil {
		return calls
	}
	calls["renew"] = lease.Proclaim(t.Context(), "10.0.0.1") // a change, as a renewal is
	return calls
}

// readerCalls makes all calls of a reader, and returns the error of each.
func readerCalls(t *testing.T, storeURL string) map[string]error {
	t.Helper()
	calls := map[string]error{}
	b, err := backends.OpenReadOnly(t.Context(), storeURL)
	if calls["open"] = err; err != nil {
		return calls
	}
	defer b.Close()
	e, err := elector.New(b, readElection, &elector.Options{ID: "reader"})
	must(t, err)
	defer e.Close()
	l, err := e.Leader(t.Context())
	if calls["leader"] = err; err == nil && l.Token == 0 {
		t.Errorf("the leader is %+v", l)
	}
	for l, err := range e.Observe(t.Context()) {
		if calls["observe"] = err; err == nil && l.Token == 0 {
			t.Errorf("observed is %+v", l)
		}
		break
	}
	terms, err := e.Operator().History(t.Context())
	if calls["history"] = err; err == nil && len(terms) == 0 {
		t.Error("there is no history")
	}
	names, err := b.(backends.Lister).List(t.Context())
	if calls["list"] = err; err == nil && !slices.Contains(names, readElection) {
		t.Errorf("the elections are %q", names)
	}
	if many, ok := b.(backends.BatchLoader); ok {
		outcome := many.LoadMany(t.Context(), []string{readElection, "other"})[0]
		if calls["many"] = outcome.Err; outcome.Err == nil && !outcome.Record.Exists() {
			t.Errorf("read with others it is %+v", outcome.Record)
		}
	}
	if w, ok := backends.AsWatcher(b); ok {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if err := w.Watch(ctx, readElection, func(backends.Record) { cancel() }); !errors.Is(err, context.Canceled) {
			calls["watch"] = err
		}
	}
	if i, ok := b.(backends.Inspector); ok {
		_, calls["inspect"] = i.Inspect(t.Context(), 15*time.Second)
	}
	if _, err := e.TryCampaign(t.Context()); !errors.Is(err, backends.ErrReadOnly) {
		t.Errorf("a campaign: %v", err)
	}
	return calls
}

// The policies of DynamoDB's page are enough, and no more than that.
func TestDynamoDBPolicies(t *testing.T) {
	cloud{
		page: "dynamodb.md",
		action: func(r *http.Request) string {
			_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
			return "dynamodb:" + operation
		},
		refuse: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"User: arn:aws:iam::1:user/u is not authorized"}`)
		},
		candidate: map[string][]string{
			"dynamodb:GetItem":            {"campaign"},
			"dynamodb:BatchGetItem":       {"many"},
			"dynamodb:PutItem":            {"campaign"},
			"dynamodb:DescribeTable":      {"open"},
			"dynamodb:DescribeTimeToLive": {"open"},
		},
		reader: map[string][]string{
			"dynamodb:GetItem":       {"open"},
			"dynamodb:BatchGetItem":  {"many"},
			"dynamodb:Scan":          {"list"},
			"dynamodb:DescribeTable": {}, // Inspect reports that
		},
	}.prove(t, dynamoStore(t))
}

// The roles of the page of Cloud Storage are enough, and no more than that.
func TestGCSPolicies(t *testing.T) {
	cloud{
		page: "gcs.md",
		list: "storage.objects.list",
		action: func(r *http.Request) string {
			path := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/upload"), "/storage/v1/b/"+gcsBucket), "/")
			switch {
			case r.Method == http.MethodGet && path == "":
				return "storage.buckets.get"
			case r.Method == http.MethodGet && path == "/o":
				return "storage.objects.list"
			case r.Method == http.MethodGet && strings.HasPrefix(path, "/o/"), r.Method == http.MethodGet && strings.HasPrefix(path, "/"+gcsBucket+"/"):
				return "storage.objects.get"
			case r.Method == http.MethodPost && path == "/o" && r.URL.Query().Get("ifGenerationMatch") == "0":
				return "storage.objects.create"
			case r.Method == http.MethodPost && path == "/o":
				return "storage.objects.delete" // and create, to overwrite
			}
			return r.Method + " " + r.URL.Path
		},
		refuse: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, `{"error": {"code": 403, "message": "a@b.c does not have access", "errors": [{"message": "no", "domain": "global", "reason": "forbidden"}]}}`)
		},
		candidate: map[string][]string{
			"storage.objects.get":    {"open"},
			"storage.objects.list":   {"open"},
			"storage.objects.create": {"campaign"},
			"storage.objects.delete": {"renew"},
			"storage.buckets.get":    {},
		},
		reader: map[string][]string{
			"storage.objects.get":  {"open"},
			"storage.objects.list": {"open"},
			"storage.buckets.get":  {},
		},
	}.prove(t, obtain(t, GCS))
}
