//go:build kubernetes

package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/elector-go/elector"
	_ "github.com/elector-go/elector/backends/kubernetes"
	"github.com/elector-go/elector/integrations/electorcontroller"
	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/child"
)

// A form is a way to elect the manager that works.
type form string

const (
	run      form = "electorcontroller.Run"
	lock     form = "electorcontroller.Lock"
	clientGo form = "client-go's LeaseLock"
)

// candidateVariable makes this program a candidate.
const candidateVariable = "ELECTOR_CONTROLLERS_CANDIDATE"

// A task tells a candidate what to do.
type task struct {
	Form        form
	ID          string
	Name        string // of the election, and of the ConfigMap that its reconciler writes
	TTL         time.Duration
	URL         string // of the election's store, through the candidate's proxy
	Election    string // host and port of the API server for client-go's lock, the proxy's too
	API         string // host and port for all else
	Namespace   string
	CA, TokenAt string // files
}

// A message is a line that a candidate prints.
type message struct {
	Kind     string
	From, To time.Duration `json:",omitzero"` // of a run
	Error    string        `json:",omitempty"`
}

const (
	starts = "starts" // the manager, or the campaign for one
	began  = "began"  // it believes that it leads
	ran    = "ran"    // it believed so from, to
	over   = "over"   // it does not any more
	failed = "failed" // it ends with an error
)

// candidate runs until its input ends, or the manager has stopped because of a loss.
func candidate(t task) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	out := json.NewEncoder(os.Stdout)
	var mutex sync.Mutex
	print := func(m message) {
		mutex.Lock()
		defer mutex.Unlock()
		out.Encode(m)
	}
	b := &belief{print: print}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		b.end()
		os.Exit(0) // the store may be out of reach
	}()
	defer stop()
	err := t.run(ctx, b, print)
	b.end()
	print(message{Kind: failed, Error: fmt.Sprint(err)})
	io.Copy(io.Discard, os.Stdin)
}

func (t task) run(ctx context.Context, b *belief, print func(message)) error {
	if t.Form == clientGo {
		mgr, err := t.manager(b, func() error { return nil }, func(o *manager.Options) {
			o.LeaderElection = true
			o.LeaderElectionConfig = t.config(t.Election)
			o.LeaderElectionNamespace, o.LeaderElectionID = t.Namespace, t.Name
			renew, retry := t.TTL*2/3, t.TTL*2/15
			o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = &t.TTL, &renew, &retry
		})
		if err != nil {
			return err
		}
		print(message{Kind: starts})
		return mgr.Start(ctx)
	}
	e, err := elector.Open(ctx, t.URL, t.Name, &elector.Options{ID: t.ID, TTL: t.TTL})
	if err != nil {
		return err
	}
	print(message{Kind: starts})
	forever := time.Duration(-1)
	if t.Form == lock {
		l := electorcontroller.NewLock(e)
		check := func() error { _, err := l.Lease(); return err }
		mgr, err := t.manager(b, check, func(o *manager.Options) {
			o.LeaderElection, o.LeaderElectionResourceLockInterface = true, l
			o.GracefulShutdownTimeout = &forever
		})
		if err != nil {
			return err
		}
		return l.Start(ctx, mgr.Start)
	}
	return electorcontroller.Run(ctx, e, func(ctx context.Context, lease *elector.Lease) error {
		mgr, err := t.manager(b, lease.Check, func(o *manager.Options) { o.GracefulShutdownTimeout = &forever })
		if err != nil {
			return err
		}
		return mgr.Start(ctx)
	})
}

func (t task) config(host string) *rest.Config {
	return &rest.Config{Host: "https://" + host, BearerTokenFile: t.TokenAt, TLSClientConfig: rest.TLSClientConfig{CAFile: t.CA}, QPS: 1000, Burst: 1000}
}

// writeEvery is how long a reconciler waits between two writes.
const writeEvery = 20 * time.Millisecond

// manager makes a manager with a reconciler that writes all the time.
func (t task) manager(b *belief, check func() error, adjust func(*manager.Options)) (manager.Manager, error) {
	o := manager.Options{
		Metrics:    server.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{t.Namespace: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	}
	adjust(&o)
	mgr, err := manager.New(t.config(t.API), o)
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(manager.RunnableFunc(b.watch)); err != nil {
		return nil, err
	}
	mine := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == t.Name })
	return mgr, ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).WithEventFilter(mine).Complete(reconciler{t.ID, mgr, check})
}

// A reconciler writes its name into an object, again and again.
type reconciler struct {
	id    string
	mgr   manager.Manager
	check func() error
}

func (r reconciler) Reconcile(ctx context.Context, q ctrl.Request) (ctrl.Result, error) {
	again := ctrl.Result{RequeueAfter: writeEvery}
	var object corev1.ConfigMap
	if err := r.mgr.GetAPIReader().Get(ctx, q.NamespacedName, &object); err != nil {
		return again, client.IgnoreNotFound(err)
	}
	if object.Data == nil {
		object.Data = map[string]string{}
	}
	object.Data[writersKey] = appended(object.Data[writersKey], r.id)
	// Between the read and the write: a pause after the check leaves a resource version
	// that the next leader's first write makes stale.
	if r.check() != nil {
		return again, nil
	}
	err := r.mgr.GetClient().Update(ctx, &object)
	if apierrors.IsConflict(err) || errors.Is(err, context.Canceled) {
		err = nil
	}
	return again, err
}

// writersKey is where an object has the list of its writers: "a 12,b 3,a 1".
const writersKey = "writers"

// appended returns the list of writers with another write.
func appended(list, id string) string {
	all := writers(list)
	if last := len(all) - 1; last >= 0 && all[last].id == id {
		all[last].writes++
	} else {
		all = append(all, writer{id, 1})
	}
	var b []string
	for _, w := range all {
		b = append(b, w.id+" "+strconv.Itoa(w.writes))
	}
	return strings.Join(b, ",")
}

// A writer is how many writes in a row a candidate made.
type writer struct {
	id     string
	writes int
}

func writers(list string) (all []writer) {
	for w := range strings.SplitSeq(list, ",") {
		if id, n, ok := strings.Cut(w, " "); ok {
			writes, _ := strconv.Atoi(n)
			all = append(all, writer{id, writes})
		}
	}
	return all
}

// A belief samples whether the context of the manager's work has not ended.
type belief struct {
	print func(message)

	mutex    sync.Mutex
	now      bool
	from, to time.Duration
}

const (
	sampleEvery = 5 * time.Millisecond
	stopped     = 100 * time.Millisecond // a gap between samples in which the process did not run
)

// watch is a Runnable of the leader.
func (b *belief) watch(ctx context.Context) error {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		asked := history.BootTime()
		if ctx.Err() != nil {
			b.end()
			return nil
		}
		b.yes(asked, history.BootTime())
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// yes notes a sample. Only what is sure counts: from an answer to a question.
func (b *belief) yes(asked, answered time.Duration) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	switch {
	case !b.now:
		b.now, b.from, b.to = true, answered, asked
		b.print(message{Kind: began})
	case asked > b.to+stopped:
		b.tell()
		b.from, b.to = answered, asked
	default:
		b.to = asked
	}
}

func (b *belief) end() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.now {
		b.tell()
		b.now = false
		b.print(message{Kind: over})
	}
}

func (b *belief) tell() {
	if b.to > b.from {
		b.print(message{Kind: ran, From: b.from, To: b.to})
	}
}

// isCandidate makes this process a candidate, if it was started for that.
func isCandidate() bool {
	var t task
	is, err := child.Task(candidateVariable, &t)
	if err != nil {
		panic(err)
	}
	if is {
		candidate(t)
	}
	return is
}
