// Singleton sends invoices, from one process at a time, however many run.
//
//	go run ./examples/singleton /var/lib/invoices   # in as many terminals as you like
//	go run ./examples/singleton demo                # kills, stops and replaces leaders for you
//
// The folder holds the journal of the invoices sent, and the election too,
// unless ELECTOR_URL names another store: that alone moves it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/elector-go/elector"
	_ "github.com/elector-go/elector/backends/file"
	"github.com/elector-go/elector/examples/singleton/demo"
	"github.com/elector-go/elector/examples/singleton/protected"
)

func main() {
	// SIGTERM is a request to hand over: Run tells the store on its way out.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: singleton FOLDER | singleton demo")
		os.Exit(2)
	}
	var err error
	if os.Args[1] == "demo" {
		err = demo.Run(ctx)
	} else {
		err = run(ctx, os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "singleton:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, folder string) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	store := os.Getenv("ELECTOR_URL")
	if store == "" {
		store = (&url.URL{Scheme: "file", Path: folder}).String()
	}
	s := &sender{journal: &protected.File{Path: filepath.Join(folder, "invoices.txt")}, probe: demo.NewProbe()}

	// Options are nil, the defaults, outside the demo.
	e, err := elector.Open(ctx, store, "invoice-sender", s.probe.Options())
	if err != nil {
		return err
	}
	s.probe.Opened()
	return errors.Join(e.Run(ctx, s.send), e.Close())
}

// A sender sends invoices and keeps a journal of them.
type sender struct {
	journal *protected.File
	probe   *demo.Probe // reports to the demo; does nothing otherwise
}

// send is what only the leader does. It returns nil when it is told to stop.
func (s *sender) send(ctx context.Context, lease *elector.Lease) error {
	s.probe.Leads(lease)
	// Where did the last leader stop? Reading under our token makes sure that
	// it cannot go on behind our back.
	sent, err := s.journal.Read(lease.Token())
	if err != nil {
		return err
	}
	for number := len(sent) + 1; ; number++ {
		if err := lease.Check(); err != nil {
			return err
		}
		// A process that is paused here, after the check, acts late. The demo
		// makes that happen. The journal refuses the late write.
		s.probe.BeforeWrite(lease, number)

		line := fmt.Sprintf("invoice %d sent by %d token %v", number, os.Getpid(), lease.Token())
		err := s.journal.Append(lease.Token(), line)
		s.probe.AfterWrite(lease, number, err)
		if err != nil {
			return err // elector.ErrStale, or a disk that is full
		}
		slog.Info(line)

		select {
		case <-time.After(250 * time.Millisecond):
		case <-ctx.Done():
			return nil
		}
	}
}
