package electorhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/electorhttp"
	"github.com/elector-go/elector/partition"
)

// A worker returns after Linger has passed: other processes may not have seen yet that
// another one leads.
func serveLate(t *testing.T, wait time.Duration) {
	w := newTown(t)
	a, b := w.build("a"), w.build("b")
	a.o.Wait = wait
	least := 5500 * time.Millisecond // a second after the last request
	if wait < 0 {
		least = 5 * time.Second // a second in all
	}
	a.work = func(ctx context.Context, _ *elector.Lease) error {
		<-ctx.Done()
		time.Sleep(4 * time.Second)
		return nil
	}
	stop := w.open(a)
	await(t, "a leads", leads(a))
	w.open(b)
	await(t, "b is ready", func() bool { return w.isReady(b) })
	start := time.Now()
	go func() {
		time.Sleep(4*time.Second + 500*time.Millisecond)
		r, err := http.NewRequest("POST", "http://a:1/", nil)
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("Elector-Forwarded", a.e.Name())
		answer, err := w.client.Do(r)
		if err != nil {
			t.Error(err)
			return
		}
		if answer.Body.Close(); answer.StatusCode != http.StatusServiceUnavailable {
			t.Error("it answers a request that another process has forwarded with", answer.StatusCode)
		}
	}()
	if err := stop(); err != nil || time.Since(start) < least || time.Since(start) > least+100*time.Millisecond {
		t.Errorf("it returns after %v: %v", time.Since(start), err)
	}
}

// A member of a group stops while it gets requests.
func serveGroup(t *testing.T) {
	w := newTown(t)
	var mutex sync.Mutex
	served := map[string]int{}
	start := func(id string) (p *pipes, stop func() error) {
		p = w.listen(id + ":1")
		g, err := partition.New(w.store.Handle(), "orders", &partition.Options{Partitions: partitions, Elector: elector.Options{ID: id, Value: p.address, Logger: quiet}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { g.Close() })
		r := electorhttp.Route(t.Context(), g)
		r.Transport, r.Logger = w.transport(), quiet
		mux := http.NewServeMux()
		mux.Handle("GET /ready", r.Ready())
		mux.Handle("/", r.Forward(func(r *http.Request) string { return r.URL.Path }, func(_ http.ResponseWriter, r *http.Request, lease *partition.Lease) {
			time.Sleep(10 * time.Millisecond)
			if err := lease.Check(); err != nil {
				t.Error(err)
			}
			mutex.Lock()
			defer mutex.Unlock()
			served[r.URL.Path]++
		}))
		ctx, cancel := context.WithCancel(context.Background())
		done, err := make(chan struct{}), error(nil)
		go func() {
			defer close(done)
			err = r.Serve(ctx, &http.Server{Handler: mux}, p, nil)
		}()
		stop = func() error { cancel(); <-done; return err }
		t.Cleanup(func() { stop() })
		await(t, "a member is ready", func() bool { return w.isReady(&house{pipes: p}) })
		return p, stop
	}
	a, stop := start("a")
	b, _ := start("b")
	time.Sleep(time.Minute)
	stopped := make(chan error, 1)
	var all sync.WaitGroup
	sent := 0
	send := func(to *pipes) {
		path := fmt.Sprint("/", sent)
		sent++
		all.Go(func() {
			if _, err := w.post(&house{pipes: to}, path); err != nil {
				t.Errorf("%s to %s: %v", path, to.address, err)
			}
		})
	}
	for i := range 1000 {
		if i == 100 {
			go func() { stopped <- stop() }()
		}
		if i < 300 { // a lingers for three seconds
			send(a)
		}
		send(b)
		time.Sleep(10 * time.Millisecond)
		if i == 101 && w.isReady(&house{pipes: a}) {
			t.Error("a member that stops is ready")
		}
	}
	all.Wait()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	for i := range sent {
		if n := served[fmt.Sprint("/", i)]; n != 1 {
			t.Errorf("request %d was served %d times", i, n)
		}
	}
}
