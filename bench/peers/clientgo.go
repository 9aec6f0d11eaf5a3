package peers

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/proof/stores"
)

// clientGo is client-go's leader election over a lock of ours on etcd, which is
// where Kubernetes keeps its own. The three times have the ratio of
// Kubernetes's 15, 10 and 2 s.
func clientGo(name string, release, timeout bool) Library {
	requests := "no timeout of requests, as rest.Config has it by default"
	if timeout {
		requests = "requests bounded by RenewDeadline/2 or 1 s, as NewFromKubeconfig does"
	}
	releases := "ReleaseOnCancel off, the default"
	if release {
		releases = "ReleaseOnCancel on"
	}
	return Library{
		Name:   name,
		Module: "k8s.io/client-go",
		Store:  stores.Etcd,
		Belief: "OnStartedLeading's context has not ended (it ends just before OnStoppedLeading; IsLeader says true longer)",
		Settings: "LeaseDuration is the TTL, RenewDeadline 2/3 and RetryPeriod 2/15 of it, as Kubernetes's 15, 10 and 2 s; " +
			releases + "; " + requests + "; over a lock of ours on elector's backend for etcd, since Kubernetes's API server is not here, so that its bytes are those of our record with its own in it",
		Slowest: func(ttl time.Duration) time.Duration {
			if timeout {
				return requestTimeout(ttl)
			}
			return renewDeadline(ttl)
		},
		Open: func(ctx context.Context, c Config) (Candidate, error) { return openClientGo(ctx, c, release, timeout) },
	}
}

func renewDeadline(ttl time.Duration) time.Duration  { return ttl * 2 / 3 }
func requestTimeout(ttl time.Duration) time.Duration { return max(renewDeadline(ttl)/2, time.Second) }

type clientGoCandidate struct {
	backend backends.Backend
	name    string
	elector *leaderelection.LeaderElector
	life    context.Context
	end     context.CancelFunc
	started chan context.Context // gets one
	began   atomic.Bool
	ran     chan struct{} // closed when Run, if it began, has returned
	leading atomic.Pointer[context.Context]
}

func openClientGo(ctx context.Context, c Config, release, timeout bool) (Candidate, error) {
	backend, err := backends.Open(ctx, c.URL)
	if err != nil {
		return nil, err
	}
	g := &clientGoCandidate{backend: backend, name: c.Name, started: make(chan context.Context, 1), ran: make(chan struct{})}
	g.life, g.end = context.WithCancel(quiet(context.Background()))
	g.elector, err = clientGoElector(backend, c, release, timeout, func(ctx context.Context) { g.leading.Store(&ctx); g.started <- ctx })
	if err != nil {
		g.end()
		return nil, errors.Join(err, backend.Close())
	}
	return g, nil
}

// RunClientGo takes part in one election as client-go/timeout+release does, over
// a backend that many elections may share. started is called in a goroutine of
// its own once the candidate leads; its context ends when it does not any more.
// RunClientGo blocks until then or until ctx ends; an error says that the settings
// cannot be used. Of c it looks at Name, ID and TTL.
func RunClientGo(ctx context.Context, backend backends.Backend, c Config, started func(context.Context)) error {
	e, err := clientGoElector(backend, c, true, true, started)
	if err != nil {
		return err
	}
	e.Run(quiet(ctx))
	return nil
}

// quiet keeps client-go from logging to standard error.
func quiet(ctx context.Context) context.Context { return klog.NewContext(ctx, klog.Logger{}) }

func clientGoElector(backend backends.Backend, c Config, release, timeout bool, started func(context.Context)) (*leaderelection.LeaderElector, error) {
	l := &lock{backend: backend, name: c.Name, id: c.ID, ttl: c.TTL}
	if timeout {
		l.timeout = requestTimeout(c.TTL)
	}
	return leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            l,
		LeaseDuration:   c.TTL,
		RenewDeadline:   renewDeadline(c.TTL),
		RetryPeriod:     c.TTL * 2 / 15,
		ReleaseOnCancel: release,
		Name:            c.Name,
		Callbacks:       leaderelection.LeaderCallbacks{OnStartedLeading: started, OnStoppedLeading: func() {}},
	})
}

func (g *clientGoCandidate) Campaign(ctx context.Context) error {
	g.began.Store(true)
	go func() { defer close(g.ran); g.elector.Run(g.life) }()
	select {
	case <-g.started:
		return nil
	case <-ctx.Done():
		g.end()
		return ctx.Err()
	}
}

func (g *clientGoCandidate) Leads() bool {
	ctx := g.leading.Load()
	return ctx != nil && (*ctx).Err() == nil
}

// IsLeader is client-go's other way to ask.
func (g *clientGoCandidate) IsLeader() bool { return g.elector.IsLeader() }

func (g *clientGoCandidate) Renewal() []byte { return []byte(g.name) }

// Resign tells the store only with ReleaseOnCancel; the record runs out
// otherwise.
func (g *clientGoCandidate) Resign(ctx context.Context) error {
	g.end()
	select {
	case <-g.ran:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close waits for Run, which tells the store if it is to.
func (g *clientGoCandidate) Close() error {
	g.end()
	if g.began.Load() {
		select {
		case <-g.ran:
		case <-time.After(closingTime):
		}
	}
	return g.backend.Close()
}

// A lock is client-go's lock on a backend of ours: its record is the value of a
// record of ours, and Update compares as the API server does by the resource
// version. Its methods are called by one goroutine at a time.
type lock struct {
	backend  backends.Backend
	name, id string
	ttl      time.Duration
	timeout  time.Duration // of each request; 0 for none
	seen     backends.Record
}

var resource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func (l *lock) request(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, l.timeout)
}

func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	ctx, cancel := l.request(ctx)
	defer cancel()
	r, err := l.backend.Load(ctx, l.name)
	if err != nil {
		return nil, nil, err
	}
	if !r.Exists() {
		return nil, nil, apierrors.NewNotFound(resource, l.name)
	}
	l.seen = r
	var is resourcelock.LeaderElectionRecord
	if err := json.Unmarshal([]byte(r.Value), &is); err != nil {
		return nil, nil, err
	}
	return &is, []byte(r.Value), nil
}

func (l *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.swap(ctx, backends.Record{}, r)
}

func (l *lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if !l.seen.Exists() {
		return errors.New("the lock was never read")
	}
	return l.swap(ctx, l.seen, r)
}

func (l *lock) swap(ctx context.Context, prev backends.Record, r resourcelock.LeaderElectionRecord) error {
	ctx, cancel := l.request(ctx)
	defer cancel()
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	next, err := l.backend.Swap(ctx, l.name, prev, backends.Record{
		Holder: r.HolderIdentity, Token: uint64(r.LeaderTransitions) + 1,
		TTL: l.ttl, RenewEvery: l.ttl / 3, // not looked at, but must be there
		Attempt: backends.Attempt{Nonce: rand.Text(), Sequence: 1},
		Value:   string(value),
	})
	if errors.Is(err, backends.ErrConflict) {
		return apierrors.NewConflict(resource, l.name, err)
	}
	if err == nil {
		l.seen = next
	}
	return err
}

func (l *lock) RecordEvent(string) {}
func (l *lock) Identity() string   { return l.id }
func (l *lock) Describe() string   { return fmt.Sprintf("%s for %s", l.name, l.id) }
