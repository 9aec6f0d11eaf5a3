package scale

import (
	"strings"
	"testing"
	"time"

	_ "github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/bench/results"
)

// A child tells in this order what it does, and reports once for each line of
// input.
func TestChild(t *testing.T) {
	var told []message
	task := task{Library: "elector", URL: "memory://scale", TTL: time.Minute, Elections: 200, Prefix: "child"}
	if err := child(task, strings.NewReader("\n\n"), func(m message) { told = append(told, m) }); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, m := range told {
		kinds = append(kinds, m.Kind)
		if m.Lost > 0 || m.Kind == report && (m.Usage.Goroutines < 200 || m.Usage.Heap == 0) {
			t.Errorf("it tells %+v", m)
		}
	}
	if got := strings.Join(kinds, " "); got != "connected held report report" {
		t.Errorf("it tells %s", got)
	}
}

func TestUnknownLibrary(t *testing.T) {
	if err := child(task{Library: "nobody's"}, strings.NewReader(""), nil); err == nil {
		t.Error("no error")
	}
}

// What a process used before is taken off, and the rest shared out.
func TestUses(t *testing.T) {
	var figures []results.Figure
	r := run{elections: 10}
	r.uses("election", usage{5, 1000, 500}, usage{25, 21000, 10500}, func(what, unit string, values ...float64) {
		figures = append(figures, results.Figure{What: what, Unit: unit, Values: values})
	})
	if len(figures) != 2 || figures[0].Values[0] != 2 || figures[1].Values[0] != 3000 || figures[1].What != "heap per election" {
		t.Errorf("%+v", figures)
	}
}

func TestWanted(t *testing.T) {
	some := []peers.Library{{Name: "etcd", Store: "etcd"}}
	for _, c := range []struct {
		name, kind string
		some       []peers.Library
		want       bool
	}{{"etcd", "etcd", some, true}, {"elector", "etcd", some, false}, {"etcd", "zookeeper", some, false}, {"elector", "etcd", nil, true}} {
		if wanted(c.some, c.name, c.kind) != c.want {
			t.Errorf("%s on %s of %v: not %v", c.name, c.kind, c.some, c.want)
		}
	}
}
