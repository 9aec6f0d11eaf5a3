package report

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/elector-go/elector/bench/results"
)

// The page and the plots that are kept are those of the figures that are kept,
// nothing in them is unexplained, and no reason is for a row that is not there.
func TestKept(t *testing.T) {
	const folder = ".."
	figures, err := results.Load(filepath.Join(folder, "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	about, err := LoadAbout(filepath.Join(folder, "about.json"))
	if err != nil {
		t.Fatal(err)
	}
	same := func(name, want string) {
		t.Helper()
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Error(err)
			return
		}
		if string(got) != want {
			t.Errorf("%s is not what the figures say: in bench, go run ./cmd/compare -page writes it again", name)
		}
	}
	var page strings.Builder
	if err := Page(&page, figures, about); err != nil {
		t.Fatal(err)
	}
	same("RESULTS.md", page.String())
	plots, err := Plots(figures)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range plots {
		same(filepath.Join("plots", p.Name+".svg"), p.SVG)
	}
	if about.Short {
		t.Error("they are of a short run")
	}
	for line := range strings.SplitSeq(page.String(), "\n") {
		if strings.Contains(line, "not explained yet") {
			t.Errorf("not explained: %s", line)
		}
	}
	for p := range reasons {
		if !slices.ContainsFunc(figures, func(f results.Figure) bool {
			return f.Subject == p.subject && f.What == p.what && (p.store == "" || p.store == f.Store)
		}) {
			t.Errorf("there is a reason for %v, and no such row", p)
		}
	}
}
