package electorhttp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// forwardedHeader is in each forwarded request, with the name of the election, which may
// be that of a partition.
const forwardedHeader = "Elector-Forwarded"

// tryHeader is in each forwarded request, with a text that no other try has. The process
// that serves the request removes it: a handler cannot pass it on.
const tryHeader = "Elector-Try"

// refusedHeader is in the answer of a process that did not serve a forwarded request, with
// the text of its tryHeader.
const refusedHeader = "Elector-Refused"

// A forwarder is a handler of an Observer or a Router.
type forwarder struct {
	*words
	*hub
	name      string // of the election or the group
	transport http.RoundTripper
	logger    *slog.Logger
	wait      time.Duration
	stays     bool // nothing is forwarded
	refusals  refusals

	forwarded func(election string) bool // reports whether a header names one of these
	look      func(*http.Request) func() view
	local     func(http.ResponseWriter, *http.Request, lease)
}

// words are the texts for an election, or for a group.
type words struct {
	kind string

	// With an error, so that they are logged.
	unknown   string
	noAddress string
	unreached string
	silent    string

	vacant   string
	notYet   string // said by this process
	notThere string // said by another one
	notHere  string
}

// A view is what is known of who serves a request.
type view struct {
	door     *door  // open to this request, nil unless this process serves it
	election string // its name, which may be that of a partition
	planned  bool   // there is a leader, or will be
	self     bool   // that is this process
	paused   bool   // there will be none until a person ends that
	id       string // of the leader
	value    string // that it has published
	err      error  // why this is not known
	changed  <-chan struct{}
}

// The least and the most that a request waits by default. A body that a client has announced
// gets the least too, whatever Wait is.
const (
	shortestWait = 10 * time.Second
	longestWait  = time.Minute
)

// waits returns how long a request waits at most, for a field Wait and the time that a crash
// takes: by default for that and two seconds.
func waits(field, failover time.Duration) time.Duration {
	if field == 0 {
		return min(max(shortestWait, failover+2*time.Second), longestWait)
	}
	return max(0, field)
}

// transport returns what makes the forwarded requests, for a field Transport.
func transport(field http.RoundTripper) http.RoundTripper {
	if field != nil {
		return field
	}
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	t = t.Clone()
	t.Proxy = nil
	t.DialContext = (&net.Dialer{Timeout: 2 * time.Second}).DialContext
	t.MaxIdleConnsPerHost = t.MaxIdleConns // almost all go to one host
	return t
}

// names reports whether a request was forwarded for such an election. A proxy may have
// joined the values of several headers.
func names(r *http.Request, is func(election string) bool) bool {
	for election := range strings.SplitSeq(strings.Join(r.Header.Values(forwardedHeader), ","), ",") {
		if is(strings.TrimSpace(election)) {
			return true
		}
	}
	return false
}

func (f *forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t := &trip{forwarder: f, look: f.look(r), parcel: parcel{request: r}, over: time.Now().Add(max(shortestWait, f.wait))}
	if t.forwarded = names(r, f.forwarded); t.forwarded {
		f.mutex.Lock()
		f.came = time.Now()
		f.mutex.Unlock()
	}
	t.serve(w)
}

// A trip is a request on its way to the leader.
type trip struct {
	*forwarder
	look      func() view
	forwarded bool     // by another process
	broke     *refusal // a connection, after the request may have been sent
	parcel    parcel
	over      time.Time // by then the client must have sent a body that is held
}

// A refusal is an answer to a request that was not served. Clients see the text,
// the log also has the reason, which may contain addresses.
type refusal struct {
	code int
	text string
	err  error
}

// unsentBody is the answer to a client that withholds the body of its request.
var unsentBody = &refusal{http.StatusRequestTimeout, "the client did not send the body of its request", nil}

// The pauses between two tries, unless something changes before.
const (
	shortestPause = 50 * time.Millisecond
	longestPause  = time.Second
)

// mostWaiting is how many requests wait in a process at most, for all its handlers of an
// election or a group. Each one has a goroutine, a connection and at most maxHeld of
// its body. One whose body has not come yet does not count.
const mostWaiting = 1000

// serve tries until the request is answered, cannot be repeated, or has waited too long.
func (t *trip) serve(w http.ResponseWriter) {
	r := t.parcel.request
	late := time.NewTimer(t.wait)
	defer late.Stop()
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		v := t.look()
		refused, final := t.try(w, v)
		if refused == nil {
			return
		}
		waits := t.wait > 0 && !final
		if waits && !t.parcel.hold(w, t.over) { // net/http sees that the client has gone only once the body was read
			refused, waits = unsentBody, false
		}
		if waits && pause == shortestPause { // a place is for those that can be served
			waits = t.waiting.Add(1) <= mostWaiting
			defer t.waiting.Add(-1)
		}
		waits = waits && until(r.Context(), v.changed, pause, late.C)
		if !waits {
			if t.broke != nil { // the request may have had an effect, whatever came later
				refused = t.broke
			}
			if id := r.Header.Get(tryHeader); t.forwarded && id != "" {
				w.Header().Set(refusedHeader, id)
			}
			t.refuse(w, r, refused)
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

// try serves or forwards the request. Otherwise it returns why not, and whether that is
// the answer.
func (t *trip) try(w http.ResponseWriter, v view) (refused *refusal, final bool) {
	const none = http.StatusServiceUnavailable
	switch {
	case v.door != nil:
		t.enter(w, v.door)
		return nil, true
	case t.forwarded:
		return &refusal{none, t.notHere + ", although another one forwarded the request to it", nil}, v.planned && !v.self
	case v.err != nil:
		return &refusal{none, t.unknown, v.err}, false
	case v.paused:
		return &refusal{none, "it is paused", nil}, true
	case !v.planned:
		return &refusal{none, t.vacant, nil}, false
	case v.self:
		return &refusal{none, t.notYet, nil}, false
	case t.stays:
		return &refusal{none, t.notHere, nil}, true
	}
	target, err := address(v.value)
	if err != nil {
		return &refusal{http.StatusBadGateway, t.noAddress, fmt.Errorf("%q: %w", v.id, err)}, true
	}
	return t.forward(w, target, v.election)
}

// enter serves the request in this process. Its context ends with the lease, which may be
// long after the worker was told to stop.
func (t *trip) enter(w http.ResponseWriter, d *door) {
	defer d.inside.Done()
	r := t.parcel.next()
	ctx, cancel := context.WithCancelCause(r.Context())
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
	r = r.WithContext(ctx)
	if r.Header[tryHeader] != nil {
		r.Header = r.Header.Clone()
		r.Header.Del(tryHeader)
	}
	t.local(w, r, d.lease)
}

var errRefused = errors.New("it does not lead")

// forward sends the request to another process.
func (t *trip) forward(w http.ResponseWriter, target *url.URL, election string) (refused *refusal, final bool) {
	if !t.parcel.hold(w, t.over) {
		return unsentBody, true
	}
	id := rand.Text()
	var written atomic.Int32 // to connections: net/http may have repeated it
	trace := &httptrace.ClientTrace{WroteHeaders: func() { written.Add(1) }}
	proxy := httputil.ReverseProxy{
		Transport: t.transport,
		Rewrite:   func(p *httputil.ProxyRequest) { rewrite(p, target, election, id) },
		ModifyResponse: func(answer *http.Response) error {
			if answer.StatusCode == http.StatusServiceUnavailable && answer.Header.Get(refusedHeader) == id {
				return errRefused
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			switch {
			case errors.Is(err, errRefused):
				refused = &refusal{http.StatusServiceUnavailable, t.notThere, nil}
				if written.Load() > 1 && t.parcel.idempotent() {
					t.broke = &refusal{http.StatusBadGateway, t.silent, errors.New("a connection broke, and then " + t.notThere)}
				}
			case unsent(err) && !(written.Load() > 0 && t.parcel.idempotent()):
				refused = &refusal{http.StatusServiceUnavailable, t.unreached, err}
			default:
				refused = &refusal{http.StatusBadGateway, t.silent, err}
				final = t.broke != nil || !t.parcel.idempotent()
				t.broke = refused
			}
		},
	}
	r := t.parcel.next()
	proxy.ServeHTTP(w, r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	return refused, !t.parcel.back() || final
}

// address parses what a leader has published. Its error does not repeat the value.
func address(value string) (*url.URL, error) {
	text, bare := value, !strings.Contains(value, "://")
	if bare {
		text = "http://" + value
	}
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
	case u.User != nil, strings.ContainsAny(text, "?#"):
	case strings.Contains(u.Hostname(), ":") && u.Host[0] != '[':
	case bare && (u.Port() == "" || u.Path != ""):
	default:
		if _, err := strconv.ParseUint(u.Port(), 10, 16); err == nil || !strings.HasSuffix(u.Host, ":"+u.Port()) {
			return u, nil
		}
	}
	return nil, errors.New("its Value is neither a URL with http or https nor host:port")
}

// rewrite makes the request that the leader of an election gets in a try.
func rewrite(p *httputil.ProxyRequest, target *url.URL, election, try string) {
	p.SetURL(target)
	p.Out.Host = p.In.Host
	p.Out.Header.Add(forwardedHeader, election)
	p.Out.Header.Set(tryHeader, try)
	// What a proxy before this one has set stays.
	for _, h := range []string{"Forwarded", "X-Forwarded-For"} {
		p.Out.Header[h] = p.In.Header[h]
	}
	p.SetXForwarded()
	for _, h := range []string{"X-Forwarded-Host", "X-Forwarded-Proto"} {
		if v := p.In.Header[h]; v != nil {
			p.Out.Header[h] = v
		}
	}
}

// unsent reports whether a request that failed was certainly not sent.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// refuse answers a request that was not served.
func (f *forwarder) refuse(w http.ResponseWriter, r *http.Request, refused *refusal) {
	if refused.err != nil && r.Context().Err() == nil { // the client has not gone
		f.report(r.Context(), refused)
	}
	w.Header().Set("Cache-Control", "no-store")
	switch refused.code {
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	case http.StatusRequestTimeout:
		w.Header().Set("Connection", "close") // it is past its deadline
	}
	http.Error(w, fmt.Sprintf("%s %q: %s", f.kind, f.name, refused.text), refused.code)
}
