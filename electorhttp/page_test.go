package electorhttp_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/electorhttp"
	"github.com/elector-go/elector/internal/page"
)

// The code of docs/deploy.md runs.
func TestPage(t *testing.T) {
	page.Check(t, "../docs/deploy.md", 2, "page_test.go")
	t.Setenv("ELECTOR_URL", "memory://")
	t.Setenv("ADDRESS", "a:1")
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		p := w.listen("a:1")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- serve(ctx, p, http.HandlerFunc(transfer), func(ctx context.Context, _ *elector.Lease) error { <-ctx.Done(); return nil })
		}()
		a := &house{pipes: p}
		await(t, "it is ready", func() bool { return w.isReady(a) })
		if _, err := w.post(a, "/transfer"); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// transfer is a handler of the API.
func transfer(w http.ResponseWriter, r *http.Request) {
	lease := electorhttp.LeaseFrom(r.Context())
	if err := lease.Check(); err != nil { // before each side effect; send lease.Token() with it
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	// …
}

// serve serves the API, and works while this process leads, until SIGTERM.
func serve(ctx context.Context, listener net.Listener, api http.Handler, work func(context.Context, *elector.Lease) error) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)                       // a second signal ends the process at once
	revision, _ := strconv.Atoi(os.Getenv("REVISION")) // of the deploy
	e, err := elector.Open(ctx, os.Getenv("ELECTOR_URL"), "invoice-sender", &elector.Options{
		ID:       os.Getenv("POD_NAME"),
		Value:    os.Getenv("ADDRESS"), // host:port where the others reach this process
		Priority: revision,
	})
	if err != nil {
		return err
	}
	defer e.Close()
	o := electorhttp.Observe(ctx, e)
	mux := http.NewServeMux()
	mux.Handle("GET /ready", o.Ready())
	mux.Handle("/", o.Forward(api))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	return o.Serve(ctx, server, listener, work)
}
