package partition_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/electorhttp"
	"github.com/elector-go/elector/electortest"
	"github.com/elector-go/elector/internal/page"
	"github.com/elector-go/elector/partition"
)

// The code of docs/partitions.md runs.
func TestPage(t *testing.T) {
	page.Check(t, "../docs/partitions.md", 5, "usage_test.go", "../examples/partitions/hello/main.go", "../examples/partitions/consumer/main.go")
}

// A service works for tenants that come and go.
type service struct {
	list    func(ctx context.Context, partition int) (tenants []string, err error)
	changed func(ctx context.Context, partition int, tenants []string)       // waits until list returns others
	serve   func(ctx context.Context, tenant string, lease *partition.Lease) // until ctx ends
}

// work serves the tenants of a partition, and begins again when one comes or goes.
func (s *service) work(ctx context.Context, lease *partition.Lease) error {
	for ctx.Err() == nil {
		tenants, err := s.list(ctx, lease.Partition())
		if err != nil {
			return err // work is called again, after a pause
		}
		round, cancel := context.WithCancel(ctx)
		var all sync.WaitGroup
		for _, tenant := range tenants {
			all.Go(func() { s.serve(round, tenant, lease) })
		}
		s.changed(ctx, lease.Partition(), tenants)
		cancel()
		all.Wait() // the lease stays valid until work returns
	}
	return nil
}

// route serves orders at their owner, and forwards the other ones.
func route(ctx context.Context, mux *http.ServeMux, g *partition.Group) *electorhttp.Router {
	router := electorhttp.Route(ctx, g)
	byOrder := func(r *http.Request) string { return r.PathValue("order") }
	mux.Handle("/orders/{order}", router.Forward(byOrder, func(w http.ResponseWriter, r *http.Request, lease *partition.Lease) {
		if err := lease.Check(); err != nil { // before each side effect, as in a worker
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "order", r.PathValue("order"), "is served under", lease)
	}))
	return router // for router.Serve, or g.Run(ctx, router.Work(work))
}

func TestServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		g, err := partition.New(memory.New(), "orders", &partition.Options{Partitions: 3, Elector: elector.Options{Logger: slog.New(slog.DiscardHandler)}})
		if err != nil {
			t.Fatal(err)
		}
		mux, done := http.NewServeMux(), make(chan error)
		router := route(ctx, mux, g)
		go func() { done <- g.Run(ctx, router.Work(nil)) }()
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("POST", "/orders/7", nil)) // it waits for the first plan
		if w.Code != 200 || !strings.HasPrefix(w.Body.String(), "order 7 is served under partition ") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		stop()
		if err := errors.Join(<-done, g.Close()); err != nil {
			t.Error(err)
		}
	})
}

func TestTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTenants(t)
		s := service{db.list, db.changed, db.serve}
		g := electortest.NewGroup(t, "tenants", &partition.Options{Partitions: tenantPartitions})
		g.Join("a", s.work)
		b := g.Join("b", s.work)
		g.Balance()
		db.serves("acme", "bell", "cern", "dell")
		b.Crash() // a takes over, TTL*(1+ClockDrift) later
		g.Balance()
		db.serves("acme", "dell", "esso")
	})
}

const tenantPartitions = 8

// tenants is a table of tenants, with the leases under which each one is served.
type tenants struct {
	*testing.T
	mutex  sync.Mutex
	names  []string
	failed int
	served map[string][]*partition.Lease
}

func newTenants(t *testing.T) *tenants {
	return &tenants{T: t, served: map[string][]*partition.Lease{}}
}

func (d *tenants) list(_ context.Context, n int) (found []string, err error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.failed < 3 {
		d.failed++
		return nil, errors.New("the database does not answer")
	}
	for _, name := range d.names {
		if partition.Of(name, tenantPartitions) == n {
			found = append(found, name)
		}
	}
	return found, nil
}

// changed asks every 5 s.
func (d *tenants) changed(ctx context.Context, n int, tenants []string) {
	for now := tenants; slices.Equal(now, tenants) && ctx.Err() == nil; {
		select {
		case <-time.After(5 * time.Second):
			now, _ = d.list(ctx, n)
		case <-ctx.Done():
		}
	}
}

// serve fails the test if the tenant is also served under another valid lease.
func (d *tenants) serve(ctx context.Context, tenant string, lease *partition.Lease) {
	d.mutex.Lock()
	for _, other := range d.served[tenant] {
		if other.Check() == nil {
			d.Errorf("%s is served under %v and %v", tenant, other, lease)
		}
	}
	d.served[tenant] = append(d.served[tenant], lease)
	d.mutex.Unlock()
	<-ctx.Done()
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.served[tenant] = slices.DeleteFunc(d.served[tenant], func(other *partition.Lease) bool { return other == lease })
}

// serves changes the tenants, and fails the test unless these are served a minute later.
func (d *tenants) serves(names ...string) {
	d.Helper()
	d.mutex.Lock()
	d.names = names
	d.mutex.Unlock()
	time.Sleep(time.Minute)
	synctest.Wait()
	d.mutex.Lock()
	defer d.mutex.Unlock()
	var served []string
	for name, leases := range d.served {
		if len(leases) > 0 {
			served = append(served, name)
		}
	}
	slices.Sort(served)
	if got, want := strings.Join(served, " "), strings.Join(names, " "); got != want {
		d.Errorf("serves %s, want %s", got, want)
	}
}
