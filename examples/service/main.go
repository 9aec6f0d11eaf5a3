// Service is a service as production needs it: many processes serve HTTP, and one of
// them leads and keeps a book. SIGTERM hands over. In three terminals, in a clone,
// with ELECTOR_URL=file:///tmp/bookkeepers:
//
//	go run ./examples/fencedhttp serve /tmp 127.0.0.1:8080
//	cd examples/service && go run . -book http://127.0.0.1:8080 -address 127.0.0.1:8081
//	cd examples/service && go run . -book http://127.0.0.1:8080 -address 127.0.0.1:8082
//
// Then ask either of them: curl http://127.0.0.1:8082/entries
package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/elector-go/elector"
	_ "github.com/elector-go/elector/backends/etcd"
	_ "github.com/elector-go/elector/backends/file"
	"github.com/elector-go/elector/integrations/electorprom"
)

func main() {
	book := flag.String("book", "", "URL of the book")
	address := flag.String("address", "127.0.0.1:0", "host:port to serve at, for clients and for the other processes")
	ttl := flag.Duration("ttl", 15*time.Second, "how long a leader may be silent")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *book, *address, *ttl); err != nil {
		slog.Error("service", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, book, address string, ttl time.Duration) error {
	metrics := electorprom.New()
	prometheus.MustRegister(metrics)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	e, err := elector.Open(ctx, os.Getenv("ELECTOR_URL"), "bookkeeper", &elector.Options{
		TTL:   ttl,
		Value: listener.Addr().String(), // where followers forward to
		Trace: metrics.Trace(),
	})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := &service{book: book}
	server := &http.Server{Handler: s.handler(ctx, e), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener); stop() }()
	slog.Info("serves", "address", listener.Addr())

	err = e.Run(ctx, s.work) // until SIGTERM; then the worker ends, and another process leads
	drained, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err = errors.Join(err, server.Shutdown(drained), e.Close())
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}
