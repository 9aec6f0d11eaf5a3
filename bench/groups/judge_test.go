package groups

import (
	"slices"
	"testing"
	"time"
)

func TestWithout(t *testing.T) {
	for _, c := range []struct {
		name string
		gaps []span
		want []span
	}{
		{"nothing", nil, []span{{10, 20}}},
		{"before and after", []span{{1, 10}, {20, 30}}, []span{{10, 20}}},
		{"the middle", []span{{12, 15}}, []span{{10, 12}, {15, 20}}},
		{"the start", []span{{5, 15}}, []span{{15, 20}}},
		{"the end", []span{{15, 25}}, []span{{10, 15}}},
		{"all", []span{{10, 20}}, nil},
		{"two", []span{{11, 12}, {18, 30}}, []span{{10, 11}, {12, 18}}},
	} {
		if got := without(span{10, 20}, c.gaps); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v; want %v", c.name, got, c.want)
		}
	}
}

func TestJudge(t *testing.T) {
	scene := span{100, 200}
	for _, c := range []struct {
		name   string
		all    []stretch
		frozen map[string][]span
		want   outcome
	}{
		{"stays", []stretch{{"a", 0, span{0, forever}}}, nil, outcome{}},
		{"handed over", []stretch{{"a", 0, span{0, 110}}, {"b", 0, span{115, forever}}}, nil,
			outcome{moves: 1, idle: []time.Duration{5}}},
		{"handed over without a pause", []stretch{{"a", 0, span{0, 110}}, {"b", 0, span{110, forever}}}, nil,
			outcome{moves: 1, idle: []time.Duration{0}}},
		{"together", []stretch{{"a", 0, span{0, 120}}, {"b", 0, span{110, forever}}}, nil,
			outcome{moves: 1, idle: []time.Duration{0}, longest: 10, sum: 10}},
		{"three together count once", []stretch{{"a", 0, span{0, 120}}, {"b", 0, span{110, forever}}, {"c", 0, span{115, 130}}}, nil,
			outcome{moves: 2, idle: []time.Duration{0}, longest: 20, sum: 20}},
		{"there and back", []stretch{{"a", 0, span{0, 110}}, {"b", 0, span{120, 150}}, {"a", 0, span{153, forever}}}, nil,
			outcome{moves: 2, idle: []time.Duration{13}}},
		{"stops and goes on", []stretch{{"a", 0, span{0, 110}}, {"a", 0, span{120, forever}}}, nil,
			outcome{still: []time.Duration{10}}},
		{"frozen, and resumes as if nothing were", []stretch{{"a", 0, span{0, 183}}, {"b", 0, span{160, forever}}},
			map[string][]span{"a": {{110, 180}}},
			outcome{moves: 1, idle: []time.Duration{50}, longest: 3, sum: 3}},
		{"frozen, resumes, and takes it again", []stretch{{"a", 0, span{0, 183}}, {"b", 0, span{160, 190}}, {"a", 0, span{191, forever}}},
			map[string][]span{"a": {{110, 180}}},
			outcome{moves: 2, idle: []time.Duration{51}, longest: 3, sum: 3}},
		{"frozen, and does not resume", []stretch{{"a", 0, span{0, 180}}, {"b", 0, span{160, forever}}},
			map[string][]span{"a": {{110, 180}}},
			outcome{moves: 1, idle: []time.Duration{50}}},
		{"no successor", []stretch{{"a", 0, span{0, 110}}}, nil, outcome{still: []time.Duration{90}, open: true}},
		{"never worked on", nil, nil, outcome{still: []time.Duration{100}, open: true}},
		{"before and after the scene", []stretch{{"a", 0, span{0, 50}}, {"b", 0, span{40, 250}}, {"a", 0, span{240, forever}}}, nil, outcome{}},
	} {
		got := judge(1, c.all, c.frozen, scene)
		if got.moves != c.want.moves || !slices.Equal(got.idle, c.want.idle) || !slices.Equal(got.still, c.want.still) || got.longest != c.want.longest || got.sum != c.want.sum || got.open != c.want.open {
			t.Errorf("%s: %+v; want %+v", c.name, got, c.want)
		}
	}
}

// The figures of a scene are those of all partitions.
func TestJudgePartitions(t *testing.T) {
	got := judge(3, []stretch{
		{"a", 0, span{0, 120}}, {"b", 0, span{110, forever}}, // together for 10
		{"a", 1, span{0, 130}}, {"b", 1, span{128, forever}}, // together for 2
		{"a", 2, span{0, 110}}, {"c", 2, span{150, forever}},
	}, nil, span{100, 200})
	if got.longest != 10 || got.sum != 12 || got.moves != 3 || got.open || !slices.Equal(got.idle, []time.Duration{0, 0, 40}) {
		t.Errorf("%+v", got)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		all  []time.Duration
		want time.Duration
	}{
		{nil, 0},
		{[]time.Duration{7}, 7},
		{[]time.Duration{9, 1, 4}, 4},
		{[]time.Duration{9, 1, 4, 6}, 5},
	} {
		if got := median(c.all); got != c.want {
			t.Errorf("%v: %d; want %d", c.all, got, c.want)
		}
	}
	if got := (outcome{}).most(); got != 0 {
		t.Errorf("the longest of none: %d", got)
	}
	if got := (outcome{idle: []time.Duration{1, 5}, still: []time.Duration{7, 2}}).most(); got != 7 {
		t.Errorf("the longest: %d; want 7", got)
	}
}
