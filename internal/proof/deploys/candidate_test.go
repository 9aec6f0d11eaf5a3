// Package deploys runs rolling deploys of real processes on real stores, as
// docs/deploy.md says, and counts elections.
package deploys

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector"
	_ "github.com/elector-go/elector/backends/etcd"
	_ "github.com/elector-go/elector/backends/postgres"
	"github.com/elector-go/elector/internal/leak"
	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/child"
)

// variable makes the test binary a process of the service.
const variable = "ELECTOR_DEPLOYS_CANDIDATE"

func TestMain(m *testing.M) {
	var t task
	switch is, err := child.Task(variable, &t); {
	case err != nil:
		panic(err)
	case is:
		if err := candidate(t); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	child.Prepare()
	leak.Main(m)
}

// A task tells a process what to do.
type task struct {
	ID, URL, Election string
	Priority          int
}

// A message is a line that a process prints.
type message struct {
	Kind string        // one of those below
	At   time.Duration // on the clock that all processes share
}

const (
	ready    = "ready"    // it has seen who leads
	begun    = "begun"    // the worker was called
	returned = "returned" // the worker returns now
)

// candidate is the service of docs/deploy.md. It stops when its input ends.
func candidate(t task) error {
	var mutex sync.Mutex
	print := func(kind string) {
		mutex.Lock()
		defer mutex.Unlock()
		json.NewEncoder(os.Stdout).Encode(message{kind, history.BootTime()})
	}
	e, err := elector.Open(context.Background(), t.URL, t.Election, &elector.Options{
		ID: t.ID, Priority: t.Priority, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	defer e.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		io.Copy(io.Discard, os.Stdin)
		e.SetPriority(0)
		stop()
	}()
	go func() {
		for _, err := range e.Observe(ctx) {
			if err == nil {
				print(ready)
			}
			return
		}
	}()
	return e.Run(ctx, func(ctx context.Context, _ *elector.Lease) error {
		print(begun)
		<-ctx.Done()
		print(returned)
		return nil
	})
}
