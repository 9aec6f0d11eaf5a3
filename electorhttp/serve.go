package electorhttp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/partition"
)

// Serve serves HTTP on a listener and runs the election, with [elector.Elector.Run] and
// Work, until ctx ends, Run returns, or the server fails. It then stops this process so
// that a deploy costs no request:
//
//  1. Ready fails, so that load balancers send no more requests; the priority becomes 0;
//     and the worker is told to stop, see Work. When it has returned and the requests
//     inside were served, this process resigns.
//  2. Requests are still served: they go to the next leader. That lasts Linger in all, at
//     least until no other process has forwarded a request here for a second, and for at
//     most Wait while requests wait here and this process has seen no other leader. Answers
//     ask clients to use another connection.
//  3. The server is shut down, which waits at most ShutdownTimeout for requests.
//
// So it may take ReleaseTimeout twice, and then Wait and ShutdownTimeout; longer if the worker
// or a handler goes on after its context has ended, such as one that has taken over its
// connection. The contexts that server.BaseContext returns must not end with ctx: the
// requests that wait would end too.
//
// Serve returns the error of
// Run, that of the server, unless it was shut down, and that of the shutdown, joined; nil
// if it was told to stop and all went well. It does not close the Elector.
//
// Serve calls work on its own goroutine: a panic passes through, and closes the server. The
// server and the listener belong to Serve. If ctx has ended at the call, Serve closes the
// listener and returns nil. Call Serve once, before the context of Observe ends.
func (o *Observer) Serve(ctx context.Context, server *http.Server, l net.Listener, work func(context.Context, *elector.Lease) error) error {
	worker := o.Work(work)
	return o.serve(ctx, server, l, service{
		run:  func(ctx context.Context) error { return o.e.Run(ctx, worker) },
		told: func() { o.e.SetPriority(0) },
		moved: func() bool {
			return o.err == nil && !o.leader.Vacant() && o.leader.ID != o.e.ID()
		},
		wait: waits(o.Wait, o.e.FailoverTime()), linger: o.Linger, timeout: o.ShutdownTimeout,
	})
}

// Serve is [Observer.Serve] for a member of a group: it runs the group with
// [partition.Group.Run]. This process lingers until other members own all partitions, or
// no request waits for that.
func (o *Router) Serve(ctx context.Context, server *http.Server, l net.Listener, work partition.Work) error {
	worker := o.Work(work)
	return o.serve(ctx, server, l, service{
		run:  func(ctx context.Context) error { return o.g.Run(ctx, worker) },
		told: func() {},
		moved: func() bool {
			for n := range o.size {
				if o.err != nil {
					return false
				}
				if owner, planned := o.state.Planned(n); !planned || owner.ID == o.g.ID() {
					return false
				}
			}
			return o.size > 0
		},
		wait: waits(o.Wait, o.g.FailoverTime()), linger: o.Linger, timeout: o.ShutdownTimeout,
	})
}

// A service is what a hub runs beside a server.
type service struct {
	run   func(context.Context) error // campaigns
	told  func()                      // is called when it is told to stop
	moved func() bool                 // others serve the requests; called with the mutex held

	wait            time.Duration // how long a request waits
	linger, timeout time.Duration // Linger and ShutdownTimeout of the Observer or the Router
}

func (h *hub) serve(ctx context.Context, server *http.Server, l net.Listener, s service) error {
	defer h.stop()
	kept := h.keep()
	switch {
	case ctx.Err() != nil:
		return l.Close()
	case !kept:
		return errors.Join(errors.New("electorhttp: Serve was called after the context of Observe or Route had ended, or twice"), l.Close())
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var told time.Time
	stop := sync.OnceFunc(func() {
		told = time.Now()
		h.set(func() { h.stopping = true })
		s.told()
		cancel()
	})
	defer stop()
	defer context.AfterFunc(ctx, stop)()

	server.Handler = h.leaving(server.Handler)
	served, ended := make(chan struct{}), error(nil)
	go func() {
		defer close(served)
		ended = server.Serve(l)
		stop()
	}()
	defer func() { // after a panic; otherwise it was shut down
		server.Close()
		<-served
	}()

	err := s.run(run)
	stop()
	h.linger(s, told, served)
	return errors.Join(err, s.shutdown(ctx, server), func() error {
		<-served
		if errors.Is(ended, http.ErrServerClosed) {
			return nil
		}
		return fmt.Errorf("electorhttp: serving HTTP: %w", ended)
	}())
}

// leaving returns the handler, which closes the connections of clients once the process
// was told to stop: they do not send another request just when the server is shut down.
func (h *hub) leaving(next http.Handler) http.Handler {
	if next == nil {
		next = http.DefaultServeMux
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mutex.Lock()
		stopping := h.stopping
		h.mutex.Unlock()
		if stopping && r.Header.Get("Upgrade") == "" {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// silence is for how long no request was forwarded to a process before it shuts its server
// down, but a process whose requests do not wait stays for no longer than that after it has
// resigned: other processes have seen then that it does not serve. One that had not would send a
// request just when its connection is closed, and could not tell whether that had an effect.
const silence = time.Second

// linger waits until requests need this process no longer: others have had the time to see
// that it stops and has resigned, and it has seen that they serve, or no request waits for
// that. It does not wait if it never was ready, or if the server has ended.
func (h *hub) linger(s service, told time.Time, served <-chan struct{}) {
	least, quiet := s.linger, silence
	switch {
	case least == 0:
		least = 3 * time.Second
	case least < 0:
		quiet = 0
	}
	least = max(0, least-time.Since(told))
	began, early, late := time.Now(), time.After(least), time.After(max(least, s.wait, quiet))
	tick := time.NewTicker(shortestPause)
	defer tick.Stop()
	for shown := false; ; {
		h.mutex.Lock()
		ready, changed, moved, came := h.seen, h.changed, s.moved(), h.came
		h.mutex.Unlock()
		if came.Before(began) {
			came = began
		}
		if !ready || shown && time.Since(came) >= quiet && (moved || h.waiting.Load() == 0) {
			return
		}
		select {
		case <-early:
			early, shown = nil, true
		case <-changed:
		case <-tick.C:
		case <-late:
			return
		case <-served:
			return
		}
	}
}

// shutdown shuts the server down.
func (s service) shutdown(ctx context.Context, server *http.Server) error {
	bound := s.timeout
	if bound <= 0 {
		bound = 10 * time.Second
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("electorhttp: requests were still served %v after the shutdown of the server began: %w", bound, err), server.Close())
	}
	return nil
}
