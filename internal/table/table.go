// Package table keeps what came out of cases on stores, for several processes, and writes
// it as a table that shows which cases did not run.
package table

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	results map[string]map[string]result // by store and case
	origins map[string]string            // of the stores
	wanted  []string                     // cases
}

type result struct{ result, reason string }

// Add begins the column of a store: origin says what it is.
func (t *Table) Add(store, origin string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.results == nil {
		t.results, t.origins = map[string]map[string]result{}, map[string]string{}
	}
	t.results[store], t.origins[store] = map[string]result{}, origin
}

// What comes out of a case besides "failed".
const (
	Passed        = "passed"
	NotApplicable = "not applicable" // the store has no use for it
)

// Report notes what came out of a case on a store that was added. The reason of a case
// that is NotApplicable is written below the table.
func (t *Table) Report(store, name, came, reason string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.results[store][name] = result{came, reason}
}

// A line of a file of results: a store with its origin, or what came out of a case on
// it, or a case that must have a result.
type line struct {
	Store  string `json:",omitempty"`
	Origin string `json:",omitempty"`
	Case   string `json:",omitempty"`
	Result string `json:",omitempty"`
	Reason string `json:",omitempty"`
}

// Save appends the table to the file that a variable of the environment names, if it
// names one. Several processes may do so at the same time; [Read] has what all of them
// appended. The cases that are given must have a result for each store; without any, those
// that another store has.
func (t *Table) Save(variable string, cases []string) {
	path := os.Getenv(variable)
	if path == "" {
		return
	}
	if err := t.save(path, cases); err != nil {
		fmt.Fprintln(os.Stderr, "the results cannot be saved:", err)
		os.Exit(1)
	}
}

func (t *Table) save(path string, cases []string) error {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	var b strings.Builder
	out := json.NewEncoder(&b)
	for store, origin := range t.origins {
		out.Encode(line{Store: store, Origin: origin})
	}
	for _, name := range cases {
		if len(t.results) > 0 {
			out.Encode(line{Case: name})
		}
	}
	for store, results := range t.results {
		for name, r := range results {
			out.Encode(line{Store: store, Case: name, Result: r.result, Reason: r.reason})
		}
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = f.WriteString(b.String()) // in one write: others append too
	return errors.Join(err, f.Close())
}

// Read returns what was appended to a file of results; a file that is not there has none.
func Read(path string) (*Table, error) {
	t := &Table{}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for in := json.NewDecoder(bufio.NewReader(f)); ; {
		var l line
		err := in.Decode(&l)
		switch {
		case err == io.EOF:
			return t, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", path, err)
		case l.Store == "":
			t.wanted = append(t.wanted, l.Case)
		case l.Case == "":
			t.Add(l.Store, l.Origin)
		default:
			t.Report(l.Store, l.Case, l.Result, l.Reason)
		}
	}
}

// Has reports whether the store was added.
func (t *Table) Has(store string) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.results[store] != nil
}

// Write writes the table, and reports whether each case passed, or is not applicable, on
// each store.
func (t *Table) Write(out io.Writer) (ok bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	stores := slices.Sorted(maps.Keys(t.origins))
	all := map[string]bool{}
	for _, name := range t.wanted {
		all[name] = true
	}
	for _, results := range t.results {
		for name := range results {
			all[name] = true
		}
	}
	ok = true
	var reasons []string
	passed := map[string]int{}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "case\t%s\n", strings.Join(stores, "\t"))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprint(w, name)
		for _, store := range stores {
			r := t.results[store][name]
			switch r.result {
			case Passed:
				passed[store]++
			case NotApplicable:
				reasons = append(reasons, store+", "+name+": "+r.reason)
				r.result = fmt.Sprintf("%s [%d]", r.result, len(reasons))
			case "":
				r.result = "DID NOT RUN"
				ok = false
			default:
				ok = false
			}
			fmt.Fprint(w, "\t"+r.result)
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	fmt.Fprintln(out, conformance.Legend)
	for i, reason := range reasons {
		fmt.Fprintf(out, "[%d] %s\n", i+1, reason)
	}
	for _, store := range stores {
		fmt.Fprintf(out, "%s: %d of %d cases passed; %s\n", store, passed[store], len(all), t.origins[store])
	}
	return ok
}
