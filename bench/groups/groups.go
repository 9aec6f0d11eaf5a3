// Package groups measures what happens to the partitions of a group when members come,
// leave, crash, are stopped and continued, and lose the network: for how long two members
// work on one partition, for how long none does, and how many partitions move. It does so
// with package partition, with a group made of ordinary elections, and with consumer groups
// of other libraries, with the same TTL.
//
// A program that calls [Measure] calls [Main] first: the members are processes of the same
// program.
package groups

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/bench/report"
	"github.com/elector-go/elector/bench/results"
	"github.com/elector-go/elector/internal/proof/stores"

	_ "github.com/elector-go/elector/backends/etcd"
	_ "github.com/elector-go/elector/backends/postgres"
)

// partitions is how many a group shares.
const partitions = 16

// A subject is a way to share partitions, on a kind of store.
type subject struct {
	name     string // of its column
	module   string
	store    string
	views    []view
	settings string
	join     func(context.Context, task, *journal) error // blocks until ctx ends and the member has left
}

const (
	ourModule = "github.com/elector-go/elector"
	kfakes    = "kfake"
)

var subjects = []subject{
	{"partition, etcd", ourModule, stores.Etcd, []view{units}, "package `partition`; `lease.Check()` before each unit; defaults", joinPartitions},
	{"partition, PostgreSQL", ourModule, stores.Postgres, []view{units}, "the same on PostgreSQL", joinPartitions},
	{"elections, etcd", ourModule, stores.Etcd, []view{units}, "an election for each partition and each possible member; rendezvous hashing on the members that lead theirs; all observe all of them, so that a crash costs C once; `lease.Check()` before each unit", joinElections},
	{"franz-go", "github.com/twmb/franz-go", kfakes, []view{units, holds}, "consumer group, cooperative-sticky, a heartbeat each third of the session timeout; a goroutine for each partition, which OnPartitionsRevoked and OnPartitionsLost end and wait for", joinFranz},
	{"sarama", "github.com/IBM/sarama", kfakes, []view{units, holds}, "consumer group, sticky (it has no cooperative strategy), a heartbeat each third of the session timeout; ConsumeClaim ends with the session", joinSarama},
}

func find(name string) (subject, bool) {
	for _, s := range subjects {
		if s.name == name {
			return s, true
		}
	}
	return subject{}, false
}

func (s subject) ours() bool { return s.module == ourModule }

// versionOf is the version of a module that this program was built with.
func versionOf(module string) string { return peers.Library{Module: module}.Version() }

// column is the heading of what a view shows.
func (s subject) column(v view) string {
	if v == holds {
		return s.name + ", callbacks"
	}
	return s.name
}

// A place is what the members of a group are connected to.
type place struct {
	address string // host and port
	url     func(address string) string
	system  string                                         // what it is, for people
	feed    func(ctx context.Context, group string) func() // makes work for a group until the returned function is called
	close   func() error
}

func open(ctx context.Context, s subject, names []string) (*place, error) {
	if s.store == kfakes {
		b, err := startBroker(partitions, names)
		if err != nil {
			return nil, err
		}
		return &place{
			address: b.address(),
			url:     func(address string) string { return address },
			system:  "kfake " + versionOf("github.com/twmb/franz-go/pkg/kfake"),
			feed:    func(ctx context.Context, group string) func() { return b.produce(ctx, group, partitions) },
			close:   func() error { b.close(); return nil },
		}, nil
	}
	started, err := stores.StartDurable(ctx, s.store)
	if err != nil {
		return nil, err
	}
	how, _, _ := strings.Cut(started.How, " (")
	return &place{
		address: started.Address,
		url:     started.Through,
		system:  strings.TrimPrefix(how, "local process "),
		feed:    func(context.Context, string) func() { return func() {} },
		close:   started.Stop,
	}, nil
}

// Options are what to measure.
type Options struct {
	TTL    time.Duration
	Rounds int
	Short  bool     // only the join, the leave and the crash
	Names  []string // of the subjects; all if empty
	Log    func(format string, args ...any)
}

// Names are those of all subjects.
func Names() (all []string) {
	for _, s := range subjects {
		all = append(all, s.name)
	}
	return all
}

// Measure measures all subjects at the same time, in rounds. It returns an error if two
// members worked on one partition with this repository's library, other than one that was
// stopped in a unit of work, or if a scene did not take place. What was measured comes
// with it.
func Measure(ctx context.Context, o Options) (*report.Groups, error) {
	chosen, err := choose(o.Names)
	if err != nil {
		return nil, err
	}
	played := scenes
	if o.Short {
		played = []scene{join, leave, crash}
	}
	stores.AnyCredentials()
	all := make([]*measured, len(chosen))
	errs := make([]error, len(chosen))
	var measuring sync.WaitGroup
	for i, s := range chosen {
		all[i] = &measured{subject: s, shown: map[scene]map[view][]outcome{}}
		measuring.Go(func() {
			if err := all[i].measure(ctx, o, played); err != nil {
				errs[i] = fmt.Errorf("%s: %w", s.name, err)
			}
		})
	}
	measuring.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return table(all, played, o), errors.Join(errs...)
}

func choose(names []string) (chosen []subject, err error) {
	for _, n := range names {
		s, ok := find(n)
		if !ok {
			return nil, fmt.Errorf("there is no subject %q; known are %q", n, Names())
		}
		chosen = append(chosen, s)
	}
	if len(names) == 0 {
		return subjects, nil
	}
	return chosen, nil
}

// measured is what the rounds of a subject have shown.
type measured struct {
	subject subject
	system  string
	shown   map[scene]map[view][]outcome
}

func (m *measured) measure(ctx context.Context, o Options, played []scene) (err error) {
	run := strconv.FormatInt(time.Now().Unix(), 36)
	var names []string
	for i := range o.Rounds {
		names = append(names, fmt.Sprintf("group-%s-%d", run, i+1))
	}
	p, err := open(ctx, m.subject, names)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	m.system = p.system
	for i, name := range names {
		if ctx.Err() != nil {
			return nil
		}
		g := &game{subject: m.subject, place: p, group: name, ttl: o.TTL, scenes: played, log: func(format string, args ...any) {
			o.Log("%s: %s", m.subject.name, fmt.Sprintf(format, args...))
		}}
		shown, failed := g.play(ctx)
		for s, views := range shown {
			if m.shown[s] == nil {
				m.shown[s] = map[view][]outcome{}
			}
			for v, outcome := range views {
				m.shown[s][v] = append(m.shown[s][v], outcome)
				if m.subject.ours() && outcome.sum > 0 && s != stop {
					failed = errors.Join(failed, fmt.Errorf("%s: two members worked on one partition for %v", s, outcome.longest))
				}
			}
		}
		if failed != nil {
			o.Log("%s: round %d: %v", m.subject.name, i+1, failed)
			err = errors.Join(err, fmt.Errorf("round %d: %w", i+1, failed))
		}
	}
	return err
}

// table returns the figures, for the page.
func table(all []*measured, played []scene, o Options) *report.Groups {
	g := &report.Groups{Date: time.Now(), TTL: o.TTL, Members: len(ids), Partitions: partitions, Unit: unit, RecordEvery: recordEvery, Stopped: stopped, Dark: dark, Rounds: o.Rounds}
	for _, m := range all {
		g.Libraries = append(g.Libraries, report.Library{Name: m.subject.name, Module: m.subject.module, Version: versionOf(m.subject.module), Belief: m.system, Settings: m.subject.settings})
	}
	for _, s := range played {
		for _, m := range all {
			for _, v := range m.subject.views {
				outcomes := m.shown[s][v]
				add := func(what, unit string, of func(outcome) float64) {
					f := results.Figure{Store: m.subject.store, Library: m.subject.column(v), What: string(s) + ": " + what, Unit: unit}
					for _, o := range outcomes {
						f.Values = append(f.Values, of(o))
						if o.open && strings.HasPrefix(what, "none") {
							f.Note = "at least: no process worked on a partition when the scene was over"
						}
					}
					g.Figures = append(g.Figures, f)
				}
				add("moves, least possible "+least(s), "moves", func(o outcome) float64 { return float64(o.moves) })
				add("two at work on a partition, longest", "s", func(o outcome) float64 { return o.longest.Seconds() })
				add("two at work, sum of all partitions", "s", func(o outcome) float64 { return o.sum.Seconds() })
				add("none at work on a partition that moves, median", "s", func(o outcome) float64 { return median(o.idle).Seconds() })
				add("none at work on a partition, longest", "s", func(o outcome) float64 { return o.most().Seconds() })
				add("others that stand still", "partitions", func(o outcome) float64 { return float64(len(o.still)) })
			}
		}
	}
	return g
}

// least returns the fewest moves that a scene can take with even shares: which of the
// members has one more than the others is up to the library.
func least(s scene) string {
	few, early := partitions/len(ids), len(ids)-1
	some, more := partitions/early, (partitions-1)/early+1
	switch s {
	case join, leave:
		return strconv.Itoa(few)
	case crash:
		return fmt.Sprintf("%d or %d", some, more)
	default: // there and back
		return fmt.Sprintf("%d to %d", 2*some, 2*more)
	}
}
