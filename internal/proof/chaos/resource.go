package chaos

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/fence/fencehttp"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// A resource is a service that takes the writes of leaders and refuses stale ones.
// It is what an election protects, and each partition of a group.
type resource struct {
	tell   func(history.Event)
	name   string // of the election; older candidates do not name it
	fence  elector.Fence
	server http.Server
	url    string
}

// newResource listens on 127.0.0.1.
func newResource(name string, tell func(history.Event)) (*resource, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &resource{name: name, tell: tell, url: "http://" + l.Addr().String() + "/"}
	r.server.Handler = r
	r.server.ReadHeaderTimeout = time.Minute
	go r.server.Serve(l) // until Close
	return r, nil
}

// ServeHTTP serves one write. It tells Accepted inside the fence: a write with a
// higher token cannot be told before all older ones.
func (r *resource) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	e := history.Event{Election: cmp.Or(request.FormValue("election"), r.name), Kind: history.Accepted, Candidate: request.FormValue("candidate"), Before: history.BootTime()}
	var err error
	if e.Number, err = strconv.ParseUint(request.FormValue("number"), 10, 64); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	e.Token, _ = elector.ParseToken(request.Header.Get(elector.TokenHeader)) // the Handler refuses a malformed one
	answer := &answer{ResponseWriter: w}
	each := func(*http.Request) string { return e.Election } // tokens of two elections cannot be compared
	door := &fencehttp.Handler{Fence: &r.fence, Election: e.Election, Resource: each, Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		e.At = history.BootTime()
		r.tell(e)
		w.WriteHeader(http.StatusNoContent)
	})}
	// A write that has arrived is made even if its candidate dies: so each token
	// that the fence has seen is told.
	door.ServeHTTP(answer, request.WithContext(context.WithoutCancel(request.Context())))
	if answer.status == http.StatusPreconditionFailed {
		e.Kind, e.At = history.Rejected, history.BootTime()
		r.tell(e)
	}
}

// An answer remembers its status.
type answer struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

func (r *resource) close() error { return r.server.Close() }
