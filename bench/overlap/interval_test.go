package overlap

import (
	"testing"
	"time"
)

func TestOverlap(t *testing.T) {
	type is = []interval
	for _, c := range []struct {
		name string
		a, b is
		both time.Duration
		met  bool
	}{
		{"nobody", nil, nil, 0, false},
		{"one alone", is{{1, 5}}, nil, 0, false},
		{"one after the other", is{{1, 5}}, is{{6, 9}}, 0, false},
		{"the other order", is{{6, 9}}, is{{1, 5}}, 0, false},
		{"an instant", is{{1, 5}}, is{{5, 9}}, 0, true},
		{"a part", is{{1, 5}}, is{{3, 9}}, 2, true},
		{"inside", is{{1, 10}}, is{{3, 7}}, 4, true},
		{"equal", is{{1, 10}}, is{{1, 10}}, 9, true},
		{"two of a in one of b", is{{1, 3}, {5, 8}}, is{{2, 9}}, 4, true},
		{"one of a over two of b", is{{0, 20}}, is{{2, 4}, {10, 15}}, 7, true},
		{"interleaved", is{{0, 4}, {6, 10}}, is{{3, 7}, {9, 12}}, 3, true},
		{"only the second meets", is{{0, 4}, {6, 10}}, is{{5, 5}, {8, 9}}, 1, true},
	} {
		both, met := overlap(c.a, c.b)
		if both != c.both || met != c.met {
			t.Errorf("%s: %d, met %v; want %d, met %v", c.name, both, met, c.both, c.met)
		}
		if again, too := overlap(c.b, c.a); again != both || too != met {
			t.Errorf("%s: not the same with a and b exchanged", c.name)
		}
	}
}

func TestIntervals(t *testing.T) {
	runs := []run{{10, 12, 30, 33}, {50, 54, 50, 54}} // the second one is a single sample
	sure := intervals(runs, run.surely)
	if len(sure) != 1 || sure[0] != (interval{12, 30}) {
		t.Errorf("what is sure: %v; want 12 to 30: one sample alone shows no stretch of time", sure)
	}
	may := intervals(runs, run.perhaps)
	if len(may) != 2 || may[0] != (interval{10, 33}) || may[1] != (interval{50, 54}) {
		t.Errorf("what may be: %v; want 10 to 33, 50 to 54", may)
	}
	if end := last(may); end != 54 {
		t.Errorf("the last ends at %d; want 54", end)
	}
	if end := last(nil); end != 0 {
		t.Errorf("the end of nothing is %d; want 0", end)
	}
}

func TestJudge(t *testing.T) {
	old := []run{{0, 1, 130, 133}}
	for _, c := range []struct {
		name      string
		successor run
		ours      bool
		want      figure
	}{
		{"ours, apart", run{140, 142, 200, 201}, true, figure{elected: 42, held: 33}},
		{"ours, perhaps together", run{132, 135, 200, 201}, true, figure{both: 1, met: true, elected: 35, held: 33}},
		{"a peer, perhaps together", run{132, 135, 200, 201}, false, figure{elected: 35, held: 30}},
		{"a peer, surely together", run{120, 122, 200, 201}, false, figure{both: 8, met: true, elected: 22, held: 30}},
	} {
		if got := judge(c.ours, old, []run{c.successor}, false, 100); got != c.want {
			t.Errorf("%s: %+v; want %+v", c.name, got, c.want)
		}
	}
	if got := judge(false, old, []run{{120, 122, 200, 201}}, true, 100); !got.atLeast {
		t.Error("the old leader believed to the end, and the figure does not say at least")
	}
	// One that gave up before the cut held for no time after it.
	if got := judge(false, []run{{0, 1, 50, 51}}, []run{{120, 122, 200, 201}}, false, 100); got.held != 0 {
		t.Errorf("held %d; want 0", got.held)
	}
}
