package overlap

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/bench/peers"
)

func library(t *testing.T, name, store string) peers.Library {
	l, ok := find(name, store)
	if !ok {
		t.Fatalf("no library %s on %s", name, store)
	}
	return l
}

func TestReport(t *testing.T) {
	const ms = time.Millisecond
	ours, zk := library(t, "elector", "zookeeper"), library(t, "zk-lock", "zookeeper")
	apart := figure{elected: 3300 * ms, held: 2200 * ms}
	together := figure{both: 10 * ms, met: true, elected: 3300 * ms, held: 3310 * ms}
	touching := figure{met: true, elected: 3300 * ms, held: 3300 * ms}
	peer := func(figures ...figure) *row { return &row{library: zk, scene: idle, figures: figures} }
	own := func(figures ...figure) *row { return &row{library: ours, scene: idle, figures: figures} }
	bad := []figure{
		{both: 9 * time.Second, met: true, elected: 3 * time.Second, held: 12 * time.Second},
		{both: 12 * time.Second, met: true, atLeast: true, elected: 3 * time.Second, held: 15 * time.Second},
		{both: 8 * time.Second, met: true, elected: 3 * time.Second, held: 11 * time.Second},
	}
	for _, c := range []struct {
		name      string
		rows      []*row
		want      error
		has, lack []string
	}{
		{"a peer's overlap is no failure", []*row{own(apart), peer(bad...)}, nil,
			[]string{"8.00 s  9.00 s  ≥ 12.00 s  0 s", "never two leaders", "two leaders for", "go-zookeeper/zk ", "nowhere"}, []string{"WRONG"}},
		{"ours is", []*row{own(apart, together), peer(bad...)}, errWrong,
			[]string{"≥ 12.00 s  0.01 s", "WRONG: elector on zookeeper, cut: two processes led at once for 0.01 s"}, []string{"nowhere"}},
		{"an instant is too", []*row{own(touching), peer(bad...)}, errWrong, []string{"WRONG: elector"}, []string{"nowhere"}},
		{"a round did not take place", []*row{own(apart), {library: zk, scene: idle, figures: bad, errs: []error{errors.New("no candidate took over")}}}, errPeers,
			[]string{"WRONG: zk-lock on zookeeper, cut: no candidate took over"}, []string{"nowhere"}},
		{"nothing was measured", []*row{own(), peer(bad...)}, errWrong, []string{"WRONG: elector on zookeeper, cut: nothing was measured", "–"}, []string{"nowhere"}},
	} {
		var out strings.Builder
		if err := report(&out, c.rows, 3*time.Second); err != c.want {
			t.Errorf("%s: error %v; want %v", c.name, err, c.want)
		}
		for _, text := range c.has {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%s: the report lacks %q", c.name, text)
			}
		}
		for _, text := range c.lack {
			if strings.Contains(out.String(), text) {
				t.Errorf("%s: the report has %q", c.name, text)
			}
		}
		if t.Failed() {
			t.Fatal(out.String())
		}
	}
}

// The other scene's figures of our library are not those beside a row.
func TestOursBeside(t *testing.T) {
	ours, zk := library(t, "elector", "zookeeper"), library(t, "zk-lock", "zookeeper")
	rows := []*row{
		{library: library(t, "elector", "etcd"), scene: idle, figures: []figure{{both: time.Second}}},
		{library: ours, scene: slow, figures: []figure{{both: 2 * time.Second}}},
		{library: ours, scene: idle, figures: []figure{{both: 3 * time.Second}, {both: 4 * time.Second}}},
		{library: zk, scene: idle},
	}
	if got := oursBeside(rows, rows[3]); got != "4.00 s" {
		t.Errorf("beside it stands %s; want the most of the same store and scene, 4.00 s", got)
	}
}
