// Command overlap shows for how long two processes believe that they lead when
// the network of the leader goes dark: see package overlap of bench.
//
// It prints a table, and exits 1 if two processes led at once with this
// repository's library, or if a case of it did not take place; 3 if only cases of
// other libraries did not.
//
// Usage: go run ./cmd/overlap [-ttl 3s] [-rounds 3] [library ...]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/elector-go/elector/bench/overlap"
	"github.com/elector-go/elector/bench/peers"
)

func main() {
	if overlap.Main() {
		return
	}
	ttl := flag.Duration("ttl", 3*time.Second, "of all libraries; whole seconds")
	rounds := flag.Int("rounds", 3, "of each case")
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "Usage: overlap [-ttl 3s] [-rounds 3] [library ...]\nLibraries: %s\n", strings.Join(peers.Names(), ", "))
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	libraries, err := peers.Choose(flag.Args(), nil)
	if err == nil {
		_, err = overlap.Measure(ctx, libraries, *ttl, *rounds)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "overlap:", err)
		if peers.Besides(err) == nil {
			os.Exit(3)
		}
		os.Exit(1)
	}
}
