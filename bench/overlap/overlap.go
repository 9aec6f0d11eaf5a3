// Package overlap measures for how long two processes believe that they lead when
// the network of the leader goes dark: with this repository's library and with
// others, on the same real stores, with the same TTL, in one run.
//
// A program that calls [Measure] calls [Main] first: the candidates are processes
// of the same program.
package overlap

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/bench/results"
	"github.com/elector-go/elector/internal/proof/stores"
)

// atOnce is how many rounds a store serves at the same time. They wait most of
// the time.
const atOnce = 3

// Measure prints what goes on, and a table at the end. It returns an error if two
// processes led at once with this repository's library, or if a case did not take
// place: a [peers.Failure] if only cases of other libraries did not. What was
// measured comes with it.
func Measure(ctx context.Context, libraries []peers.Library, ttl time.Duration, rounds int) ([]results.Figure, error) {
	if ttl < time.Second || ttl%time.Second != 0 || rounds < 1 {
		return nil, fmt.Errorf("a TTL of %v, %d rounds: the TTL must be whole seconds, which is how some libraries count, and there must be a round", ttl, rounds)
	}
	stores.AnyCredentials()
	fmt.Printf("%d rounds of each case at a TTL of %v; each round watches both processes for up to %v after the cut\n", rounds, ttl, observed*ttl)
	var all []*row
	var wait sync.WaitGroup
	for _, kind := range peers.Stores(libraries) {
		var rows []*row
		for _, l := range libraries {
			switch {
			case l.Store != kind:
			case l.Remote:
				fmt.Printf("%s on %s is left out: it asks the store whether it leads, and no answer comes through the dark\n", l.Name, kind)
			default:
				rows = append(rows, &row{library: l, scene: idle}, &row{library: l, scene: slow})
			}
		}
		all = append(all, rows...)
		wait.Go(func() { onStore(ctx, kind, rows, ttl, rounds) })
	}
	wait.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	fmt.Println()
	return figuresOf(all), report(os.Stdout, all, ttl)
}

// onStore fills in the rows of one store.
func onStore(ctx context.Context, kind string, rows []*row, ttl time.Duration, rounds int) {
	fail := func(err error) {
		for _, r := range rows {
			r.errs = append(r.errs, err)
		}
	}
	s, stop, err := peers.Start(ctx, kind)
	if err != nil {
		fail(err)
		return
	}
	defer func() {
		if err := stop(); err != nil {
			fail(err)
		}
	}()
	how, _, _ := strings.Cut(s.How, "; ") // there may follow why not otherwise
	fmt.Printf("%s: %s\n", kind, how)
	run := strconv.FormatInt(time.Now().Unix(), 36)
	var mutex sync.Mutex
	var playing sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for i := range rounds {
		for _, row := range rows {
			select {
			case free <- struct{}{}:
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				break
			}
			// Spread over a renewal interval of most libraries.
			phase := ttl / 3 * time.Duration(i) / time.Duration(rounds)
			r := round{s, row.library, row.scene, ttl, electionName(row.library, row.scene, run, i), phase}
			playing.Go(func() {
				defer func() { <-free }()
				f, err := r.playUndisturbed(ctx, func(err error) {
					fmt.Printf("%-10s %-26s %-15s round %d: %v\n", kind, r.library.Name, r.scene, i+1, err)
				})
				mutex.Lock()
				defer mutex.Unlock()
				if ctx.Err() != nil {
					return
				}
				fmt.Printf("%-10s %-26s %-15s round %d: %s\n", kind, r.library.Name, r.scene, i+1, outcome(f, err))
				if err != nil {
					row.errs = append(row.errs, fmt.Errorf("round %d: %w", i+1, err))
					return
				}
				row.figures = append(row.figures, f)
			})
		}
	}
	playing.Wait()
}

func find(name, store string) (peers.Library, bool) {
	for _, l := range peers.All() {
		if l.Name == name && l.Store == store {
			return l, true
		}
	}
	return peers.Library{}, false
}
