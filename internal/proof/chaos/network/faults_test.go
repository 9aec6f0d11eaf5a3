package network

import (
	"fmt"
	"slices"
	"testing"
	"time"

	_ "github.com/elector-go/elector/backends/azureblob"
	_ "github.com/elector-go/elector/backends/consul"
	_ "github.com/elector-go/elector/backends/dynamodb"
	_ "github.com/elector-go/elector/backends/etcd"
	_ "github.com/elector-go/elector/backends/gcs"
	_ "github.com/elector-go/elector/backends/kubernetes"
	_ "github.com/elector-go/elector/backends/mysql"
	_ "github.com/elector-go/elector/backends/nats"
	_ "github.com/elector-go/elector/backends/postgres"
	_ "github.com/elector-go/elector/backends/redis"
	_ "github.com/elector-go/elector/backends/s3"
	_ "github.com/elector-go/elector/backends/zookeeper"
	"github.com/elector-go/elector/internal/proof/chaos/raw"
	"github.com/elector-go/elector/internal/proof/stores"
	"github.com/elector-go/elector/internal/table"
)

// A faultCase is one case of faults of a network, or of a store behind it.
type faultCase struct {
	name  string
	run   func(s *scene)
	alone bool              // on a store of its own, which it breaks
	not   map[string]string // why it does not apply to a store
}

var noLogins = map[string]string{
	stores.DynamoDB: "dynalite looks at no credentials",
	stores.GCS:      "fake-gcs-server looks at no credentials",
	stores.S3:       "gofakes3 looks at no credentials",

	stores.AzureBlob:  "azurite has one key, which it keeps; TestAzureBlobSAS takes a permission away",
	stores.Kubernetes: "no login is in the URL; TestKubernetesRole takes the rights away",
}

// cases are those with an F in the project's list of cases.
var cases = []faultCase{
	{name: "mx/takeover-bound", run: takeoverBound},
	{name: "mx/vanished", run: vanished},
	{name: "mx/rollback", run: rollback},
	{name: "exp/from-send", run: fromSend},
	{name: "ren/transient", run: renewTransient},
	{name: "ren/one-hang", run: renewOneHang},
	{name: "ren/hung", run: renewHung},
	{name: "ren/slow-then-cut", run: slowThenCut},
	{name: "ren/far", run: renewFar},
	{name: "ren/log-stalls", run: renewLogStalls},
	{name: "res/handover", run: handover},
	{name: "res/fail-retry", run: failRetry},
	{name: "obs/resume", run: resume},
	{name: "amb/acquire", run: ambiguousAcquire},
	{name: "amb/renew", run: ambiguousRenew},
	{name: "amb/release", run: ambiguousRelease},
	{name: "amb/delayed-write", run: delayedWrite},
	{name: "part/holder", run: partHolder},
	{name: "part/one-way", run: partOneWay},
	{name: "part/store-restart", run: storeRestart, alone: true},
	{name: "auth/denied", run: denied, not: noLogins},
	{name: "many/candidates", run: manyCandidates},
}

var results table.Table

func names() (names []string) {
	for _, c := range cases {
		names = append(names, c.name)
	}
	return names
}

// TestFaults runs the cases on all stores. Cases and stores run at the same
// time: each case has its own proxy and its own election. Few cases at a time ask a store that many slow
// down: a program that plays a cloud's service answers one request after the other, and PostgreSQL
// starts a process for each connection. What a slow answer does is for the cases to choose.
func TestFaults(t *testing.T) {
	for _, kind := range stores.Kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := open(t, kind)
			results.Add(kind, p.store.How)
			turns := make(chan struct{}, len(cases))
			if slices.Contains([]string{stores.AzureBlob, stores.DynamoDB, stores.GCS, stores.S3, stores.Postgres}, kind) {
				turns = make(chan struct{}, 4)
			}
			for _, c := range cases {
				t.Run(c.name, func(t *testing.T) {
					if reason := c.not[kind]; reason != "" {
						t.Logf("not applicable: %s", reason)
						results.Report(kind, c.name, table.NotApplicable, reason)
						return
					}
					t.Parallel()
					t.Cleanup(func() {
						if t.Failed() {
							results.Report(kind, c.name, "failed", "")
						} else {
							results.Report(kind, c.name, table.Passed, "")
						}
					})
					turns <- struct{}{}
					t.Cleanup(func() { <-turns })
					here := p
					if c.alone {
						here = open(t, kind)
					}
					runCase(t, here, c)
				})
			}
		})
	}
}

// runCase runs a case and holds what was told against the guarantees.
func runCase(t testing.TB, p place, c faultCase, set ...func(*scene)) {
	s := newScene(t, p, c.name)
	for _, f := range set {
		f(s)
	}
	defer s.check() // also when the case ends early
	c.run(s)
}

// A place is a store that the tests started, and its records behind the adapters'
// backs.
type place struct {
	store   *stores.Store
	records raw.Records
}

// open starts a store that ends with the test.
func open(t testing.TB, kind string) place {
	t.Helper()
	s, err := stores.StartLocal(t.Context(), kind)
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	records, closeRecords, err := raw.Open(t.Context(), s)
	must(t, err)
	t.Cleanup(func() { must(t, closeRecords()) })
	return place{s, records}
}

// unique is a name for an election that no other run has.
func unique(name string) string { return fmt.Sprintf("%s-%x", name, time.Now().UnixNano()) }
