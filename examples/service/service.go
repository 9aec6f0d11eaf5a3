package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/electorhttp"
	"github.com/elector-go/elector/fence/fencehttp"
)

// A service writes an entry into a book each second while it leads, and one for each
// request.
type service struct {
	e         *elector.Elector
	leader    *electorhttp.Observer
	book      string            // its URL
	transport http.RoundTripper // nil for the usual one
	written   atomic.Int64      // entries of this term
}

func newService(ctx context.Context, e *elector.Elector, book string, transport http.RoundTripper) *service {
	s := &service{e: e, leader: electorhttp.Observe(ctx, e), book: book, transport: transport}
	s.leader.Transport = transport
	return s
}

// work is what only the leader does.
func (s *service) work(ctx context.Context, lease *elector.Lease) error {
	s.written.Store(0)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		switch err := s.write(lease); {
		case err == nil:
		case errors.Is(err, elector.ErrNotLeader), errors.Is(err, elector.ErrStale):
			return err // another process leads, or will
		default:
			slog.Warn("an entry was not written", "error", err)
		}
	}
}

// write writes an entry. The transport checks the lease before the request and sends the
// fencing token along: the book refuses the token of an old leader.
func (s *service) write(lease *elector.Lease) error {
	book := &http.Client{Transport: &fencehttp.Transport{Lease: lease, Base: s.transport}, Timeout: 5 * time.Second}
	answer, err := book.Post(s.book, "text/plain", strings.NewReader("an entry"))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if highest, refused := fencehttp.Refused(answer); refused {
		return fmt.Errorf("%w: the book has seen token %d", elector.ErrStale, highest)
	}
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	s.written.Add(1)
	_, err = io.Copy(io.Discard, answer.Body) // or the connection cannot be used again
	return err
}

// handler serves what every process serves. The leader answers /entries, whichever
// process is asked.
func (s *service) handler(metrics prometheus.Gatherer) http.Handler {
	entries := http.NewServeMux()
	entries.HandleFunc("GET /entries", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "%s has written %d entries\n", s.e.ID(), s.written.Load())
	})
	entries.HandleFunc("POST /entries", func(w http.ResponseWriter, r *http.Request) {
		if err := s.write(electorhttp.LeaseFrom(r.Context())); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
	})
	mux := http.NewServeMux()
	mux.Handle("GET /live", electorhttp.Live())
	mux.Handle("GET /ready", s.leader.Ready())
	mux.Handle("GET /leader", electorhttp.Leader(s.e))
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	mux.Handle("/entries", s.leader.Forward(entries))
	return mux
}
