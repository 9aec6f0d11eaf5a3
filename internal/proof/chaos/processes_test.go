package chaos

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/internal/leak"
	"github.com/elector-go/elector/internal/proof/chaos/checker"
	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/chaos/report"
	"github.com/elector-go/elector/internal/proof/child"
)

func TestMain(m *testing.M) {
	child.Prepare()
	leak.Main(m)
}

// processCases are the P cases that every place shows, with the fault that each
// needs. All of them strike the leader and last for more than the TTL.
var processCases = []struct {
	name  string
	fault Fault
	check func(t *testing.T, victim string, log *history.Log, position int)
}{
	{"mx/takeover-bound", faultNamed("kill -9"), isTold(history.Killed)},
	{"res/handover", faultNamed("SIGTERM"), isTold(history.Terminated)},
	{"pause/sigstop", faultNamed("SIGSTOP"), firstCheckFails},
	{"tok/fence", faultNamed("SIGSTOP between Check and the write"), isTold(history.Refused)},
	{"pause/in-lock", lockFault, isTold(history.Stopped)},
}

// TestProcesses runs the P cases on every place, with real processes: what else
// they show, tok/strict and tok/guard and that there is one valid lease and a
// leader in time, is for the checker to say when all is over.
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
			r, err := NewRound(t.Context(), p, Settings{Programs: slices.Repeat([]string{program}, candidates), Dir: t.TempDir(), Random: rand.New(rand.NewPCG(1, 2)), Name: "processes", Sure: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range processCases {
				if !c.fault.on(p) {
					continue // only files have a lock
				}
				t.Run(c.name, func(t *testing.T) { strikeLeader(t, r, c.fault, c.check) })
			}
			h, err := r.End(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Run("tok/strict", func(t *testing.T) {
				for _, v := range append(checker.Check(h), unprovoked(h)...) {
					t.Error(v)
				}
			})
			if Guarded(name) {
				t.Run("tok/guard", func(t *testing.T) {
					if all := report.GuardedWrites(h); len(all) != 1 || all[0].StaleTried == 0 {
						t.Errorf("no stale write was tried: %v", all)
					}
				})
			}
		})
	}
}

func faultNamed(name string) Fault {
	i := slices.IndexFunc(processFaults, func(f Fault) bool { return f.Name == name })
	return processFaults[i]
}

// strikeLeader lets a fault strike the leader, and checks what it did there.
func strikeLeader(t *testing.T, r *Round, f Fault, check func(t *testing.T, victim string, log *history.Log, position int)) {
	leader, err := r.leader()
	if err != nil {
		t.Fatal(err)
	}
	victim, position := leader.name, r.log.Position()
	if err := r.Strike(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	check(t, victim, r.log, position)
}

// isTold checks that an event of the leader that was struck was reported.
func isTold(kind history.Kind) func(*testing.T, string, *history.Log, int) {
	return func(t *testing.T, victim string, log *history.Log, position int) {
		if since, _, _ := log.From(position); !slices.ContainsFunc(since, func(e history.Event) bool { return e.Candidate == victim && e.Kind == kind }) {
			t.Errorf("the leader, %s, was not %s", victim, kind)
		}
	}
}

// firstCheckFails checks that the leader knows, as soon as it goes on, that it
// leads no more.
func firstCheckFails(t *testing.T, victim string, log *history.Log, position int) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	continued, err := log.Wait(ctx, position, victim+" to go on", func(e history.Event) bool { return e.Candidate == victim && e.Kind == history.Continued })
	if err != nil {
		t.Fatal(err)
	}
	looks := func(e history.Event) bool {
		return e.Candidate == victim && (e.Kind == history.Checked || e.Kind == history.Writing) && e.Before >= continued.Before
	}
	first, err := log.Wait(ctx, position, victim+" to look at its lease", looks)
	if err != nil {
		t.Fatal(err)
	}
	if first.Valid {
		t.Errorf("the first Check of a leader that stood still for more than the TTL succeeds: %v", first)
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
