// Package table keeps what came out of cases on stores, and writes it as a table
// in which a case that did not run is seen.
package table

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/elector-go/elector/conformance"
)

// A Table is empty at first. Its methods may be called at the same time.
type Table struct {
	mutex   sync.Mutex
	results map[string]map[string]string // by store and case
	origins map[string]string            // of the stores
	reasons []string                     // why a case is not applicable
}

// Add begins the column of a store: origin says what it is.
func (t *Table) Add(store, origin string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.results == nil {
		t.results, t.origins = map[string]map[string]string{}, map[string]string{}
	}
	t.results[store], t.origins[store] = map[string]string{}, origin
}

// NotApplicable is the result of a case that a store has no use for.
const NotApplicable = "not applicable"

// Report notes what came out of a case on a store that was added. Why a case is
// NotApplicable is said below the table.
func (t *Table) Report(store, name, result, reason string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if result == NotApplicable {
		t.reasons = append(t.reasons, store+", "+name+": "+reason)
		result = fmt.Sprintf("%s [%d]", result, len(t.reasons))
	}
	t.results[store][name] = result
}

// Save writes the table to the file that a variable of the environment names, if
// it names one and something was added. It has the stores and cases given, and
// where none are given all that were reported.
func (t *Table) Save(variable string, stores, cases []string) {
	path := os.Getenv(variable)
	if path == "" || len(t.results) == 0 {
		return
	}
	var b strings.Builder
	t.write(&b, stores, cases)
	if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
		fmt.Fprintln(os.Stderr, "the table of results cannot be written:", err)
	}
}

func (t *Table) write(out io.Writer, stores, cases []string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if len(stores) == 0 {
		stores = slices.Sorted(maps.Keys(t.results))
	}
	if len(cases) == 0 {
		all := map[string]bool{}
		for _, results := range t.results {
			for name := range results {
				all[name] = true
			}
		}
		cases = slices.Collect(maps.Keys(all))
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "case\t%s\n", strings.Join(stores, "\t"))
	passed := map[string]int{}
	for _, name := range slices.Sorted(slices.Values(cases)) {
		fmt.Fprint(w, name)
		for _, store := range stores {
			result := t.results[store][name]
			switch result {
			case "":
				result = "DID NOT RUN"
			case "passed":
				passed[store]++
			}
			fmt.Fprint(w, "\t"+result)
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	fmt.Fprintln(out, conformance.Legend)
	for i, reason := range t.reasons {
		fmt.Fprintf(out, "[%d] %s\n", i+1, reason)
	}
	for _, store := range stores {
		fmt.Fprintf(out, "%s: %d of %d cases passed; %s\n", store, passed[store], len(cases), t.origins[store])
	}
}
