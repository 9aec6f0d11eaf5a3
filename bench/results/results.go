// Package results is what measurements give: figures, one list of them for a
// whole comparison, kept as a file from which the page and the plots are drawn.
package results

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// A Figure is what was measured of one library on one store under one name.
type Figure struct {
	Subject string // which measurement: see the constants
	Store   string // the kind, as in internal/proof/stores
	Library string // as peers.Library.Name
	What    string // what was measured, for people: "uncontended acquire"
	Count   int    `json:",omitempty"` // of waiters or elections, 0 where there is none
	Unit    string // "requests", "bytes", "ns", "ms", "TTL", "round trips", "goroutines", …

	// Values holds every single measurement, in the order in which they were
	// made; one where the figure is exact. An empty list with a Note says why
	// it could not be measured.
	Values []float64

	Note string `json:",omitempty"` // what a reader must know to read it
}

// The subjects, in the order in which they are reported.
const (
	Cost     = "cost"     // requests and bytes on the wire
	Handover = "handover" // from a release to the successor
	Takeover = "takeover" // from a crash to the successor
	Overlap  = "overlap"  // two who believe that they lead
	Scale    = "scale"    // many elections in one process
	Check    = "check"    // asking whether one leads
)

// Median returns the median of the values, the mean of the two in the middle if
// their number is even. There must be one.
func (f Figure) Median() float64 {
	s := slices.Sorted(slices.Values(f.Values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// Least returns the smallest value. There must be one.
func (f Figure) Least() float64 { return slices.Min(f.Values) }

// Most returns the largest value. There must be one.
func (f Figure) Most() float64 { return slices.Max(f.Values) }

// Save writes figures to a file.
func Save(path string, figures []Figure) error {
	text, err := json.MarshalIndent(figures, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o666)
}

// Load reads a file that Save has written.
func Load(path string) ([]Figure, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var figures []Figure
	if err := json.Unmarshal(text, &figures); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return figures, nil
}
