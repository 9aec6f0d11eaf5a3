// Package cost counts what an election costs a store: the requests and the
// bytes of one library's candidates, on the wire, by [wire.Proxy]. Nothing is
// estimated. Bytes are those of both directions together.
//
// Every candidate has connections of its own, because in production each is a
// process. What a library needs in the store, a table say, is there before
// anything is counted.
//
// Counted are:
//
//   - [FirstAcquire]: from opening a candidate until it leads an election in
//     which no candidate ever led.
//   - [Opening], and then [Acquire]: a fresh candidate in an election whose
//     leader has resigned and gone; from calling Campaign until it returns.
//     What a library does by itself after opening is counted with opening.
//   - [Holding], [Waiting], [Observing]: windows of one TTL by the clock, of
//     one leader, of all waiters together, of one observer. Two TTLs have passed
//     before the first, so that everybody has found its rhythm. A library whose
//     rhythm does not divide the TTL has unequal windows.
//   - [Resign]: from calling Resign until it returns; and [Closing], the same.
//   - [Handover]: what the leader that resigns and all waiters send, from
//     calling Resign until it has returned and one of the waiters leads.
//     [HandoverAndTTL] goes on for one TTL, for what waiters and successor send
//     afterwards because of it, and their usual traffic of one TTL with it.
//
// Variants of a library that send the same are not measured apart: those that
// only believe differently, or give requests other timeouts. See [LeftOut].
package cost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/bench/results"
	"github.com/elector-go/elector/internal/proof/stores"
)

// Options says what to measure.
type Options struct {
	TTL       time.Duration // of all libraries; whole seconds, which is how some count
	Short     bool          // one round, one window, 1 and 10 waiters; otherwise 5, 4, and 50 waiters too
	Libraries []peers.Library
	Log       func(format string, args ...any) // what goes on, a line each; nil for nothing
}

// What was counted, as results.Figure has it. Holding, Waiting and Observing
// have figures in connections too.
const (
	FirstAcquire   = "opening and first acquire"
	Opening        = "opening"
	Acquire        = "uncontended acquire"
	Holding        = "holding for one TTL"
	Waiting        = "waiting for one TTL"
	Observing      = "observing for one TTL"
	Resign         = "resign"
	Closing        = "closing after a resign"
	Handover       = "handover"
	HandoverAndTTL = "handover and one TTL after it"
)

// leftOut are the variants that send what another one sends.
var leftOut = map[string]string{
	"zk-lock/careful":           "zk-lock",
	"client-go/timeout":         "client-go",
	"client-go/timeout+release": "client-go/release",
}

// LeftOut returns the name of the library that is measured in place of this
// one, or nothing if this one is measured itself.
func LeftOut(l peers.Library) string { return leftOut[l.Name] }

// Measure counts for each library, one after the other on the same store. It
// starts the stores and stops them; those of different kinds are measured side
// by side. What fails is tried again, twice at most, which the log tells. With an
// error come the figures of what did not fail.
//
// A DynamoDB that it starts gets credentials through the environment, since clients
// want some.
func Measure(ctx context.Context, o Options) ([]results.Figure, error) {
	if o.TTL < time.Second || o.TTL%time.Second != 0 {
		return nil, fmt.Errorf("cost: a TTL of %v: it must be whole seconds, which is how some libraries count", o.TTL)
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	stores.AnyCredentials()
	var kinds []string
	libraries := make(map[string][]peers.Library)
	for _, l := range o.Libraries {
		if instead := LeftOut(l); instead != "" {
			o.Log("cost: %s is left out, it sends what %s sends", l.Name, instead)
			continue
		}
		if !slices.Contains(kinds, l.Store) {
			kinds = append(kinds, l.Store)
		}
		libraries[l.Store] = append(libraries[l.Store], l)
	}
	figures := make([][]results.Figure, len(kinds))
	errs := make([]error, len(kinds))
	var measuring sync.WaitGroup
	for i, kind := range kinds {
		measuring.Go(func() { figures[i], errs[i] = onStore(ctx, kind, libraries[kind], o) })
	}
	measuring.Wait()
	return slices.Concat(figures...), errors.Join(errs...)
}

func onStore(ctx context.Context, kind string, libraries []peers.Library, o Options) (figures []results.Figure, err error) {
	s, stop, err := peers.Start(ctx, kind)
	if err != nil {
		return nil, fmt.Errorf("cost: %w", err)
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := peers.AdmitMany(ctx, s); err != nil {
		return nil, fmt.Errorf("cost: %w", err)
	}
	run := strconv.FormatInt(time.Now().UnixMilli(), 36)
	var errs []error
	for i, l := range libraries {
		started := time.Now()
		u := &subject{store: s, library: l, o: o, prefix: fmt.Sprintf("cost_%s_%d", run, i)}
		these, err := u.measure(ctx)
		if err != nil {
			errs = append(errs, &peers.Failure{Library: l.Name, Store: kind, Err: err})
		}
		figures = append(figures, these...)
		o.Log("cost: %s on %s took %v", l.Name, kind, time.Since(started).Round(time.Second))
		if ctx.Err() != nil {
			break
		}
	}
	return figures, errors.Join(errs...)
}
