package electorhttp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector/partition"
)

// refusedHeader is in the answer of a process to a forwarded request of whose partition
// it is not the owner, with the name of the group.
const refusedHeader = "Elector-Refused"

// A Router knows which member of a group should own each partition, as
// [partition.Group.Observe] saw it last, and which partitions this process owns. Set its
// fields before you call Forward.
type Router struct {
	// Transport makes the forwarded requests. Nil means one with the settings of
	// http.DefaultTransport, but without a proxy, and with two seconds for a connection.
	Transport http.RoundTripper

	// Logger gets a line for each request that could not be forwarded, with the
	// reason, except for those that found no owner. Nil means slog.Default().
	Logger *slog.Logger

	// Wait bounds how long a request waits in this process for an owner that serves it.
	// The default 0 means 10 s, for a move; a crash takes TTL*(1+ClockDrift) and more.
	// Below 0 no request waits.
	Wait time.Duration

	g *partition.Group

	mutex   sync.Mutex
	size    int              // partitions of the group, 0 unless that was seen
	state   *partition.State // nil unless err is
	err     error            // why state is not known
	doors   map[int]*door    // of the partitions that this process owns
	changed chan struct{}    // closed when any of these changes
}

// Route starts to observe a group, in one goroutine that ends when ctx ends or g is
// closed. It returns at once, and costs what [partition.Group.Observe] costs. After an
// error that trying again does not help the owners are unknown, and the Router tries
// again every five seconds. The process need not be a member: it may only forward.
func Route(ctx context.Context, g *partition.Group) *Router {
	o := &Router{g: g, err: errors.New("the state of the group is not known yet"), doors: map[int]*door{}, changed: make(chan struct{})}
	go func() {
		follow(ctx, g.Observe, o.set)
		o.set(nil, errors.New("this process has stopped to observe the group"))
	}()
	return o
}

func (o *Router) set(s *partition.State, err error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.state, o.err = s, err
	if err == nil && s.Partitions() > 0 {
		o.size = s.Partitions()
	}
	o.change()
}

// change wakes the requests that wait. The caller holds the mutex.
func (o *Router) change() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// A door lets the requests of a partition in that this process owns.
type door struct {
	lease  *partition.Lease
	inside sync.WaitGroup // requests
}

// Work returns a worker for [partition.Group.Run]: while it runs, handlers of Forward
// serve the partition's requests in this process. It calls work, and returns what that
// returns, once these requests have been served too; so the next owner begins after
// them. New requests go there as soon as the worker is told to stop. A nil work waits
// until it is told to stop.
func (o *Router) Work(work partition.Work) partition.Work {
	return func(ctx context.Context, lease *partition.Lease) error {
		n, d := lease.Partition(), &door{lease: lease}
		o.mutex.Lock()
		o.doors[n] = d
		o.change()
		o.mutex.Unlock()
		defer func() {
			o.mutex.Lock()
			if o.doors[n] == d {
				delete(o.doors, n)
			}
			o.mutex.Unlock()
			d.inside.Wait()
		}()
		if work == nil {
			<-ctx.Done()
			return nil
		}
		return work(ctx, lease)
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
// at most Wait in the process that it is forwarded to. A request is sent again only if it
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
	wait := o.Wait
	if wait == 0 {
		wait = 10 * time.Second
	}
	transport := o.Transport
	if transport == nil {
		transport = direct()
		if t, ok := transport.(*http.Transport); ok && t != http.DefaultTransport {
			t.DialContext = (&net.Dialer{Timeout: 2 * time.Second}).DialContext
		}
	}
	prefix := strings.TrimSuffix(partition.Election(o.g.Name(), 0), "0") // of any partition
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := &trip{Router: o, key: key(r), local: local, transport: transport, parcel: parcel{request: r}}
		t.forwarded = forwarded(r, func(election string) bool {
			n, ok := strings.CutPrefix(election, prefix)
			return ok && !strings.Contains(n, ".") // of a group whose name begins with this one's
		})
		t.inside = r.Context().Value(insideKey{}) == o.g
		t.serve(w, max(0, wait))
	})
}

// A trip is a request on its way to the owner.
type trip struct {
	*Router
	key       string
	local     func(http.ResponseWriter, *http.Request, *partition.Lease)
	transport http.RoundTripper
	forwarded bool     // by another process
	inside    bool     // a handler that the request was served by has called this one
	broke     *refusal // a connection, after the request may have been sent
	parcel    parcel
}

// insideKey is in the context of a request that is served, with the group.
type insideKey struct{}

// The pauses between two tries, unless something changes before.
const (
	shortestPause = 50 * time.Millisecond
	longestPause  = time.Second
)

// serve tries until the request is answered, cannot be repeated, or has waited too long.
func (t *trip) serve(w http.ResponseWriter, wait time.Duration) {
	r := t.parcel.request
	late := time.NewTimer(wait)
	defer late.Stop()
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		v := t.look(t.key)
		refused, final := t.try(w, v)
		if refused == nil {
			return
		}
		if wait == 0 || final || !until(r.Context(), v.changed, pause, late.C) {
			if t.broke != nil { // the request may have had an effect, whatever came later
				refused = t.broke
			}
			if t.forwarded && !t.inside {
				w.Header().Set(refusedHeader, t.g.Name())
			}
			refuse(w, r, t.Logger, "group", t.g.Name(), refused)
			return
		}
	}
}

// until waits for a change, or for a pause. It returns false if it is too late.
func until(ctx context.Context, changed <-chan struct{}, pause time.Duration, late <-chan time.Time) bool {
	over := time.NewTimer(pause)
	defer over.Stop()
	select {
	case <-changed:
	case <-over.C:
	case <-late:
		return false
	case <-ctx.Done():
		return false
	}
	return ctx.Err() == nil
}

// A view is what is known of the partition of a request.
type view struct {
	partition int
	door      *door // open to this request, nil unless this process owns the partition
	owner     partition.Member
	planned   bool // there is an owner, or will be
	err       error
	changed   <-chan struct{}
}

func (o *Router) look(key string) view {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	v := view{err: o.err, changed: o.changed}
	if o.size == 0 {
		return v
	}
	v.partition = partition.Of(key, o.size)
	if d := o.doors[v.partition]; d != nil && d.lease.Context().Err() == nil && d.lease.Remaining() > 0 {
		d.inside.Add(1)
		v.door = d
	}
	if o.err == nil {
		v.owner, v.planned = o.state.Owner(v.partition)
	}
	return v
}

// try serves or forwards the request. Otherwise it returns why not, and whether that is
// the answer.
func (t *trip) try(w http.ResponseWriter, v view) (refused *refusal, final bool) {
	self := v.owner.ID == t.g.ID()
	switch {
	case v.door != nil:
		t.enter(w, v.door)
		return nil, true
	case t.forwarded:
		return &refusal{http.StatusServiceUnavailable, "this process does not own the partition, although another one forwarded the request to it", nil}, v.planned && !self
	case v.err != nil:
		return &refusal{http.StatusServiceUnavailable, "the owners are not known", v.err}, false
	case !v.planned:
		return &refusal{http.StatusServiceUnavailable, "no member owns the partition", nil}, false
	case self:
		return &refusal{http.StatusServiceUnavailable, "this process is to own the partition, and does not yet", nil}, false
	}
	target, err := address(v.owner.Value)
	if err != nil {
		return &refusal{http.StatusBadGateway, "the owner has published no address", fmt.Errorf("%q: %w", v.owner.ID, err)}, true
	}
	return t.forward(w, target, partition.Election(t.g.Name(), v.partition))
}

// enter serves the request in this process. Its context ends with the lease, which may be
// long after the worker was told to stop.
func (t *trip) enter(w http.ResponseWriter, d *door) {
	defer d.inside.Done()
	r := t.parcel.next()
	ctx, cancel := context.WithCancelCause(context.WithValue(r.Context(), insideKey{}, t.g))
	defer cancel(nil)
	defer context.AfterFunc(d.lease.Context(), func() {
		for {
			left := d.lease.Remaining()
			if left == 0 {
				cancel(d.lease.Check())
			}
			if !until(ctx, nil, min(left, longestPause), nil) {
				return
			}
		}
	})()
	t.local(w, r.WithContext(ctx), d.lease)
}

var errNotOwner = errors.New("it does not own the partition")

// forward sends the request to another process.
func (t *trip) forward(w http.ResponseWriter, target *url.URL, election string) (refused *refusal, final bool) {
	t.parcel.hold()
	var written atomic.Bool // to some connection: net/http may have repeated it after that
	trace := &httptrace.ClientTrace{WroteHeaders: func() { written.Store(true) }}
	proxy := httputil.ReverseProxy{
		Transport: t.transport,
		Rewrite:   func(p *httputil.ProxyRequest) { rewrite(p, target, election) },
		ModifyResponse: func(answer *http.Response) error {
			if answer.StatusCode == http.StatusServiceUnavailable && answer.Header.Get(refusedHeader) == t.g.Name() {
				return errNotOwner
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			switch {
			case errors.Is(err, errNotOwner):
				refused = &refusal{http.StatusServiceUnavailable, "the member that is to own the partition does not yet", nil}
			case unsent(err) && !(written.Load() && t.parcel.idempotent()):
				refused = &refusal{http.StatusServiceUnavailable, "the owner cannot be reached", err}
			default:
				refused = &refusal{http.StatusBadGateway, "the owner did not answer", err}
				final = t.broke != nil || !t.parcel.idempotent()
				t.broke = refused
			}
		},
	}
	r := t.parcel.next()
	proxy.ServeHTTP(w, r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	return refused, final || !t.parcel.whole()
}
