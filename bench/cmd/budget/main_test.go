package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/elector-go/elector/bench/cost"
	"github.com/elector-go/elector/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// What is exactly at a bound is good, and what is beyond it is not, for each
// figure.
func TestFiguresAreJudged(t *testing.T) {
	for name, good := range map[string]cost.Requests{
		"etcd": {First: 2, Acquire: 2, Renewal: 1, Resign: 1},
		"gcs":  {First: 3, Acquire: 2, Renewal: 1, Resign: 1, Waiter: 2, Observer: 0.5},
	} {
		for _, l := range budgets[name].lines(good) {
			if l.verdict() != "" {
				t.Errorf("%s: %s: %v of %v is%s", name, l.what, l.count, l.most, l.verdict())
			}
			l.count = l.most + 0.1
			if !strings.Contains(l.verdict(), "OVER") {
				t.Errorf("%s: %s: %v of %v is %q", name, l.what, l.count, l.most, l.verdict())
			}
			if l.least == 0 && l.most == 0 {
				continue // everything is pushed: there is nothing to see too little of
			}
			l.count = l.least - 0.1
			if !strings.Contains(l.verdict(), "NOT COUNTED") {
				t.Errorf("%s: %s: %v of at least %v is %q", name, l.what, l.count, l.least, l.verdict())
			}
		}
	}
}

// A waiter that reads is seen where nothing is pushed, and must not read where
// everything is.
func TestEachFigureIsJudged(t *testing.T) {
	good := cost.Requests{First: 2, Acquire: 2, Renewal: 1, Resign: 1, Waiter: 1, Observer: 1}
	for what, spoil := range map[string]func(*cost.Requests){
		"first":       func(r *cost.Requests) { r.First++ },
		"uncontended": func(r *cost.Requests) { r.Acquire++ },
		"renewal":     func(r *cost.Requests) { r.Renewal += 0.1 },
		"resign":      func(r *cost.Requests) { r.Resign++ },
		"waiter":      func(r *cost.Requests) { r.Waiter = 2.1 },
		"observer":    func(r *cost.Requests) { r.Observer = 2.1 },
	} {
		r := good
		spoil(&r)
		over := slices.DeleteFunc(budgets["postgres"].lines(r), func(l line) bool { return l.verdict() == "" })
		if len(over) != 1 || !strings.Contains(over[0].what, what) {
			t.Errorf("%s over its budget: %+v", what, over)
		}
	}
}

func TestUnknownStoreIsRefused(t *testing.T) {
	err := run(t.Context(), []string{"etcd", "clay"})
	if err == nil || !strings.Contains(err.Error(), `"clay"`) {
		t.Errorf("error %v; want one that names the store", err)
	}
}
