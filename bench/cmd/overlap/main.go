// Command overlap shows for how long two processes believe that they lead when
// the network of the leader goes dark: with this repository's library and with
// others, on the same real stores, with the same TTL, in one run.
//
// It prints a table, and exits 1 if two processes led at once with this
// repository's library, or if a case of it did not take place; 3 if only cases of
// other libraries did not.
//
// Usage: go run ./cmd/overlap [-ttl 3s] [-rounds 3] [-json file] [library ...]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/bench/results"
	"github.com/elector-go/elector/internal/proof/stores"
)

// atOnce is how many rounds a store serves at the same time. They wait most of
// the time.
const atOnce = 3

// exitPeers is how the command ends if only cases of other libraries did not take
// place.
const exitPeers = 3

func main() {
	if candidateMain() {
		return
	}
	ttl := flag.Duration("ttl", 3*time.Second, "of all libraries; whole seconds")
	rounds := flag.Int("rounds", 3, "of each case")
	file := flag.String("json", "", "also write the figures to this file, as bench/results keeps them")
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "Usage: overlap [-ttl 3s] [-rounds 3] [-json file] [library ...]\nLibraries: %s\n", strings.Join(peers.Names(), ", "))
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := compare(ctx, flag.Args(), *ttl, *rounds, *file); err != nil {
		fmt.Fprintln(os.Stderr, "overlap:", err)
		if errors.Is(err, errPeers) {
			os.Exit(exitPeers)
		}
		os.Exit(1)
	}
}

func compare(ctx context.Context, wanted []string, ttl time.Duration, rounds int, file string) error {
	if ttl < time.Second || ttl%time.Second != 0 || rounds < 1 {
		return fmt.Errorf("a TTL of %v, %d rounds: the TTL must be whole seconds, which is how some libraries count, and there must be a round", ttl, rounds)
	}
	libraries, err := peers.Choose(wanted)
	if err != nil {
		return err
	}
	stores.AnyCredentials()
	fmt.Printf("%d rounds of each case at a TTL of %v; each round watches both processes for up to %v after the cut\n", rounds, ttl, observed*ttl)
	var all []*row
	var wait sync.WaitGroup
	for _, kind := range peers.Stores(libraries) {
		var rows []*row
		for _, l := range libraries {
			if l.Store == kind {
				rows = append(rows, &row{library: l, scene: idle}, &row{library: l, scene: slow})
			}
		}
		all = append(all, rows...)
		wait.Go(func() { onStore(ctx, kind, rows, ttl, rounds) })
	}
	wait.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if file != "" {
		if err := results.Save(file, figuresOf(all)); err != nil {
			return err
		}
	}
	fmt.Println()
	return report(os.Stdout, all, ttl)
}

// onStore fills in the rows of one store.
func onStore(ctx context.Context, kind string, rows []*row, ttl time.Duration, rounds int) {
	fail := func(err error) {
		for _, r := range rows {
			r.errs = append(r.errs, err)
		}
	}
	s, err := stores.StartDurable(ctx, kind)
	if err != nil {
		fail(err)
		return
	}
	defer func() {
		if err := s.Stop(); err != nil {
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
