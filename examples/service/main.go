// Service is a service as production needs it: many processes serve HTTP, and one of
// them leads and keeps a book. SIGTERM hands over. In three terminals, in a clone,
// with ELECTOR_URL=file:///tmp/bookkeepers:
//
//	go run ./examples/fencedhttp serve /tmp 127.0.0.1:8080
//	cd examples/service && go run . -book http://127.0.0.1:8080 -address 127.0.0.1:8081
//	cd examples/service && go run . -book http://127.0.0.1:8080 -address 127.0.0.1:8082
//
// Then ask either of them: curl http://127.0.0.1:8082/entries, or curl -X POST. A request
// that comes while the leader stops waits for the next one.
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
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/elector-go/elector"
	_ "github.com/elector-go/elector/backends/etcd"
	_ "github.com/elector-go/elector/backends/file"
	"github.com/elector-go/elector/integrations/electorprom"
)

func main() {
	o := options{}
	address := flag.String("address", "127.0.0.1:0", "host:port to serve at, for clients and for the other processes")
	flag.StringVar(&o.book, "book", "", "URL of the book")
	flag.DurationVar(&o.ttl, "ttl", 15*time.Second, "how long a leader may be silent")
	flag.DurationVar(&o.linger, "linger", 3*time.Second, "how long load balancers take to see that this process stops")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	l, err := net.Listen("tcp", *address)
	if err == nil {
		err = run(ctx, l, o)
	}
	if err != nil {
		slog.Error("service", "error", err)
		os.Exit(1)
	}
}

type options struct {
	book        string
	ttl, linger time.Duration
}

// run serves until ctx ends, and hands over then.
func run(ctx context.Context, l net.Listener, o options) error {
	metrics := electorprom.New()
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	revision, _ := strconv.Atoi(os.Getenv("REVISION")) // of the deploy: the new version leads next
	e, err := elector.Open(ctx, os.Getenv("ELECTOR_URL"), "bookkeeper", &elector.Options{
		TTL:      o.ttl,
		Value:    l.Addr().String(), // where followers forward to
		Priority: revision,
		Trace:    metrics.Trace(),
	})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	slog.Info("serves", "address", l.Addr())
	s := newService(ctx, e, o.book, nil)
	s.leader.Linger = o.linger
	server := &http.Server{Handler: s.handler(registry), ReadHeaderTimeout: 10 * time.Second}
	return errors.Join(s.leader.Serve(ctx, server, l, s.work), e.Close())
}
