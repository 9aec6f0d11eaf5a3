package chaos

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// A resource takes writes from whoever shows a token that is not stale. It is
// what an election protects, and the only one that can refuse a paused leader.
type resource struct {
	election string
	tell     func(history.Event)
	fence    elector.Fence
	server   http.Server
	url      string
}

// newResource listens on 127.0.0.1.
func newResource(election string, tell func(history.Event)) (*resource, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &resource{election: election, tell: tell, url: "http://" + l.Addr().String() + "/"}
	r.server.Handler = r
	r.server.ReadHeaderTimeout = time.Minute
	go r.server.Serve(l) // until Close
	return r, nil
}

// ServeHTTP takes one write. Events are told under the fence's lock, so that
// their order is that of the writes.
func (r *resource) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	e := history.Event{Election: r.election, Kind: history.Accepted, Before: history.BootTime()}
	var err, numberErr error
	e.Token, err = elector.ParseToken(request.Header.Get(elector.TokenHeader))
	e.Candidate = request.FormValue("candidate")
	e.Number, numberErr = strconv.ParseUint(request.FormValue("number"), 10, 64)
	if err = errors.Join(err, numberErr); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	err = r.fence.Do(request.Context(), r.election, e.Token, func() error {
		e.At = history.BootTime()
		r.tell(e)
		return nil
	})
	switch {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	case errors.Is(err, elector.ErrStale):
		e.Kind, e.At = history.Rejected, history.BootTime()
		r.tell(e)
		http.Error(w, err.Error(), http.StatusConflict)
	default: // the candidate is gone, and its write was not done
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

func (r *resource) close() error { return r.server.Close() }
