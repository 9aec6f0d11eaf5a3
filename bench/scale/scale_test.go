package scale

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/bench/results"
)

// fresh is for names of elections: what a test leads, it leads until its process
// ends, and it may run again before.
func fresh(name string) string { return name + strings.ToLower(rand.Text()) }

// A child tells in this order what it does, and reports once for each line of
// input.
func TestChild(t *testing.T) {
	var told []message
	task := task{Library: "elector", URL: "memory://scale", TTL: time.Minute, Elections: 200, Prefix: fresh("child")}
	if err := holder(task, strings.NewReader("\n\n"), func(m message) { told = append(told, m) }); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, m := range told {
		kinds = append(kinds, m.Kind)
		if m.Lost > 0 || m.Kind == report && (m.Usage.Goroutines < 2*200 || m.Usage.Heap == 0) {
			t.Errorf("it tells %+v", m)
		}
	}
	if got := strings.Join(kinds, " "); got != "connected held report report" {
		t.Errorf("it tells %s", got)
	}
}

// A child that waits has a goroutine for each election from the start, and has
// won when all others have gone.
func TestWaitingChild(t *testing.T) {
	const elections = 50
	first := task{Library: "elector", URL: "memory://scale", TTL: time.Minute, Elections: elections, Prefix: fresh("waiting")}
	c, err := open(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.hold(t.Context(), first.election(1)); err != nil {
		t.Fatal(err)
	}
	if err := holdAll(t.Context(), c, first); err != nil {
		t.Fatal(err)
	}
	waiter := first
	waiter.Wait = true
	input, ask := io.Pipe()
	told, ended := make(chan message, 10), make(chan error, 1)
	go func() { ended <- holder(waiter, input, func(m message) { told <- m }) }()
	for _, want := range []string{connected, waiting, report, held} {
		switch want {
		case report:
			io.WriteString(ask, "\n")
		case held:
			for _, l := range c.(*electors).leases {
				l.Release(t.Context())
			}
		}
		if m := <-told; m.Kind != want || m.Kind == report && m.Usage.Goroutines < 3*elections {
			t.Errorf("it reports %+v; want %s", m, want)
		}
	}
	ask.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := holder(task{Library: clientGo, URL: "kubernetes://127.0.0.1:1/suite?tls=false", TTL: time.Minute, Elections: 1, Prefix: fresh("other"), Wait: true}, strings.NewReader(""), func(message) {}); err == nil {
		t.Error("another library waits")
	}
}

// All three profiles are there at the first report, and are not touched after it.
func TestProfiles(t *testing.T) {
	folder := t.TempDir()
	r := run{o: Options{Profiles: folder}, kind: "etcd", library: "client-go/release", elections: 3}
	names := func() (all []string) {
		files, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			all = append(all, f.Name())
			if b, err := os.ReadFile(filepath.Join(folder, f.Name())); err != nil || !bytes.HasPrefix(b, []byte{0x1f, 0x8b}) { // gzip
				t.Errorf("%s is no profile: %d bytes, error %v", f.Name(), len(b), err)
			}
			if err := os.Remove(filepath.Join(folder, f.Name())); err != nil {
				t.Fatal(err)
			}
		}
		return all
	}
	reports := 0
	tell := func(m message) {
		if m.Kind != report {
			return
		}
		var want []string
		if reports++; reports == 1 {
			want = []string{"etcd-client-go-release-3.cpu.pprof", "etcd-client-go-release-3.goroutine.pprof", "etcd-client-go-release-3.heap.pprof"}
		}
		if got := names(); !slices.Equal(got, want) {
			t.Errorf("report %d has written %v; want %v", reports, got, want)
		}
	}
	task := task{Library: "elector", URL: "memory://scale", TTL: time.Minute, Elections: 3, Prefix: fresh("profiles"), Profiles: r.profiles()}
	if err := holder(task, strings.NewReader("\n\n"), tell); err != nil || reports != 2 {
		t.Errorf("%d reports, error %v", reports, err)
	}
	if r.o.Profiles = ""; r.profiles() != "" {
		t.Error("profiles that were not requested")
	}
}

// A figure of an unknown library would be lost.
func TestLibrariesAreKnown(t *testing.T) {
	for kind, names := range libraries {
		for _, name := range names {
			if !slices.ContainsFunc(peers.All(), func(l peers.Library) bool { return l.Name == name && l.Store == kind }) {
				t.Errorf("peers has no %s on %s", name, kind)
			}
		}
	}
}

// client-go's crowd counts contexts that have ended, and only those.
func TestClientGo(t *testing.T) {
	c := &clientGoElections{held: []context.Context{t.Context(), t.Context()}}
	if n := c.lost(); n != 0 {
		t.Errorf("%d are lost", n)
	}
	over, end := context.WithCancel(c.held[0])
	end()
	c.held[0] = over
	if n := c.lost(); n != 1 {
		t.Errorf("%d are lost; want 1", n)
	}
}

func TestUnknownLibrary(t *testing.T) {
	if err := holder(task{Library: "nobody's"}, strings.NewReader(""), nil); err == nil {
		t.Error("no error")
	}
}

// What a process used before is taken off, and the rest shared out.
func TestUses(t *testing.T) {
	var figures []results.Figure
	uses("each", 10, usage{5, 1000, 500}, usage{25, 21000, 10500}, func(what, unit string, values ...float64) {
		figures = append(figures, results.Figure{What: what, Unit: unit, Values: values})
	})
	if len(figures) != 2 || figures[0].Values[0] != 2 || figures[1].Values[0] != 3000 || figures[1].What != "memory each" {
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
