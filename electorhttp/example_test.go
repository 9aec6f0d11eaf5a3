package electorhttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/electorhttp"
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
	for r := ""; r == ""; fmt.Print(r) {
		r = get(two.URL + "/transfer") // "" until two has seen who leads
	}
	leads.Close()
	follows.Close()
	// Output: one serves /transfer
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
