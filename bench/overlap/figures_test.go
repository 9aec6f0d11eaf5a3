package overlap

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/bench/results"
)

func TestFigures(t *testing.T) {
	zk := library(t, "zk-lock", "zookeeper")
	all := figuresOf([]*row{
		{library: zk, scene: slow, figures: []figure{
			{both: 2 * time.Second, met: true, held: 5 * time.Second, elected: 3 * time.Second},
			{both: 12 * time.Second, met: true, atLeast: true, held: 15 * time.Second, elected: 2500 * time.Millisecond},
		}},
		{library: zk, scene: idle, errs: []error{errors.New("no candidate took over")}},
	})
	if len(all) != 6 {
		t.Fatalf("%d figures; want three of each row", len(all))
	}
	for i, want := range []struct {
		what   string
		values []float64
		note   string // begins with it
	}{
		{"slow, then cut: both", []float64{2, 12}, "at least"},
		{"slow, then cut: from the cut until the old", []float64{5, 15}, "at least"},
		{"slow, then cut: from the cut until the successor", []float64{3, 2.5}, ""},
		{"cut: both", nil, "no round took place"},
	} {
		f := all[i]
		if f.Subject != results.Overlap || f.Store != "zookeeper" || f.Library != "zk-lock" || f.Unit != "s" ||
			!strings.HasPrefix(f.What, want.what) || !slices.Equal(f.Values, want.values) || !strings.HasPrefix(f.Note, want.note) || (want.note == "" && f.Note != "") {
			t.Errorf("figure %d: %+v; want %+v", i, f, want)
		}
	}
}
