package electorhttp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/elector-go/elector"
)

// An Observer knows who leads an election, as [elector.Elector.Observe] saw it
// last, and serves requests under this process's lease. Set its fields before you call
// its methods.
type Observer struct {
	// Transport makes the forwarded requests. Nil means one with the settings of
	// http.DefaultTransport, but without a proxy, with two seconds to connect, and with all
	// idle connections for one host.
	Transport http.RoundTripper

	// Logger gets a line when a request could not be forwarded, with the reason, except
	// for those that found no leader. Of one handler it gets a line for each reason, and
	// while that lasts one in a minute, with the number of requests since the last. Nil
	// means slog.Default().
	Logger *slog.Logger

	// Wait bounds how long a request waits in this process for a leader that serves it.
	// The default 0 means 10 s, or two seconds more than a crash takes if that is longer,
	// but a minute at most: 23 s with a TTL of 15 s, see [elector.Elector.FailoverTime].
	// Below 0 no request waits. A WriteTimeout of the server counts this time too.
	Wait time.Duration

	// Linger is how long Serve at least serves requests after Ready has begun to fail,
	// for clients and load balancers that have not seen that yet. The default 0 means
	// 3 s; below 0 none.
	Linger time.Duration

	// ShutdownTimeout bounds how long Serve waits at its end for requests that are still served.
	// The default 0 means 10 s.
	ShutdownTimeout time.Duration

	*hub
	e      *elector.Elector
	leader elector.Leader
	err    error // why leader is not known
	works  bool  // doors are those of workers
}

// Observe starts to observe e's election, in one goroutine that ends when ctx ends
// or e is closed; while Serve runs, it goes on until that returns. Observe returns at
// once, and costs what [elector.Elector.Observe] costs. If Observe ends with an error, such
// as [elector.ErrDenied] at the beginning, the leader is unknown, and the Observer tries
// again every five seconds.
func Observe(ctx context.Context, e *elector.Elector) *Observer {
	h, ctx := newHub(ctx)
	o := &Observer{hub: h, e: e, err: errors.New("who leads is not known yet")}
	go func() {
		defer o.stop()
		follow(ctx, e.Observe, o.observed)
		o.set(func() { o.ended, o.err = true, errors.New("this process has stopped to observe the election") })
	}()
	return o
}

func (o *Observer) observed(l elector.Leader, err error) {
	o.set(func() { o.leader, o.err, o.seen = l, err, o.seen || err == nil })
}

// Work returns a worker for [elector.Elector.Run]: while it runs, the handlers of Forward
// and Local serve requests in this process. It calls work, and returns what that returns,
// once these requests have been served too: the next leader begins after them. New
// requests wait for the next leader as soon as the worker is told to stop. A nil work
// waits until it is told to stop.
//
// Requests that are still served ReleaseTimeout after the worker was told to stop lose
// the lease, as a worker does, and 10 s after a worker that has returned by itself. A
// handler that may take longer ends when the context of its lease does.
//
// Call Work before the handlers get requests. Without Work they serve while the lease is
// valid and its worker was not told to stop: that begins before Run calls the worker,
// while Standby still stops, and what they serve may end after the next leader has begun.
func (o *Observer) Work(work func(context.Context, *elector.Lease) error) func(context.Context, *elector.Lease) error {
	o.set(func() { o.works = true })
	return func(ctx context.Context, lease *elector.Lease) error {
		return o.during(ctx, 0, lease, func() error {
			if work == nil {
				<-ctx.Done()
				return nil
			}
			return work(ctx, lease)
		})
	}
}

// Forward returns a handler that calls local while this process leads, see Work, and
// otherwise forwards the request to the address that the leader has published in
// [elector.Options.Value]: a URL with http or https, such as
// https://node-1:8443/base, or host:port, which means http. The request keeps its
// Host, its path follows that of the URL, X-Forwarded-For gets the client,
// Elector-Forwarded the name of the election, and Elector-Try a text by which the answer
// Elector-Refused is known. A proxy in between must pass these three on. The IDs of the
// candidates must differ.
//
// While the election has no leader, or the lead moves, the request waits: at most Wait
// here, and at most Wait in the process that it is forwarded to. At most 1,000 requests
// wait here; while the election is paused, none does. A client that does not send the body
// that it has announced gets 408 after Wait, and not before 10 s. A request is sent again
// only if it certainly had no effect: no connection was made, or the other process has
// answered that it does not lead. One whose connection broke may have had one. It is sent
// again, once, if it is GET, HEAD, OPTIONS or TRACE, or has the header Idempotency-Key or
// X-Idempotency-Key: those that net/http repeats too. A body above 64 KiB, or of unknown
// length, is not sent again once some of it was read. A request whose client has gone while
// it waited is not served, unless it has such a body: net/http cannot see that then.
//
// Forward does not ask the store. Its own answers are:
//
//   - 503 with Retry-After, and the request had no effect: no leader served it in time;
//     or the request was forwarded already, and this process does not lead. So no request
//     goes in a circle.
//   - 502: the published value is no address; or the leader did not answer, and
//     may have acted on the request.
//
// Who leads is known as Observe saw it last. While this process cannot reach the
// store, that may be long ago: a former leader that gets the request does not serve it.
// Another service may have got its address meanwhile: use https where that
// matters.
//
// Local finds the lease with [LeaseFrom]. It calls [elector.Lease.Check] before each side
// effect, and sends the token with it. The request's context ends when the lease is over,
// or within a second of that if the worker was told to stop before; it does not end when
// the worker is told to stop.
func (o *Observer) Forward(local http.Handler) http.Handler { return o.handler(local, false) }

// Local returns a handler that calls local while this process leads, as Forward does, and
// forwards nothing: for a load balancer that sends requests to the leader only. A request
// waits at most Wait for this process to serve; it gets 503 with Retry-After, and had no
// effect, after that, and at once if another process leads.
func (o *Observer) Local(local http.Handler) http.Handler { return o.handler(local, true) }

func (o *Observer) handler(local http.Handler, stays bool) http.Handler {
	return &forwarder{
		hub: o.hub, words: ofElection, name: o.e.Name(), transport: transport(o.Transport), logger: o.Logger, wait: waits(o.Wait, o.e.FailoverTime()), stays: stays,
		forwarded: func(election string) bool { return election == o.e.Name() },
		look:      func(*http.Request) func() view { return o.look },
		local: func(w http.ResponseWriter, r *http.Request, l lease) {
			local.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), leaseKey{}, l)))
		},
	}
}

var ofElection = &words{
	kind:      "election",
	unknown:   "the leader is not known",
	noAddress: "the leader has published no address",
	unreached: "the leader cannot be reached",
	silent:    "the leader did not answer",
	vacant:    "there is no leader",
	notYet:    "this process is to lead, and does not serve yet",
	notThere:  "the leader does not serve yet, or no longer",
	notHere:   "this process does not lead",
}

func (o *Observer) look() view {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	d := o.doors[0]
	if !o.works {
		if l, err := o.e.Lease(); err == nil {
			d = &door{lease: l}
		}
	}
	return view{
		door: o.enter(d), election: o.e.Name(), planned: o.err == nil && !o.leader.Vacant(), paused: o.err == nil && o.leader.Pause != nil, self: o.leader.ID == o.e.ID(),
		id: o.leader.ID, value: o.leader.Value, err: o.err, changed: o.changed,
	}
}

type leaseKey struct{}

// LeaseFrom returns the lease under which Forward or Local serves a request, from the
// request's context, and nil from any other context.
func LeaseFrom(ctx context.Context) *elector.Lease {
	l, _ := ctx.Value(leaseKey{}).(*elector.Lease)
	return l
}
