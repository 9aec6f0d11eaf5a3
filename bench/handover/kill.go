package handover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/bench/results"
	"github.com/elector-go/elector/internal/proof/stores"
)

// What the figures of a takeover are called.
const (
	afterKill = "takeover after kill -9"
	allowed   = "takeover after kill -9, what its rules allow"
)

// mostTries is how often a round that was disturbed is tried: on a machine that
// stands still for a TTL, leaders lose office before they are killed.
const mostTries = 3

// takeover measures a library's row: so many leaders are killed, each in an
// election of its own with one who waits. free has room for those that a store
// serves at a time.
func (o Options) takeover(ctx context.Context, l peers.Library, r rules, s *stores.Store, run string, free chan struct{}) ([]results.Figure, error) {
	rounds := o.takeovers()
	times, errs, disturbed := make([]time.Duration, rounds), make([]error, rounds), make([][]error, rounds)
	var playing sync.WaitGroup
	for i := range rounds {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			errs[i] = context.Cause(ctx)
			continue
		}
		k := kill{
			library: l,
			config:  peers.Config{URL: s.URL, Address: s.Address, TTL: o.TTL},
			settle:  max(o.TTL, r.poll),
			renew:   r.renew,
			// In the middle of the i-th part of a renewal interval.
			phase:   spread(r.renew, i, rounds, 0.5),
			longest: r.latest + 3*o.TTL,
		}
		playing.Go(func() {
			defer func() { <-free }()
			for try := range mostTries {
				k.config.Name = electionName("takeover", l, run, 10*i+try)
				if times[i], errs[i] = k.play(ctx); errs[i] == nil || ctx.Err() != nil {
					return
				}
				disturbed[i] = append(disturbed[i], errs[i])
			}
			errs[i] = errors.Join(disturbed[i]...)
		})
	}
	playing.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	measured := results.Figure{Subject: results.Takeover, Store: l.Store, Library: l.Name, What: afterKill, Count: 1, Unit: "TTL"}
	theory := measured
	theory.What, theory.Note = allowed, r.why
	for _, t := range times {
		measured.Values = append(measured.Values, float64(t)/float64(o.TTL))
	}
	measured.Note = fmt.Sprintf("%d rounds, the kills spread over a renewal interval of %v", rounds, r.renew) + again(slices.Concat(disturbed...))
	theory.Values = []float64{float64(r.earliest) / float64(o.TTL), float64(r.latest) / float64(o.TTL)}
	return []results.Figure{measured, theory}, nil
}

// A kill is a round: the leader is a process of its own, and the successor
// campaigns in this one, so that one clock measures.
type kill struct {
	library peers.Library
	config  peers.Config // all but the ID
	settle  time.Duration
	renew   time.Duration
	phase   time.Duration
	longest time.Duration // that the successor may take
}

// play returns how long after the kill there was a successor.
func (k kill) play(ctx context.Context) (time.Duration, error) {
	config := k.config
	config.ID = "first"
	first, err := start(task{k.library.Name, k.library.Store, config})
	if err != nil {
		return 0, err
	}
	defer first.Kill()
	opening, opened := context.WithTimeoutCause(ctx, time.Minute, errors.New("a minute has passed"))
	defer opened()
	if err := first.elected(opening); err != nil {
		return 0, err
	}
	led := time.Now()
	config.ID = "second"
	second, err := k.library.Open(opening, config)
	if err != nil {
		return 0, fmt.Errorf("opening the successor: %w", err)
	}
	defer second.Close()

	campaigning, cancel := context.WithCancel(ctx)
	var elected time.Time
	var lost error
	decided := make(chan struct{})
	go func() {
		defer close(decided)
		lost = second.Campaign(campaigning)
		elected = time.Now()
	}()
	defer func() { cancel(); <-decided }()
	outcome := func() error {
		if lost != nil {
			return fmt.Errorf("the successor campaigns: %w", lost)
		}
		return nil
	}

	// Long enough for the successor to know the leader; where it polls, it has
	// then read the store at least once.
	at := led.Add(instant(time.Since(led)+k.settle, k.renew, k.phase))
	select {
	case <-time.After(time.Until(at)):
	case <-first.Ended():
		return 0, first.gone()
	case <-decided:
		if err := outcome(); err != nil {
			return 0, err
		}
		return 0, fmt.Errorf("the successor was elected before the leader was killed%s", first.Printed())
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	killed := time.Now()
	if err := first.Kill(); err != nil {
		return 0, fmt.Errorf("killing the leader: %w", err)
	}
	select {
	case <-decided:
		if err := outcome(); err != nil {
			return 0, err
		}
		return elected.Sub(killed), nil
	case <-time.After(k.longest):
		return 0, fmt.Errorf("no candidate took over within %v of the kill", k.longest)
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// instant returns the first time, not before the earliest, that is at the phase
// in an interval; intervals begin at 0 and follow one another.
func instant(earliest, interval, phase time.Duration) time.Duration {
	if earliest <= phase {
		return phase
	}
	n := (earliest - phase + interval - 1) / interval
	return n*interval + phase
}
