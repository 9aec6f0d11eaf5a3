package overlap

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/stores"
)

// A scene is how the network of the leader goes dark.
type scene string

const (
	idle scene = "cut"            // at any moment
	slow scene = "slow, then cut" // after a renewal whose answer came late but not too late
)

// justInTime is how late an answer comes, as a part of the latest that the
// library accepts: the machine needs the rest.
const justInTime = 0.8

// observed is for how many TTLs after the cut both candidates are watched.
const observed = 5

// A round is one election on a store, which it shares with others.
type round struct {
	store   *stores.Store
	library peers.Library
	scene   scene
	ttl     time.Duration
	name    string        // of the election
	phase   time.Duration // how much later than the earliest moment the network goes dark
}

// A figure is what a round showed.
type figure struct {
	both    time.Duration // for how long both believed
	met     bool          // whether they did at all, an instant is enough
	atLeast bool          // the old leader still believed when the round was over
	elected time.Duration // from the cut until the successor believed
	held    time.Duration // from the cut until the old leader no longer did, or the end
}

// errDisturbed is of a round whose leader had lost its lead before the network
// was dark, or nearly so, or whose late answer came too late to count. It happens
// where other programs keep the machine or the disk for as long.
var errDisturbed = errors.New("disturbed")

// mostTries is how often a round that is disturbed is played.
const mostTries = 3

// playUndisturbed plays the round until it is not disturbed, and reports each
// time that it was.
func (r round) playUndisturbed(ctx context.Context, report func(error)) (f figure, err error) {
	name := r.name
	for try := range mostTries {
		r.name = fmt.Sprintf("%s_%d", name, try)
		if f, err = r.play(ctx); !errors.Is(err, errDisturbed) || ctx.Err() != nil {
			return f, err
		}
		report(err)
	}
	return f, err
}

// play runs the round once. It returns an error if the case did not take place:
// there was no leader, the network did not go dark for it, or no candidate took over.
func (r round) play(ctx context.Context) (f figure, err error) {
	way, err := newWay(r.store.Address)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, way.Close()) }()
	patience, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("a minute has passed"))
	defer cancel()

	a, err := r.start("a", r.store.Through(way.Address()), way.Address())
	if err != nil {
		return f, err
	}
	defer a.end()
	if err := errors.Join(a.await(patience, leads), a.await(patience, began)); err != nil {
		return f, err
	}
	b, err := r.start("b", r.store.URL, r.store.Address)
	if err != nil {
		return f, err
	}
	defer b.end()
	if err := b.await(patience, campaigns); err != nil {
		return f, err
	}
	// Long enough for the challenger to know the leader, and for the leader to
	// have renewed.
	if err := wait(ctx, r.ttl+r.phase); err != nil {
		return f, err
	}
	if !a.believes() {
		return f, fmt.Errorf("%w: the leader gave up before its network was to go dark%s", errDisturbed, a.gaveUp())
	}
	if b.believes() {
		return f, errors.New("both were elected before the cut")
	}

	dark := history.BootTime()
	if r.scene == idle {
		err = way.cut()
	} else {
		var took time.Duration
		slowest := r.library.Slowest(r.ttl)
		next, failed := way.hold(a.renewal)
		if failed != nil {
			return f, failed
		}
		took, err = way.slowThenCut(next, time.Duration(justInTime*float64(slowest)), 3*r.ttl)
		if err == nil && took > slowest {
			err = fmt.Errorf("%w: the late answer came after %v, and counts for %v", errDisturbed, took, slowest)
		}
		dark = history.BootTime() - took
	}
	if !a.believes() {
		return f, fmt.Errorf("%w: the leader gave up before its network was dark%s", errDisturbed, a.gaveUp())
	}
	if err != nil {
		return f, err
	}
	if err := r.observe(ctx, a, b, dark); err != nil {
		return f, err
	}
	if !a.alive() || !b.alive() {
		return f, fmt.Errorf("a candidate has ended by itself%s%s", a.Printed(), b.Printed())
	}
	old, open := a.end()
	successor, _ := b.end()
	if len(successor) == 0 {
		return f, fmt.Errorf("no candidate took over within %v of the cut%s", observed*r.ttl, b.Printed())
	}
	f = judge(r.library.Ours(), old, successor, open, dark)
	switch {
	case r.library.Ours() && f.met: // whatever disturbed it
		return f, nil
	case last(intervals(old, run.perhaps)) < dark: // we have heard of it only now
		return f, fmt.Errorf("%w: the leader gave up before its network was dark%s", errDisturbed, a.gaveUp())
	case successor[0].FirstAnswered < dark:
		return f, errors.New("the successor was elected before the cut")
	case way.swallowed() == 0:
		return f, fmt.Errorf("%w: the cut did not bite: the old leader sent nothing into the dark%s", errDisturbed, a.gaveUp())
	case way.leaked.Load() > 0:
		return f, errors.New("the cut did not hold: something came through")
	}
	return f, nil
}

func (r round) start(id, url, address string) (*process, error) {
	return start(r.library, peers.Config{Name: r.name, ID: id, URL: url, Address: address, TTL: r.ttl})
}

// judge turns what both believed into figures. Of a peer only that counts which
// is sure; of our own library all that may be.
func judge(ours bool, old, successor []run, open bool, dark time.Duration) (f figure) {
	of := run.surely
	if ours {
		of = run.perhaps
	}
	a, b := intervals(old, of), intervals(successor, of)
	f.both, f.met = overlap(a, b)
	f.atLeast = open
	f.elected = successor[0].FirstAnswered - dark
	f.held = max(0, last(a)-dark)
	return f
}

// observe blocks until the round is over: five TTLs after the cut, or earlier
// for a peer whose figure can no longer change, since there is a successor and
// the old leader has not believed for a TTL.
func (r round) observe(ctx context.Context, a, b *process, dark time.Duration) error {
	settled := time.Duration(0)
	for {
		now := history.BootTime()
		if now > dark+observed*r.ttl {
			return nil
		}
		switch {
		case a.believes() || !b.believes():
			settled = 0
		case settled == 0:
			settled = now
		case now > settled+r.ttl && !r.library.Ours():
			return nil
		}
		if err := wait(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// electionName is fit for all stores and libraries: some make a table of it.
func electionName(l peers.Library, s scene, run string, number int) string {
	kind := "cut"
	if s == slow {
		kind = "slow"
	}
	name := strings.NewReplacer("/", "_", "+", "_", "-", "_").Replace(l.Name)
	return fmt.Sprintf("overlap_%s_%s_%s_%d", name, kind, run, number)
}
