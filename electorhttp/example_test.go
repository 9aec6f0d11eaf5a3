package electorhttp_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/electorhttp"
	"github.com/elector-go/elector/partition"
)

// Two processes serve the same API. A request to the one that follows gets to the
// one that leads.
func ExampleObserver_Forward() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	store := memory.NewStore()

	process := func(name string) (*httptest.Server, *elector.Elector) {
		mux := http.NewServeMux()
		server := httptest.NewServer(mux)
		e, err := elector.New(store.Handle(), "accounts", &elector.Options{ID: name, Value: server.URL})
		if err != nil {
			panic(err)
		}
		api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, name, "serves", r.URL.Path) })

		o := electorhttp.Observe(ctx, e)
		mux.Handle("GET /leader", electorhttp.Leader(e))
		mux.Handle("/", o.Forward(api))
		return server, e
	}
	one, leads := process("one")
	defer one.Close()
	two, follows := process("two")
	defer two.Close()
	if _, err := leads.Campaign(ctx); err != nil {
		panic(err)
	}
	fmt.Print(get(two.URL + "/transfer")) // waits until two has seen who leads
	leads.Close()
	follows.Close()
	// Output: one serves /transfer
}

// A service that a rolling deploy replaces. Its process leads, hands over when ctx ends,
// and serves until the next leader does.
func ExampleObserver_Serve() {
	ctx, stop := context.WithCancel(context.Background()) // or signal.NotifyContext
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	address := listener.Addr().String()
	e, err := elector.New(memory.New(), "accounts", &elector.Options{ID: "one", Value: address, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	o := electorhttp.Observe(ctx, e)
	o.Linger = 10 * time.Millisecond // there is no load balancer
	mux := http.NewServeMux()
	mux.Handle("GET /ready", o.Ready())
	mux.Handle("/", o.Forward(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lease := electorhttp.LeaseFrom(r.Context())
		if err := lease.Check(); err != nil { // before each side effect
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "served under the lease on", lease.Election())
	})))
	work := func(ctx context.Context, lease *elector.Lease) error {
		<-ctx.Done() // what only the leader does
		fmt.Println("the worker ends")
		return nil
	}

	done := make(chan error)
	go func() { done <- o.Serve(ctx, &http.Server{Handler: mux}, listener, work) }()
	fmt.Print(get("http://" + address + "/transfer")) // waits until this process leads
	stop()
	fmt.Println(<-done, e.Close())
	// Output:
	// served under the lease on accounts
	// the worker ends
	// <nil> <nil>
}

// One process is a member of a group, and another one forwards to it what belongs to its
// partitions.
func ExampleRouter_Forward() {
	ctx, stop := context.WithCancel(context.Background())
	store := memory.NewStore()
	byPath := func(r *http.Request) string { return r.URL.Path }

	process := func(name string, partitions int) (*httptest.Server, *partition.Group, *electorhttp.Router) {
		mux := http.NewServeMux()
		server := httptest.NewServer(mux)
		g, err := partition.New(store.Handle(), "orders", &partition.Options{
			Partitions: partitions, // 0: it only forwards
			Elector:    elector.Options{Value: server.URL, TTL: time.Second, Logger: slog.New(slog.DiscardHandler)},
		})
		if err != nil {
			panic(err)
		}
		router := electorhttp.Route(ctx, g)
		router.Wait = time.Minute
		mux.Handle("/", router.Forward(byPath, func(w http.ResponseWriter, r *http.Request, lease *partition.Lease) {
			fmt.Fprintln(w, name, "serves", r.URL.Path, "under the lease of partition", lease.Partition())
		}))
		return server, g, router
	}
	one, member, router := process("one", 8)
	defer one.Close()
	two, forwards, _ := process("two", 0)
	defer two.Close()
	done := make(chan error)
	go func() { done <- member.Run(ctx, router.Work(nil)) }()
	fmt.Print(get(two.URL + "/17")) // waits until the partition has an owner
	stop()
	fmt.Println(<-done, member.Close(), forwards.Close())
	// Output:
	// one serves /17 under the lease of partition 4
	// <nil> <nil> <nil>
}

func get(url string) string {
	r, err := http.Get(url)
	if err != nil {
		panic(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	if r.StatusCode != http.StatusOK {
		return ""
	}
	return string(body)
}
