package electorhttp

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"

	"github.com/elector-go/elector"
)

// A Status is an [elector.Leader] as JSON.
type Status struct {
	Election  string  `json:"election"`
	State     string  `json:"state"` // of the election: "held", "vacant", "lapsed" or "paused"
	ID        string  `json:"id"`
	Token     uint64  `json:"token"` // 0 if the election never had a leader
	Value     string  `json:"value"`
	TTL       float64 `json:"ttl_seconds"`
	Unchanged float64 `json:"unchanged_seconds"`

	Successor   string `json:"successor,omitempty"`
	RequestedBy string `json:"requested_by,omitempty"`
	Draining    bool   `json:"draining,omitempty"`

	Lossy string `json:"lossy,omitempty"` // why another process may lead at the same time

	// Of a pause.
	PausedBy     string  `json:"paused_by,omitempty"`
	PauseReason  string  `json:"pause_reason,omitempty"`
	PauseSeconds float64 `json:"pause_seconds,omitempty"` // 0: until it is resumed
}

// StatusOf returns the Status of the named election.
func StatusOf(election string, l elector.Leader) Status {
	s := Status{
		Election: election, State: "held", ID: l.ID, Token: uint64(l.Token), Value: l.Value, TTL: l.TTL.Seconds(), Unchanged: l.Unchanged.Seconds(),
		Successor: l.Successor, RequestedBy: l.RequestedBy, Draining: l.Draining, Lossy: l.Lossy,
	}
	switch {
	case l.Lapsed:
		s.State = "lapsed"
	case l.Pause != nil:
		s.State, s.PausedBy, s.PauseReason, s.PauseSeconds = "paused", l.Pause.By, l.Pause.Reason, l.Pause.For.Seconds()
	case l.Vacant():
		s.State = "vacant"
	}
	return s
}

// Leader returns a handler that answers GET and HEAD with the [Status] of e's
// election. It asks the store: the answer is never older than the request.
// Requests that arrive during a read share the next one. The handler blocks for as
// long as two calls of [elector.Elector.Leader].
//
// If the store does not answer, the status is 503, and the body is an object with
// the field "error", which names the store without its password.
func Leader(e *elector.Elector) http.Handler {
	h := &leader{e: e, turn: make(chan struct{}, 1)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !reads(w, r) {
			return
		}
		l, err := h.read(r.Context())
		if err != nil {
			w.Header().Set("Retry-After", "1")
			writeJSON(w, http.StatusServiceUnavailable, map[string]string{"election": e.Name(), "error": err.Error()})
			return
		}
		writeJSON(w, http.StatusOK, StatusOf(e.Name(), l))
	})
}

// A leader shares reads among requests.
type leader struct {
	e       *elector.Elector
	started atomic.Uint64 // reads

	turn chan struct{} // holds a value during a read, and guards its result
	last elector.Leader
	err  error
}

// read returns the result of a read that began after the call did.
func (h *leader) read(ctx context.Context) (elector.Leader, error) {
	before := h.started.Load()
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return elector.Leader{}, ctx.Err()
	}
	defer func() { <-h.turn }()
	if h.started.Load() == before {
		h.started.Add(1)
		// The result is for other requests too.
		h.last, h.err = h.e.Leader(context.WithoutCancel(ctx))
	}
	return h.last, h.err
}

// reads refuses methods other than GET and HEAD.
func reads(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	http.Error(w, "only GET and HEAD are allowed here", http.StatusMethodNotAllowed)
	return false
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(v) // an error means that the client is gone
}
