package network

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
)

// results are collected by store and case.
var (
	resultsMutex sync.Mutex
	results      = map[string]map[string]string{}
	origins      = map[string]string{} // of the stores
	reasons      []string              // why a case is not applicable
)

// report notes what came out of a case on a store.
func report(store, name, result, reason string) {
	resultsMutex.Lock()
	defer resultsMutex.Unlock()
	if reason != "" {
		reasons = append(reasons, store+", "+name+": "+reason)
		result = fmt.Sprintf("not applicable [%d]", len(reasons))
	}
	if results[store] == nil {
		results[store] = map[string]string{}
	}
	results[store][name] = result
}

// writeTable writes the results to the file that ELECTOR_FAULT_TABLE names. A
// case that did not run on one of the stores is seen in it.
func writeTable() {
	path := os.Getenv("ELECTOR_FAULT_TABLE")
	if path == "" {
		return
	}
	f, err := os.Create(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the table of results cannot be written:", err)
		return
	}
	defer f.Close()
	w := tabwriter.NewWriter(f, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "case\t%s\n", strings.Join(kinds, "\t"))
	passed := map[string]int{}
	for _, name := range slices.Sorted(slices.Values(names())) {
		fmt.Fprint(w, name)
		for _, store := range kinds {
			result := results[store][name]
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
	for i, reason := range reasons {
		fmt.Fprintf(f, "[%d] %s\n", i+1, reason)
	}
	for _, store := range kinds {
		fmt.Fprintf(f, "%s: %d of %d cases passed; %s\n", store, passed[store], len(cases), origins[store])
	}
}
