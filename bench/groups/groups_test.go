package groups

import (
	"strings"
	"testing"
	"time"
)

// Each member owns what the others do not, and a member that leaves changes nothing of what
// the others have.
func TestRendezvous(t *testing.T) {
	early := map[string]bool{}
	for _, id := range ids[:len(ids)-1] {
		early[id] = true
	}
	all := map[string]bool{ids[len(ids)-1]: true}
	for id := range early {
		all[id] = true
	}
	has := map[string]int{}
	for n := range partitions {
		before, now := rendezvous(ids, early, n), rendezvous(ids, all, n)
		if has[now]++; now != before && now != ids[len(ids)-1] {
			t.Errorf("partition %d moves from %q to %q", n, before, now)
		}
	}
	for _, id := range ids { // otherwise the group never settles
		if has[id] == 0 {
			t.Errorf("member %s has no partition", id)
		}
	}
	if got := rendezvous(ids, nil, 1); got != "" {
		t.Errorf("%q has a partition and is not there", got)
	}
}

func TestTable(t *testing.T) {
	const ms = time.Millisecond
	ours, _ := find("partition, etcd")
	franz, _ := find("franz-go")
	g := table([]*measured{
		{subject: ours, system: "etcd 3.7", shown: map[scene]map[view][]outcome{join: {units: {
			{moves: 4, idle: []time.Duration{10 * ms, 20 * ms, 30 * ms}, longest: 140 * time.Microsecond},
			{moves: 5, idle: []time.Duration{40 * ms}, still: []time.Duration{50 * ms, time.Nanosecond}},
		}}}},
		{subject: franz, system: "kfake", shown: map[scene]map[view][]outcome{join: {
			units: {{moves: 4, longest: 1500 * ms, sum: 3 * time.Second}},
			holds: {{moves: 4, idle: []time.Duration{time.Minute}, open: true}},
		}}},
	}, []scene{join}, Options{TTL: 6 * time.Second, Rounds: 2})
	var b strings.Builder
	if err := g.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| franz-go | github.com/twmb/franz-go ", "| kfake |", "after 12 s", "for 18 s", "6 s for all",
		"\n| | partition, etcd | franz-go | franz-go, callbacks |\n",
		"\n| join: moves, least possible 4 | 4.5 (4–5) | 4 | 4 |\n",
		"\n| join: two at work on a partition, longest: s | 0.00005 (0–0.0001) | 1.5 | 0 |\n",
		"\n| join: two at work, sum of all partitions: s | 0 | 3 | 0 |\n",
		"\n| join: none at work on a partition that moves, median: s | 0.03 (0.02–0.04) | 0 | ≥ 60 |\n",
		"\n| join: none at work on a partition, longest: s | 0.04 (0.03–0.05) | 0 | ≥ 60 |\n",
		"\n| join: others that stand still: partitions | 1 (0–2) | 0 | 0 |\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the section lacks %q:\n%s", want, b.String())
		}
	}
}

func TestLeast(t *testing.T) {
	for s, want := range map[scene]string{join: "4", leave: "4", crash: "5 or 6", stop: "10 to 12", cut: "10 to 12"} {
		if got := least(s); got != want {
			t.Errorf("%s: %s; want %s", s, got, want)
		}
	}
}

func TestChoose(t *testing.T) {
	if all, err := choose(nil); err != nil || len(all) != len(subjects) {
		t.Errorf("%d subjects, error %v", len(all), err)
	}
	if one, err := choose([]string{"sarama"}); err != nil || len(one) != 1 || one[0].name != "sarama" {
		t.Errorf("%v, error %v", one, err)
	}
	if _, err := choose([]string{"kinesis"}); err == nil || !strings.Contains(err.Error(), `"kinesis"`) {
		t.Errorf("error %v", err)
	}
}
