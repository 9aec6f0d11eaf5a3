// Package handover measures how soon there is a successor: after a leader has
// resigned, and after its process was killed.
//
// Handover is the time from the call of Resign until the successor's Campaign
// has returned, with 1, 10 and 50 waiters, in milliseconds and as a multiple of
// one round trip to the same store at the same time. All candidates are in one
// process, each with connections of its own.
//
// Takeover is the time from the kill of the leader's process until the
// successor's Campaign has returned, as a multiple of the TTL, and beside it
// the earliest and the latest that the rules of the library allow.
//
// A program that calls [Measure] calls [Main] first: the leaders that are
// killed are processes of the same program.
package handover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/bench/results"
	"github.com/elector-go/elector/internal/proof/stores"
)

// Options say what is measured.
type Options struct {
	TTL       time.Duration // of all libraries, in whole seconds
	Short     bool          // fewer rounds, and no 50 waiters
	Libraries []peers.Library
	Log       func(format string, args ...any) // gets a line for each row; may be nil

	// Written counts what all candidates have written until now; it may be nil.
	// With it a handover has a figure more: how much the waiters wrote.
	Written func() int64
}

// waiters returns the numbers of waiters.
func (o Options) waiters() []int {
	if o.Short {
		return []int{1, 10}
	}
	return []int{1, 10, 50}
}

// handovers is how many rounds there are for each number of waiters.
func (o Options) handovers(r rules) int {
	switch {
	case o.Short:
		return 3
	case r.poll > 0:
		return 5
	}
	return 20
}

// takeovers is how many leaders of a library are killed.
func (o Options) takeovers() int {
	if o.Short {
		return 1
	}
	return 5
}

func (o Options) log(format string, args ...any) {
	if o.Log != nil {
		o.Log(format, args...)
	}
}

// atOnce is how many kills a store serves at the same time. They wait most of
// the time, but a process costs something to start.
const atOnce = 3

// Measure starts the stores of the libraries, measures both subjects, and stops
// the stores. What could be measured is returned with an error too, which names
// library and store of every row that could not.
//
// Times of milliseconds are measured one row after the other, libraries in turn,
// with nothing else going on; those of polls and of TTLs side by side.
func Measure(ctx context.Context, o Options) (figures []results.Figure, err error) {
	if o.TTL < time.Second || o.TTL%time.Second != 0 {
		return nil, fmt.Errorf("a TTL of %v: it must be whole seconds, which is how some libraries count", o.TTL)
	}
	stores.AnyCredentials()
	all := map[string]*stores.Store{}
	var stops []func() error
	defer func() {
		for _, stop := range stops {
			err = errors.Join(err, stop())
		}
	}()
	for _, l := range o.Libraries {
		if all[l.Store] != nil {
			continue
		}
		s, stop, err := peers.Start(ctx, l.Store)
		if err != nil {
			return nil, err
		}
		all[l.Store], stops = s, append(stops, stop)
		if err := peers.AdmitMany(ctx, s); err != nil {
			return nil, err
		}
	}
	rows, err := o.rows(all)
	if err != nil {
		return nil, err
	}
	run := func(r *row) {
		if ctx.Err() != nil {
			return
		}
		if r.figures, r.err = r.measure(ctx); r.err != nil {
			r.err = &peers.Failure{Library: r.library.Name, Store: r.library.Store, Err: fmt.Errorf("%s: %w", r.name, r.err)}
			o.log("%v", r.err)
			return
		}
		for _, f := range r.figures {
			o.log("%s: %s", r.name, line(f))
		}
	}
	for _, lane := range lanes(rows) {
		var wait sync.WaitGroup
		for _, rows := range lane {
			wait.Go(func() {
				for _, r := range rows {
					run(r)
				}
			})
		}
		wait.Wait()
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, r := range rows {
		figures, err = append(figures, r.figures...), errors.Join(err, r.err)
	}
	return figures, err
}

// Releases measures the handovers of one library on a store that runs, with
// nothing else going on.
func (o Options) Releases(ctx context.Context, l peers.Library, s *stores.Store) (figures []results.Figure, err error) {
	r, err := rulesOf(l, o.TTL)
	if err != nil {
		return nil, err
	}
	if err := peers.AdmitMany(ctx, s); err != nil {
		return nil, err
	}
	run := strconv.FormatInt(time.Now().Unix(), 36)
	for _, n := range o.waiters() {
		some, err := o.handover(ctx, l, r, s, run, n)
		if err != nil {
			return nil, err
		}
		figures = append(figures, some...)
	}
	return figures, nil
}

// A row is a measurement of one library.
type row struct {
	name    string // for people
	library peers.Library
	when    phase
	waiters int
	measure func(ctx context.Context) ([]results.Figure, error)

	figures []results.Figure
	err     error
}

// A phase is when a row is measured.
type phase int

const (
	alone     phase = iota // one row after the other, libraries in turn
	withPolls              // side by side with other libraries
	withKills              // side by side with all others
)

// lanes orders the rows for measurement: what comes one after the other, and in
// each of these what goes on side by side, and in each of these again what
// comes one after the other.
func lanes(rows []*row) [][][]*row {
	var first []*row
	var polls, kills [][]*row
	for _, r := range rows {
		switch r.when {
		case alone:
			first = append(first, r)
		case withPolls:
			same := func(p []*row) bool {
				return p[0].library.Name == r.library.Name && p[0].library.Store == r.library.Store
			}
			if i := slices.IndexFunc(polls, same); i >= 0 {
				polls[i] = append(polls[i], r)
			} else {
				polls = append(polls, []*row{r})
			}
		case withKills:
			kills = append(kills, []*row{r})
		}
	}
	// With the same number of waiters, so that figures which are compared were
	// measured at nearly the same time.
	slices.SortStableFunc(first, func(a, b *row) int { return cmp.Compare(a.waiters, b.waiters) })
	return [][][]*row{{first}, polls, kills}
}

// rows returns what is to be measured, in the order of the figures.
func (o Options) rows(all map[string]*stores.Store) (rows []*row, err error) {
	run := strconv.FormatInt(time.Now().Unix(), 36)
	for _, l := range o.Libraries {
		r, err := rulesOf(l, o.TTL)
		if err != nil {
			return nil, err
		}
		when := alone
		if r.poll > 0 && !r.told {
			when = withPolls
		}
		for _, n := range o.waiters() {
			rows = append(rows, &row{
				name:    fmt.Sprintf("handover of %s on %s", l.Name, l.Store),
				library: l,
				when:    when,
				waiters: n,
				measure: func(ctx context.Context) ([]results.Figure, error) {
					return o.handover(ctx, l, r, all[l.Store], run, n)
				},
			})
		}
	}
	free := map[string]chan struct{}{}
	for kind := range all {
		free[kind] = make(chan struct{}, atOnce)
	}
	for _, l := range o.Libraries {
		r, err := rulesOf(l, o.TTL)
		if err != nil {
			return nil, err
		}
		rows = append(rows, &row{
			name:    fmt.Sprintf("takeover of %s on %s", l.Name, l.Store),
			library: l,
			when:    withKills,
			waiters: 1,
			measure: func(ctx context.Context) ([]results.Figure, error) {
				return o.takeover(ctx, l, r, all[l.Store], run, free[l.Store])
			},
		})
	}
	return rows, nil
}

// electionName is fit for all stores and libraries: some make a table of it.
func electionName(subject string, l peers.Library, run string, number int) string {
	name := strings.NewReplacer("/", "_", "+", "_", "-", "_").Replace(l.Name)
	return fmt.Sprintf("%s_%s_%s_%d", subject, name, run, number)
}

// line is a figure in a line.
func line(f results.Figure) string {
	what := f.What
	if f.Count > 0 {
		what = fmt.Sprintf("%s, waiters: %d", what, f.Count)
	}
	if len(f.Values) == 0 {
		return what + ": not measured: " + f.Note
	}
	return fmt.Sprintf("%s: least %.2f, median %.2f, most %.2f %s (%d)", what, f.Least(), f.Median(), f.Most(), f.Unit, len(f.Values))
}
