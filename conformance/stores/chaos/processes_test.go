package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/conformance/stores"
	"github.com/elector-go/elector/conformance/stores/chaos/checker"
	"github.com/elector-go/elector/conformance/stores/chaos/history"
	"github.com/elector-go/elector/internal/leak"
)

func TestMain(m *testing.M) {
	// The first child starts a goroutine that lives as long as we do: it is
	// part of what is there before the tests.
	first := exec.Command("true")
	if err := errors.Join(stores.StartProcess(first), first.Wait()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	leak.Main(m)
}

// TestProcesses runs the P cases on every place, with real processes.
func TestProcesses(t *testing.T) {
	program, err := Build(t.Context(), t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		if strings.HasSuffix(name, Nodes) {
			continue // what processes suffer is the same there
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := open(t, name)
			r, err := NewRound(t.Context(), p, Settings{Program: program, Dir: t.TempDir(), Random: rand.New(rand.NewPCG(1, 2)), Name: "processes"})
			if err != nil {
				t.Fatal(err)
			}
			strike(t, r, processFaults)
			if name == File {
				strike(t, r, []Fault{lockFault})
			}
			h, err := r.End(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range checker.Check(h) {
				t.Error(v)
			}
			expect(t, h, history.Killed, "mx/takeover-bound: no leader was killed")
			expect(t, h, history.Terminated, "res/order: nobody was told to end")
			expect(t, h, history.Stopped, "pause/sigstop: nobody was stopped")
			expect(t, h, history.Refused, "tok/fence: no write of a stopped leader came to be refused")
		})
	}
}

// open opens a place for the test.
func open(t *testing.T, name string) *Place {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, err := Open(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Logf("%s: %s", p.Name, p.How)
	return p
}

// strike lets faults happen one after the other.
func strike(t *testing.T, r *Round, faults []Fault) {
	t.Helper()
	for _, f := range faults {
		if err := r.Strike(t.Context(), f); err != nil {
			if path := os.Getenv("ELECTOR_HISTORY"); path != "" {
				r.History().Save(path)
			}
			t.Fatal(err, r.kill())
		}
	}
}

func expect(t *testing.T, h *history.History, kind history.Kind, otherwise string) {
	t.Helper()
	if !slices.ContainsFunc(h.Events, func(e history.Event) bool { return e.Kind == kind }) {
		t.Error(otherwise)
	}
}
