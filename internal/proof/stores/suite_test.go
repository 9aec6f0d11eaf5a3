package stores

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/conformance"
	"github.com/elector-go/elector/internal/leak"
	"github.com/elector-go/elector/internal/proof/child"
	"github.com/elector-go/elector/internal/table"
)

// The suite runs on every store. At the end the results are saved for the table that
// make test prints.
func TestMain(m *testing.M) {
	if what := os.Getenv(helper); what != "" {
		startAndHang(what)
	}
	child.Prepare()
	leak.Main(m, func() { results.Save("ELECTOR_TABLE", nil) })
}

var results table.Table

// conform runs the suite on a store.
func conform(t *testing.T, store, origin string, h conformance.Harness) {
	t.Logf("%s: %s", store, origin)
	results.Add(store, origin)
	if h.TTL == 0 {
		h.TTL = leases
	}
	also := h.Report
	h.Report = func(name, result, reason string) {
		results.Report(store, name, result, reason)
		if also != nil {
			also(name, result, reason)
		}
	}
	conformance.Run(t, h)
}

// faulty opens handles by a URL through a proxy, if the server is ours.
func faulty(s *Store, url string) func(testing.TB) (backends.Backend, func(conformance.Fault)) {
	if s.server == nil {
		return nil
	}
	return conformance.ThroughProxy(s.Address, func(t testing.TB, through string) backends.Backend {
		return opener((&Store{URL: url, Address: s.Address}).Through(through))(t)
	})
}

// leases is the TTL of the suite's short leases here, where its parts run side by side: a
// request has a sixth of it, which a processor that others keep busy must not use up.
const leases = 1200 * time.Millisecond

// hasty is a backend on an emulator, without the limits of the service: with them
// the suite would take minutes or hours longer.
type hasty struct{ backends.Lister }

func hasten(t testing.TB, b backends.Backend) backends.Backend {
	if _, ok := b.(backends.Watcher); ok {
		t.Fatal("the suite would not see that the backend is a Watcher")
	}
	if l, ok := b.(backends.BatchLoader); ok {
		return hastyLoader{hasty{b.(backends.Lister)}, l}
	}
	return hasty{b.(backends.Lister)}
}

type hastyLoader struct {
	hasty
	loader backends.BatchLoader
}

func (h hastyLoader) LoadMany(ctx context.Context, names []string) []backends.Outcome {
	return h.loader.LoadMany(ctx, names)
}

func (h hasty) Describe() backends.Description {
	d := h.Lister.Describe()
	d.MinTTL, d.MinWriteInterval = 0, 0
	return d
}

// obtain gets a store in the way that make test says, the environment first.
func obtain(t *testing.T, kind string) *Store {
	t.Helper()
	s, err := Start(t.Context(), kind)
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	return s
}

// vacantAddress is one of this machine that nothing listens on.
func vacantAddress(t testing.TB) string {
	port, err := freePort()
	must(t, err)
	return fmt.Sprintf("127.0.0.1:%d", port)
}
