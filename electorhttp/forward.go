package electorhttp

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/elector-go/elector"
)

// forwardedHeader is in each forwarded request, with the name of the election, which may
// be that of a partition.
const forwardedHeader = "Elector-Forwarded"

// forwarded reports whether a request was forwarded for such an election. A proxy may have
// joined the values of several headers.
func forwarded(r *http.Request, is func(election string) bool) bool {
	for election := range strings.SplitSeq(strings.Join(r.Header.Values(forwardedHeader), ","), ",") {
		if is(strings.TrimSpace(election)) {
			return true
		}
	}
	return false
}

// An Observer knows who leads an election, as [elector.Elector.Observe] saw it
// last. Set its fields before you call Forward.
type Observer struct {
	// Transport makes the forwarded requests. Nil means one with the settings of
	// http.DefaultTransport, but without a proxy.
	Transport http.RoundTripper

	// Logger gets a line for each request that could not be forwarded, with the
	// reason, except for those that found no leader. Nil means slog.Default().
	Logger *slog.Logger

	e *elector.Elector

	mutex  sync.Mutex
	leader elector.Leader
	err    error // why leader is not known
	seen   bool  // leader was known once
	ended  bool
}

// Observe starts to observe e's election, in one goroutine that ends when ctx ends
// or e is closed. It returns at once, and costs what [elector.Elector.Observe]
// costs. After an error that trying again does not help, such as
// [elector.ErrDenied], the leader is unknown, and the Observer tries again every
// five seconds.
func Observe(ctx context.Context, e *elector.Elector) *Observer {
	o := &Observer{e: e, err: errors.New("who leads is not known yet")}
	go func() {
		defer o.end()
		follow(ctx, e.Observe, o.set)
	}()
	return o
}

// pause is the time between two tries after an error that trying again does not
// help.
const pause = 5 * time.Second

// follow calls set with all that observe yields, until ctx ends or what is observed is
// closed.
func follow[T any](ctx context.Context, observe func(context.Context) iter.Seq2[T, error], set func(T, error)) {
	for {
		var last error
		for seen, err := range observe(ctx) {
			last = err
			set(seen, err)
		}
		if ctx.Err() != nil || errors.Is(last, elector.ErrClosed) {
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

func (o *Observer) set(l elector.Leader, err error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.leader, o.err, o.seen = l, err, o.seen || err == nil
}

func (o *Observer) end() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.ended, o.err = true, errors.New("this process has stopped to observe the election")
}

// Forward returns a handler that calls local while this process leads, and
// otherwise forwards the request to the address that the leader has published in
// [elector.Options.Value]: a URL with http or https, such as
// https://node-1:8443/base, or host:port, which means http. The request keeps its
// Host, its path follows that of the URL, X-Forwarded-For gets the client, and
// Elector-Forwarded the name of the election.
//
// Forward does not ask the store, and blocks only on local and on the leader. Its
// own answers are:
//
//   - 503 with Retry-After, and the request had no effect: the election has no
//     leader, or nothing is known of it yet; the leader cannot be connected to;
//     or the request was forwarded already, and this process does not lead, or no
//     longer. So no request goes in a circle.
//   - 502: the published value is no address; or the leader did not answer, and
//     may have acted on the request.
//
// Who leads is known as Observe saw it last. While this process cannot reach the
// store, that may be long ago: a former leader that gets the request answers 503.
// Another service may have got its address meanwhile: use https where that
// matters. A lease can end at any time after Forward has called local, so local
// checks it, see [elector.Lease.Check].
func (o *Observer) Forward(local http.Handler) http.Handler {
	transport := o.Transport
	if transport == nil {
		transport = direct()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := o.e.Token(); err == nil {
			local.ServeHTTP(w, r)
			return
		}
		target, refused := o.target(r)
		if refused != nil {
			o.refuse(w, r, refused)
			return
		}
		proxy := httputil.ReverseProxy{
			Transport: transport,
			Rewrite:   func(p *httputil.ProxyRequest) { rewrite(p, target, o.e.Name()) },
			ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
				o.refuse(w, r, failed(err))
			},
		}
		proxy.ServeHTTP(w, r)
	})
}

func direct() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	t = t.Clone()
	t.Proxy = nil
	return t
}

// A refusal is an answer to a request that was not served. Clients see the text,
// the log also has the reason, which may contain addresses.
type refusal struct {
	code int
	text string
	err  error
}

// target returns where to forward a request.
func (o *Observer) target(r *http.Request) (*url.URL, *refusal) {
	if forwarded(r, func(election string) bool { return election == o.e.Name() }) {
		return nil, &refusal{http.StatusServiceUnavailable, "this process does not lead, although another one forwarded the request to it", nil}
	}
	o.mutex.Lock()
	l, err := o.leader, o.err
	o.mutex.Unlock()
	switch {
	case err != nil:
		return nil, &refusal{http.StatusServiceUnavailable, "the leader is not known", err}
	case l.Vacant():
		return nil, &refusal{http.StatusServiceUnavailable, "there is no leader", nil}
	}
	u, err := address(l.Value)
	if err != nil {
		return nil, &refusal{http.StatusBadGateway, "the leader has published no address", fmt.Errorf("%q: %w", l.ID, err)}
	}
	return u, nil
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

// rewrite makes the request that the leader of an election gets.
func rewrite(p *httputil.ProxyRequest, target *url.URL, election string) {
	p.SetURL(target)
	p.Out.Host = p.In.Host
	p.Out.Header.Add(forwardedHeader, election)
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

// failed returns the answer to a request that could not be forwarded.
func failed(err error) *refusal {
	if unsent(err) {
		return &refusal{http.StatusServiceUnavailable, "the leader cannot be reached", err}
	}
	return &refusal{http.StatusBadGateway, "the leader did not answer", err}
}

// unsent reports whether a request that failed was certainly not sent.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

func (o *Observer) refuse(w http.ResponseWriter, r *http.Request, f *refusal) {
	refuse(w, r, o.Logger, "election", o.e.Name(), f)
}

// refuse answers a request that was not served. Kind and name are those of the election
// or the group.
func refuse(w http.ResponseWriter, r *http.Request, logger *slog.Logger, kind, name string, f *refusal) {
	if f.err != nil && r.Context().Err() == nil { // the client has not gone
		if logger == nil {
			logger = slog.Default()
		}
		logger.WarnContext(r.Context(), "elector: did not forward a request: "+f.text, kind, name, "error", f.err)
	}
	w.Header().Set("Cache-Control", "no-store")
	if f.code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	http.Error(w, fmt.Sprintf("%s %q: %s", kind, name, f.text), f.code)
}
