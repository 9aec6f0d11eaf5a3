package electorhttp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/elector-go/elector/partition"
)

// A Router knows which member of a group should own each partition, as
// [partition.Group.Observe] saw it last, and which partitions this process owns. Set its
// fields before you call Forward.
type Router struct {
	// Transport makes the forwarded requests. Nil means one with the settings of
	// http.DefaultTransport, but without a proxy, with two seconds to connect, and with all
	// idle connections for one host.
	Transport http.RoundTripper

	// Logger gets a line when a request could not be forwarded, with the reason, except
	// for those that found no owner: see [Observer.Logger]. Nil means slog.Default().
	Logger *slog.Logger

	// Wait bounds how long a request waits in this process for an owner that serves it.
	// The default 0 means 10 s, or two seconds more than a crash takes if that is longer,
	// but a minute at most: 33 s with a TTL of 15 s, see [partition.Group.FailoverTime].
	// Below 0 no request waits.
	Wait time.Duration

	// Linger and ShutdownTimeout are for Serve: see [Observer].
	Linger, ShutdownTimeout time.Duration

	*hub
	g     *partition.Group
	size  int                   // partitions of the group, 0 unless that was seen
	state *partition.Assignment // nil unless err is
	err   error                 // why state is not known
}

// Route starts to observe a group, in one goroutine that ends when ctx ends or g is
// closed; while Serve runs, it goes on until that returns. It returns at once, and costs what [partition.Group.Observe] costs. After an
// error that trying again does not help the owners are unknown, and the Router tries
// again every five seconds. The process need not be a member: it may only forward.
func Route(ctx context.Context, g *partition.Group) *Router {
	h, ctx := newHub(ctx)
	o := &Router{hub: h, g: g, err: errors.New("the state of the group is not known yet")}
	go func() {
		defer o.stop()
		follow(ctx, g.Observe, o.observed)
		o.set(func() {
			o.ended, o.state, o.err = true, nil, errors.New("this process has stopped to observe the group")
		})
	}()
	return o
}

func (o *Router) observed(s *partition.Assignment, err error) {
	o.set(func() {
		o.state, o.err, o.seen = s, err, o.seen || err == nil
		if err == nil && s.Partitions() > 0 {
			o.size = s.Partitions()
		}
	})
}

// Work returns a worker for [partition.Group.Run]: while it runs, handlers of Forward
// serve the partition's requests in this process. It calls work, and returns what that
// returns, once these requests have been served too; so the next owner begins after
// them. New requests go there as soon as the worker is told to stop. A nil work waits
// until it is told to stop; with [elector.Options.StallTimeout] it must not be nil, as it calls
// no Check.
func (o *Router) Work(work partition.Work) partition.Work {
	return func(ctx context.Context, lease *partition.Lease) error {
		return o.during(ctx, lease.Partition(), lease, func() error {
			if work == nil {
				<-ctx.Done()
				return nil
			}
			return work(ctx, lease)
		})
	}
}

// Forward returns a handler for requests that belong to the owner of a partition: that
// of the request's key, by [partition.Of]. It calls local while this process owns the
// partition and a worker of Work runs, and otherwise forwards the request to the address
// that the owner has published in the Value of [partition.Options.Elector]: see
// [Observer.Forward], also for the headers. Elector-Forwarded has the name of the
// partition's election.
//
// While the partition has no owner, or moves, the request waits: at most Wait here, and
// at most Wait in the process that it is forwarded to. At most 1,000 requests wait here.
// A request is sent again only if it
// certainly had no effect: no connection was made, or the other process has answered that
// it is not the owner. One whose connection broke may have had one. It is sent again,
// once, if it is GET, HEAD, OPTIONS or TRACE, or has the header Idempotency-Key or
// X-Idempotency-Key: those that net/http repeats too. A body above 64 KiB, or of unknown
// length, is not sent again once some of it was read.
//
// Forward's own answers are:
//
//   - 503 with Retry-After, and the request had no effect: see above; or the request was
//     forwarded already, and this process does not own the partition. So no request goes
//     in a circle.
//   - 502: the published value is no address; or the owner did not answer, and may have
//     acted on the request.
//
// Local gets the lease. It calls [partition.Lease.Check] before each side effect, and
// sends the token with it. The request's context ends when the lease is lost, or within a
// second of that if the worker was told to stop before; it does not end when the worker is
// told to stop.
func (o *Router) Forward(key func(*http.Request) string, local func(http.ResponseWriter, *http.Request, *partition.Lease)) http.Handler {
	prefix := strings.TrimSuffix(partition.Election(o.g.Name(), 0), "0") // of any partition
	return &forwarder{
		hub: o.hub, words: ofGroup, name: o.g.Name(), transport: transport(o.Transport), logger: o.Logger, wait: waits(o.Wait, o.g.FailoverTime()),
		forwarded: func(election string) bool {
			n, ok := strings.CutPrefix(election, prefix)
			return ok && !strings.Contains(n, ".") // of a group whose name begins with this one's
		},
		look: func(r *http.Request) func() view {
			k := key(r)
			return func() view { return o.look(k) }
		},
		local: func(w http.ResponseWriter, r *http.Request, l lease) { local(w, r, l.(*partition.Lease)) },
	}
}

var ofGroup = &words{
	kind:      "group",
	unknown:   "the owners are not known",
	noAddress: "the owner has published no address",
	unreached: "the owner cannot be reached",
	silent:    "the owner did not answer",
	vacant:    "no member owns the partition",
	notYet:    "this process is to own the partition, and does not yet",
	notThere:  "the member that is to own the partition does not yet",
	notHere:   "this process does not own the partition",
}

func (o *Router) look(key string) view {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	v := view{err: o.err, changed: o.changed}
	if o.size == 0 {
		return v
	}
	n := partition.Of(key, o.size)
	v.election, v.door = partition.Election(o.g.Name(), n), o.enter(o.doors[n])
	if o.err == nil {
		var owner partition.Member
		owner, v.planned = o.state.Planned(n)
		v.id, v.value, v.self = owner.ID, owner.Value, owner.ID == o.g.ID()
	}
	return v
}
