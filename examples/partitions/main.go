// Partitions counts items that come in partitions: as many processes share the
// partitions as run now, and each item is counted once.
//
//	go run ./examples/partitions demo              # members come, go, stop and are killed
//	go run ./examples/partitions worker LEDGER-URL # one member, as the demo starts it
//
// The demo keeps the items, and what was counted, in a ledger behind fences. The
// members share the partitions through the store that ELECTOR_URL names.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	_ "github.com/elector-go/elector/backends/file"
)

// group is the name of the group, and partitions how many it has: the same in all
// processes.
const (
	group      = "items"
	partitions = 24
)

func main() {
	// SIGTERM is a request to hand over: Run leaves the group on its way out.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch arguments := os.Args[1:]; {
	case len(arguments) == 1 && arguments[0] == "demo":
		err = perform(ctx)
	case len(arguments) == 2 && arguments[0] == "worker":
		err = work(ctx, os.Getenv("ELECTOR_URL"), arguments[1])
	default:
		err = errors.New("usage: partitions demo | partitions worker LEDGER-URL")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "partitions:", err)
		os.Exit(1)
	}
}
