// Errgroup runs a singleton worker beside an HTTP server that every process serves, in
// one golang.org/x/sync/errgroup. In two terminals:
//
//	ELECTOR_URL=file:///tmp/elections go run ./errgroup
//
// SIGTERM ends both: the worker is told to stop, another process leads when it has
// returned, and requests under way are answered. If the server fails, the worker stops
// and another process leads; if the worker fails, the server stops too. A worker that
// loses its lease does not end the group: Run campaigns again.
//
// Here the server shuts down at once. If the leader serves requests, or a load balancer
// sends them, use Serve of package electorhttp instead, which has the order that costs no
// request: see examples/service.
package main

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/elector-go/elector"
	_ "github.com/elector-go/elector/backends/file"
)

// run serves, and works while it leads, until ctx ends or one of them fails.
func run(ctx context.Context, e *elector.Elector, l net.Listener, h http.Handler, work func(context.Context, *elector.Lease) error) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return e.Run(ctx, work) })
	g.Go(func() error {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		drained, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return server.Shutdown(drained)
	})
	return g.Wait()
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	e, err := elector.Open(ctx, os.Getenv("ELECTOR_URL"), "errgroup", nil)
	if err != nil {
		log.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	log.Print("serves at ", l.Addr())
	err = run(ctx, e, l, http.NotFoundHandler(), func(ctx context.Context, lease *elector.Lease) error {
		log.Print("works, with token ", lease.Token())
		<-ctx.Done()
		return nil
	})
	if err := errors.Join(err, e.Close()); err != nil {
		log.Fatal(err)
	}
}
