package stores

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/conformance"
	"github.com/elector-go/elector/internal/leak"
	"github.com/elector-go/elector/internal/proof/child"
)

// The suite runs on every store; what came out of it is told at the end as one
// table, which make test prints.
func TestMain(m *testing.M) {
	if what := os.Getenv(helper); what != "" {
		startAndHang(what)
	}
	child.Prepare()
	leak.Main(m, writeTable)
}

// results are collected by store and case.
var (
	resultsMutex sync.Mutex
	results      = map[string]map[string]string{}
	origins      = map[string]string{} // of the stores
	reasons      []string
)

// conform runs the suite on a store.
func conform(t *testing.T, store, origin string, h conformance.Harness) {
	t.Logf("%s: %s", store, origin)
	resultsMutex.Lock()
	results[store], origins[store] = map[string]string{}, origin
	resultsMutex.Unlock()
	h.Report = func(name, result, reason string) {
		resultsMutex.Lock()
		defer resultsMutex.Unlock()
		if result == "not applicable" {
			reason = store + ", " + name + ": " + reason
			reasons = append(reasons, reason)
			result = fmt.Sprintf("not applicable [%d]", len(reasons))
		}
		results[store][name] = result
	}
	conformance.Run(t, h)
}

// writeTable writes the results to the file that ELECTOR_TABLE names.
func writeTable() {
	path := os.Getenv("ELECTOR_TABLE")
	if path == "" || len(results) == 0 {
		return
	}
	f, err := os.Create(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the table of results cannot be written:", err)
		return
	}
	defer f.Close()
	var columns, rows []string
	for store, cases := range results {
		columns = append(columns, store)
		for name := range cases {
			if !slices.Contains(rows, name) {
				rows = append(rows, name)
			}
		}
	}
	slices.Sort(columns)
	slices.Sort(rows)
	w := tabwriter.NewWriter(f, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "case\t%s\n", strings.Join(columns, "\t"))
	for _, name := range rows {
		fmt.Fprint(w, name)
		for _, store := range columns {
			result := results[store][name]
			if result == "" {
				result = "DID NOT RUN"
			}
			fmt.Fprint(w, "\t"+result)
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	fmt.Fprintf(f, "%s\n", conformance.Legend)
	for i, reason := range reasons {
		fmt.Fprintf(f, "[%d] %s\n", i+1, reason)
	}
	for _, store := range columns {
		passed := 0
		for _, result := range results[store] {
			if result == "passed" {
				passed++
			}
		}
		fmt.Fprintf(f, "%s: %d of %d cases passed; %s\n", store, passed, len(results[store]), origins[store])
	}
}

// emulated is the TTL on emulators of cloud services.
const emulated = 500 * time.Millisecond

// hasty is a backend on an emulator, which is near and bears any rate: with the
// service's limits the suite would take minutes more, or hours.
type hasty struct{ backends.Backend }

func hasten(t testing.TB, b backends.Backend) backends.Backend {
	if _, ok := b.(backends.Watcher); ok {
		t.Fatal("the suite would not see that the backend is a Watcher")
	}
	return hasty{b}
}

func (h hasty) Describe() backends.Description {
	d := h.Backend.Describe()
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
