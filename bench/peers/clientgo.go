package peers

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/elector-go/elector/internal/proof/stores"
)

var kuberneteses = []Library{
	electorOn(stores.Kubernetes),
	clientGo("client-go", false, false),
	clientGo("client-go/release", true, false),
	clientGo("client-go/timeout", false, true),
	clientGo("client-go/timeout+release", true, true),
}

// clientGo is client-go's leader election over its own LeaseLock. The three times
// have the ratio of Kubernetes's 15, 10 and 2 s.
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
		Store:  stores.Kubernetes,
		Belief: "OnStartedLeading's context has not ended (it ends just before OnStoppedLeading; IsLeader says true longer)",
		Settings: "LeaseLock; LeaseDuration is the TTL, RenewDeadline 2/3 and RetryPeriod 2/15 of it, as Kubernetes's 15, 10 and 2 s; " +
			releases + "; " + requests + "; no limit of the client's own on its requests (QPS), JSON",
		Slowest: func(ttl time.Duration) time.Duration {
			if timeout {
				return requestTimeout(ttl)
			}
			return renewDeadline(ttl)
		},
		Open: func(_ context.Context, c Config) (Candidate, error) { return openClientGo(c, release, timeout) },
	}
}

func renewDeadline(ttl time.Duration) time.Duration  { return ttl * 2 / 3 }
func requestTimeout(ttl time.Duration) time.Duration { return max(renewDeadline(ttl)/2, time.Second) }

type clientGoCandidate struct {
	name    string
	elector *leaderelection.LeaderElector
	life    context.Context
	end     context.CancelFunc
	started chan context.Context // gets one
	began   atomic.Bool
	ran     chan struct{} // closed when Run, if it began, has returned
	leading atomic.Pointer[context.Context]
}

func openClientGo(c Config, release, timeout bool) (Candidate, error) {
	client, err := LeaseClient(c.URL, c.TTL, timeout)
	if err != nil {
		return nil, err
	}
	g := &clientGoCandidate{name: leaseName(c.Name), started: make(chan context.Context, 1), ran: make(chan struct{})}
	g.life, g.end = context.WithCancel(quiet(context.Background()))
	g.elector, err = clientGoElector(client, c, release, func(ctx context.Context) { g.leading.Store(&ctx); g.started <- ctx })
	if err != nil {
		g.end()
		return nil, err
	}
	return g, nil
}

// namespace is that of the Leases, as in the URLs of package stores.
const namespace = "suite"

// leaseName is an election's name as Kubernetes allows it.
func leaseName(election string) string { return strings.ReplaceAll(election, "_", "-") }

// LeaseClient connects to the API server of a URL without TLS, as Start makes it, for
// one or many elections.
func LeaseClient(rawURL string, ttl time.Duration, timeout bool) (coordinationv1.LeasesGetter, error) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Query().Get("tls") != "false" {
		return nil, fmt.Errorf("not a URL of an API server without TLS: %q", rawURL)
	}
	config := &rest.Config{Host: "http://" + u.Host, QPS: -1}
	if timeout {
		config.Timeout = requestTimeout(ttl)
	}
	return coordinationv1.NewForConfig(config)
}

// RunClientGo takes part in one election as client-go/timeout+release does, over
// a client of LeaseClient that many elections may share. started is called in a
// goroutine of its own once the candidate leads; its context ends when it does not
// any more. RunClientGo blocks until then or until ctx ends. It fails only if the
// settings cannot be used. Of c it uses Name, ID and TTL.
func RunClientGo(ctx context.Context, client coordinationv1.LeasesGetter, c Config, started func(context.Context)) error {
	e, err := clientGoElector(client, c, true, started)
	if err != nil {
		return err
	}
	e.Run(quiet(ctx))
	return nil
}

// quiet keeps client-go from logging to standard error.
func quiet(ctx context.Context) context.Context { return klog.NewContext(ctx, klog.Logger{}) }

func clientGoElector(client coordinationv1.LeasesGetter, c Config, release bool, started func(context.Context)) (*leaderelection.LeaderElector, error) {
	return leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: leaseName(c.Name), Namespace: namespace},
			Client:     client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: c.ID},
		},
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
			return errors.New("client-go's Run has not returned")
		}
	}
	return nil
}
