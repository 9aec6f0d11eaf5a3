package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/bench/report"
	"github.com/elector-go/elector/bench/results"
)

func TestList(t *testing.T) {
	if got := list("etcd, dynamolock,"); !slices.Equal(got, []string{"etcd", "dynamolock"}) {
		t.Errorf("%q", got)
	}
}

func TestSubjectsHaveChapters(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range subjects {
		for _, of := range s.subjects {
			if seen[of] {
				t.Errorf("%s is measured twice", of)
			}
			seen[of] = true
			var page strings.Builder
			f := results.Figure{Subject: of, Store: "etcd", Library: "elector", What: "handover", Count: 1, Unit: "requests", Values: []float64{1}}
			if of == results.Handover {
				f.What, f.Unit = "from resign to the successor knowing", "ms"
			}
			figures := []results.Figure{f}
			if of == results.Scale { // there are plots of these
				for _, what := range []string{"requests to hold all of them", "memory per further election", "goroutines per further election"} {
					f.What = what
					figures = append(figures, f)
				}
			}
			if err := report.Page(&page, figures, report.About{}); err != nil || !strings.Contains(page.String(), "| "+f.What) {
				t.Errorf("%s is not on the page, error %v", of, err)
			}
		}
	}
}

func TestMerge(t *testing.T) {
	f := func(subject, store, library string, v float64) results.Figure {
		return results.Figure{Subject: subject, Store: store, Library: library, What: "x", Values: []float64{v}}
	}
	libraries, _ := peers.Choose([]string{"client-go"}, nil)
	before := []results.Figure{
		f(results.Check, "etcd", "nobody's", 1),
		f(results.Check, "postgres", "pglock", 1), f(results.Check, "kubernetes", "client-go (IsLeader)", 1), f(results.Check, "etcd", "etcd", 1),
		f(results.Cost, "kubernetes", "elector", 1), f(results.Check, "kubernetes", "elector", 1),
	}
	now := []results.Figure{f(results.Check, "kubernetes", "elector", 2), f(results.Check, "kubernetes", "client-go", 2)}
	var got []string
	for _, f := range merge(before, now, []string{results.Check}, libraries) {
		got = append(got, fmt.Sprint(f.Subject, " ", f.Store, " ", f.Library, " ", f.Values[0]))
	}
	want := []string{"cost kubernetes elector 1", "check etcd etcd 1", "check postgres pglock 1", "check kubernetes elector 2", "check kubernetes client-go 2"}
	if !slices.Equal(got, want) {
		t.Errorf("merged:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(before) != 6 || before[1].Library != "pglock" {
		t.Error("what was given has changed")
	}
}

func TestVersion(t *testing.T) {
	for how, want := range map[string]string{
		"local process etcd 3.7.3 (built from its module)":                                          "etcd 3.7.3",
		"local process PostgreSQL 15.4 (installed in /usr/lib/postgresql/15/bin); no Docker: x (y)": "PostgreSQL 15.4",
		"address from ELECTOR_TEST_ETCD":                                                            "address from ELECTOR_TEST_ETCD",
	} {
		if got := version(how); got != want {
			t.Errorf("%s is %q; want %q", how, got, want)
		}
	}
}

// Only a program knows the versions that it was built with.
func TestLibrariesHaveVersions(t *testing.T) {
	for _, l := range peers.All() {
		if v := l.Version(); !l.Ours() && !strings.HasPrefix(v, "v") || l.Ours() && v != "as in this tree" {
			t.Errorf("the version of %s is %q", l.Name, v)
		}
	}
}

func TestKnown(t *testing.T) {
	before := []report.System{{Kind: "etcd", Name: "etcd 3.6"}, {Kind: "zookeeper", Name: "ZooKeeper 3.8"}}
	got := known(before, []report.System{{Kind: "etcd", Name: "etcd 3.7"}, {Kind: "postgres", Name: "PostgreSQL 18"}})
	want := []report.System{{Kind: "etcd", Name: "etcd 3.7"}, {Kind: "zookeeper", Name: "ZooKeeper 3.8"}, {Kind: "postgres", Name: "PostgreSQL 18"}}
	if !slices.Equal(got, want) || before[0].Name != "etcd 3.6" {
		t.Errorf("%v; want %v", got, want)
	}
}

func asked(_ context.Context, kinds []string, _ func(string, ...any)) (all []report.System, err error) {
	for _, k := range kinds {
		all = append(all, report.System{Kind: k, Name: k + " 1.0"})
	}
	return all, nil
}

// measures gives one figure of this library for each store.
func measures(name string, v float64) subject {
	return subject{name, []string{name}, func(_ context.Context, o options) (all []results.Figure, err error) {
		for _, l := range o.libraries {
			if l.Ours() {
				all = append(all, results.Figure{Subject: name, Store: l.Store, Library: l.Name, What: "handover", Count: 1, Unit: "requests", Values: []float64{v}})
			}
		}
		return all, nil
	}}
}

func TestRun(t *testing.T) {
	out := t.TempDir()
	c := &comparison{ttl: 3 * time.Second, out: out, log: t.Logf}
	if err := c.run(t.Context(), []subject{measures(results.Cost, 41), measures(results.Check, 42)}, asked); err != nil {
		t.Fatal(err)
	}
	page := func() string {
		b, err := os.ReadFile(filepath.Join(out, "RESULTS.md"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if p := page(); !strings.Contains(p, "requests | 41 |") || !strings.Contains(p, "requests | 42 |") || !strings.Contains(p, "### etcd 1.0") {
		t.Errorf("the page has not what was measured:\n%s", p)
	}
	if _, err := os.Stat(filepath.Join(out, "plots", "handover-requests.svg")); err != nil {
		t.Error(err)
	}

	// One subject again: the other's figures stay.
	c.only = []string{results.Check}
	if err := c.run(t.Context(), []subject{measures(results.Cost, 51), measures(results.Check, 52)}, asked); err != nil {
		t.Fatal(err)
	}
	if p := page(); !strings.Contains(p, "requests | 41 |") || !strings.Contains(p, "requests | 52 |") || strings.Contains(p, "| 42 |") {
		t.Errorf("the page has not what was measured apart:\n%s", p)
	}

	// The page can be written again without anything being measured.
	written := page()
	if err := os.Remove(filepath.Join(out, "RESULTS.md")); err != nil {
		t.Fatal(err)
	}
	if err := c.page(); err != nil || page() != written {
		t.Errorf("the page that is written again is another one, error %v", err)
	}

	// A failure keeps what was measured, but not on the page, and goes on.
	kept := page()
	broken := errors.New("out of reach")
	fails := measures(results.Check, 62)
	measure := fails.measure
	fails.measure = func(ctx context.Context, o options) ([]results.Figure, error) {
		figures, _ := measure(ctx, o)
		return figures[:1], broken
	}
	c.only = nil
	err := c.run(t.Context(), []subject{fails, measures(results.Cost, 61)}, asked)
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), results.Check+": ") {
		t.Errorf("error %v; want the subject's", err)
	}
	figures, err := results.Load(filepath.Join(out, "results.json"))
	if err != nil || len(figures) != 1+len(peers.Stores(peers.All())) || page() != kept {
		t.Errorf("%d figures are kept, error %v, page changed %v", len(figures), err, page() != kept)
	}

	// A store without a figure of this library is a failure.
	fewer := measures(results.Check, 72)
	fewer.measure = func(ctx context.Context, o options) ([]results.Figure, error) {
		figures, err := measure(ctx, o)
		return figures[1:], err
	}
	if err := c.run(t.Context(), []subject{fewer}, asked); err == nil || !strings.Contains(err.Error(), "check on etcd") {
		t.Errorf("error %v; want that a table is empty", err)
	}
}

func TestRunRefuses(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "RESULTS.md"), []byte("# kept"), 0o666); err != nil {
		t.Fatal(err)
	}
	short := t.TempDir()
	if err := os.WriteFile(filepath.Join(short, "RESULTS.md"), []byte(report.ShortRun), 0o666); err != nil {
		t.Fatal(err)
	}
	all := []subject{measures(results.Check, 1)}
	for _, c := range []struct {
		name string
		comparison
		want string // in the error; empty for none
	}{
		{"half a second", comparison{ttl: time.Second / 2, out: short}, "whole seconds"},
		{"short into this folder", comparison{ttl: time.Second, out: ".", short: true}, "-out"},
		{"short over a full one", comparison{ttl: time.Second, out: full, short: true}, "-out"},
		{"short over a short one", comparison{ttl: time.Second, out: short, short: true}, ""},
		{"no such subject", comparison{ttl: time.Second, out: short, only: []string{"speed"}}, `"speed"`},
		{"no such library", comparison{ttl: time.Second, out: short, wanted: []string{"consul"}}, `"consul"`},
	} {
		c.log = t.Logf
		err := c.run(t.Context(), all, asked)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v; want %q", c.name, err, c.want)
		}
	}
}
