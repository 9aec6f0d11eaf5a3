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

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/electorhttp"
	"github.com/elector-go/elector/fence/fencehttp"
)

// A service writes an entry into a book each second while it leads.
type service struct {
	book      string            // its URL
	transport http.RoundTripper // nil for the usual one
	written   atomic.Int64      // entries of this term
}

// work is what only the leader does.
func (s *service) work(ctx context.Context, lease *elector.Lease) error {
	s.written.Store(0)
	// The transport checks the lease before each request and sends the fencing token
	// along. The book refuses the token of an old leader.
	book := &http.Client{Transport: &fencehttp.Transport{Lease: lease, Base: s.transport}, Timeout: 5 * time.Second}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		switch err := s.write(book); {
		case err == nil:
			s.written.Add(1)
		case errors.Is(err, elector.ErrNotLeader), errors.Is(err, elector.ErrStale):
			return err // another process leads, or will
		default:
			slog.Warn("an entry was not written", "error", err)
		}
	}
}

func (s *service) write(book *http.Client) error {
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
	_, err = io.Copy(io.Discard, answer.Body) // or the connection cannot be used again
	return err
}

// handler serves what every process serves. The leader answers /entries, whichever
// process is asked.
func (s *service) handler(ctx context.Context, e *elector.Elector) http.Handler {
	leader := electorhttp.Observe(ctx, e)
	leader.Transport = s.transport
	mux := http.NewServeMux()
	mux.Handle("GET /live", electorhttp.Live())
	mux.Handle("GET /ready", leader.Ready())
	mux.Handle("GET /leader", electorhttp.Leader(e))
	mux.Handle("GET /metrics", promhttp.Handler())
	mux.Handle("GET /entries", leader.Forward(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "%s has written %d entries\n", e.ID(), s.written.Load())
	})))
	return mux
}
