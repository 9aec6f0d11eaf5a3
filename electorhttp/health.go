package electorhttp

import (
	"fmt"
	"net/http"

	"github.com/elector-go/elector"
)

// Live returns a handler for liveness probes. It answers 200 whether this process
// leads or waits, and whether the store answers or not: a restart of a
// process that waits, or of all processes while the store is away, does not help.
func Live() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r, true, "alive") })
}

// Ready returns a handler for readiness probes. It answers 200 once the Observer
// has seen who leads, this process or another, and 503 before that, after its end, and
// once Serve was told to stop. A store that is away later does not change the answer.
func (o *Observer) Ready() http.Handler {
	return o.readiness("who leads is not known yet, or this process stops")
}

// Ready returns a handler for readiness probes. It answers 200 once the Router has seen
// the group, and 503 before that, after its end, and once Serve was told to stop. A store
// that is away later does not change the answer.
func (o *Router) Ready() http.Handler {
	return o.readiness("the group is not known yet, or this process stops")
}

func (h *hub) readiness(otherwise string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mutex.Lock()
		ready := h.seen && !h.ended && !h.stopping
		h.mutex.Unlock()
		text := "ready"
		if !ready {
			text = otherwise
		}
		answer(w, r, ready, text)
	})
}

// Leading returns a handler that answers 200 while this process leads, and 503
// otherwise, with the [elector.CandidateState]: for a load balancer that is to send requests
// to the leader only. It asks no store and does not block.
//
// Do not use it for the readiness probe of a rolling update: with Kubernetes'
// maxUnavailable of 0, the old process is stopped only when the new one is ready,
// and the new one leads only when the old one has stopped. Use Ready and Forward
// instead.
func Leading(e *elector.Elector) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, err := e.Token()
		text := fmt.Sprintf("leads with token %d", token)
		if err != nil {
			text = fmt.Sprintf("does not lead: it is %s", e.State())
		}
		answer(w, r, err == nil, text)
	})
}

// answer answers a probe.
func answer(w http.ResponseWriter, r *http.Request, good bool, text string) {
	if !reads(w, r) {
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	if !good {
		http.Error(w, text, http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, text)
}
