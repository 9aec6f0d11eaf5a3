// Package asking measures what it costs to ask a library whether one still
// leads, as is done before each side effect: while the store answers, and while
// it hangs with a renewal under way.
package asking

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/bench/results"
	"github.com/elector-go/elector/internal/proof/chaos/network"
	"github.com/elector-go/elector/internal/proof/stores"
)

// Options say what is measured.
type Options struct {
	TTL       time.Duration   // of all libraries, in whole seconds
	Short     bool            // fewer rounds, the same rows
	Libraries []peers.Library // on whatever stores
	Log       func(format string, args ...any)
}

// What is measured, as it stands in the figures.
const (
	Call             = "one call"
	CallInNows       = "one call, as a multiple of time.Now"
	CallInOurs       = "one call, as a multiple of elector's in the same round"
	Allocations      = "allocations of one call"
	HungCall         = "the store hangs: one call, timed by itself"
	HungAllocations  = "the store hangs: allocations of one call"
	HungLongest      = "the store hangs: longest call"
	isLeaderSuffix   = " (IsLeader)"
	opening, closing = time.Minute, 10 * time.Second
)

// Measure starts the stores that the libraries run on, one after another, since
// nanoseconds are measured. It takes about half a minute for each.
func Measure(ctx context.Context, o Options) (all []results.Figure, failed error) {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	stores.AnyCredentials()
	for _, kind := range peers.Stores(o.Libraries) {
		o.Log("asking: %s", kind)
		s, stop, err := peers.Start(ctx, kind)
		if err != nil {
			return all, errors.Join(failed, err)
		}
		figures, err := onStore(ctx, s, o)
		all = append(all, figures...)
		failed = errors.Join(failed, err, stop())
		if ctx.Err() != nil {
			break
		}
	}
	return all, failed
}

// A subject is a library's question, asked of a candidate that leads.
type subject struct {
	library string
	ours    bool
	ask     func() bool
	way     *network.Proxy // of the candidate
}

// onStore measures the libraries of one store. All of their candidates lead at
// the same time, each in an election of its own.
func onStore(ctx context.Context, s *stores.Store, o Options) (figures []results.Figure, err error) {
	var subjects []subject
	var failed []error
	var ends []func()
	defer func() {
		for _, end := range ends {
			end()
		}
	}()
	run := strconv.FormatInt(time.Now().Unix(), 36)
	for _, l := range o.Libraries {
		if l.Store != s.Kind {
			continue
		}
		if same := asksAs(l.Name); same != "" && slices.ContainsFunc(o.Libraries, func(l peers.Library) bool { return l.Name == same }) {
			continue
		}
		way, c, err := lead(ctx, s, l, o.TTL, run)
		if err != nil {
			failed = append(failed, &peers.Failure{Library: l.Name, Store: s.Kind, Err: err})
			continue
		}
		ends = append(ends, func() {
			if err := errors.Join(way.Heal(), within(closing, c.Close), way.Close()); err != nil {
				o.Log("asking: closing %s on %s: %v", l.Name, s.Kind, err)
			}
		})
		subjects = append(subjects, subject{l.Name, l.Ours(), c.Leads, way})
		if c, ok := c.(interface{ IsLeader() bool }); ok {
			subjects = append(subjects, subject{l.Name + isLeaderSuffix, false, c.IsLeader, way})
		}
	}
	figures, empty := whileItAnswers(subjects, s.Kind, o)
	subjects = slices.DeleteFunc(subjects, func(q subject) bool {
		if q.ask() {
			return false
		}
		failed = append(failed, &peers.Failure{Library: q.library, Store: s.Kind, Err: errors.New("it lost its lead while its store answered")})
		return true
	})
	var ways []*network.Proxy // two subjects may share one
	for _, s := range subjects {
		if !slices.Contains(ways, s.way) {
			ways = append(ways, s.way)
		}
	}
	for _, way := range ways {
		if err := way.Break(network.Cut); err != nil {
			return figures, err
		}
	}
	hung, err := whileItHangs(ctx, subjects, s.Kind, o, empty)
	return append(figures, hung...), errors.Join(append(failed, err)...)
}

// asksAs names the library that asks in the very same way, if there is one:
// what is told to the store on the way out changes nothing here.
func asksAs(name string) string {
	switch name {
	case "client-go/release":
		return "client-go"
	case "client-go/timeout+release":
		return "client-go/timeout"
	}
	return ""
}

// lead returns a candidate that leads, through a proxy of its own.
func lead(ctx context.Context, s *stores.Store, l peers.Library, ttl time.Duration, run string) (_ *network.Proxy, _ peers.Candidate, err error) {
	way, err := network.New(s.Address)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			way.Close()
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, opening, errors.New("it took a minute to lead"))
	defer cancel()
	c, err := l.Open(ctx, peers.Config{
		Name: "asking_" + strings.NewReplacer("/", "_", "+", "_", "-", "_").Replace(l.Name) + "_" + run,
		ID:   "a", URL: s.Through(way.Address()), Address: way.Address(), TTL: ttl,
	})
	if err != nil {
		return nil, nil, err
	}
	if err := c.Campaign(ctx); err != nil {
		return nil, nil, errors.Join(err, within(closing, c.Close))
	}
	if !c.Leads() {
		return nil, nil, errors.Join(errors.New("it reports that it does not lead after it was elected"), within(closing, c.Close))
	}
	return way, c, nil
}

// within calls f and waits for it as long as d.
func within(d time.Duration, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(d):
		return fmt.Errorf("not done within %v", d)
	}
}
