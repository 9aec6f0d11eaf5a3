// Package deploys runs rolling deploys of real processes on real stores, as
// docs/deploy.md says, and counts elections and requests.
package deploys

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector"
	_ "github.com/elector-go/elector/backends/etcd"
	_ "github.com/elector-go/elector/backends/file"
	_ "github.com/elector-go/elector/backends/postgres"
	"github.com/elector-go/elector/electorhttp"
	"github.com/elector-go/elector/fence/fencehttp"
	"github.com/elector-go/elector/internal/leak"
	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/child"
)

// variable makes the test binary a process of the service.
const variable = "ELECTOR_DEPLOYS_CANDIDATE"

func TestMain(m *testing.M) {
	var t task
	switch is, err := child.Task(variable, &t); {
	case err != nil:
		panic(err)
	case is:
		if err := candidate(t); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	child.Prepare()
	leak.Main(m)
}

// A task tells a process what to do.
type task struct {
	ID, URL, Election string
	Priority          int
	Linger            time.Duration // Observer.Linger
	Book              string        // URL of the resource that requests change
}

// A message is a line that a process prints.
type message struct {
	Kind    string        // one of those below
	At      time.Duration // on the clock that all processes share
	Address string        // of its server
}

const (
	ready    = "ready"    // it has seen who leads
	begun    = "begun"    // the worker was called
	returned = "returned" // the worker returns now
)

// candidate is the service of docs/deploy.md. It stops when its input ends.
func candidate(t task) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var mutex sync.Mutex
	print := func(kind string) {
		mutex.Lock()
		defer mutex.Unlock()
		json.NewEncoder(os.Stdout).Encode(message{kind, history.BootTime(), l.Addr().String()})
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	e, err := elector.Open(ctx, t.URL, t.Election, &elector.Options{ID: t.ID, Priority: t.Priority, Value: l.Addr().String(), Logger: logger})
	if err != nil {
		return err
	}
	defer e.Close()
	o := electorhttp.Observe(ctx, e)
	o.Logger, o.Linger = logger, t.Linger
	mux := http.NewServeMux()
	mux.Handle("GET /ready", o.Ready())
	mux.Handle("/", o.Forward(&writer{book: t.Book, base: &http.Transport{MaxIdleConnsPerHost: 100}}))
	go func() {
		io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	go func() {
		for _, err := range e.Observe(ctx) {
			if err == nil {
				print(ready)
			}
			return
		}
	}()
	return o.Serve(ctx, &http.Server{Handler: mux}, l, func(ctx context.Context, _ *elector.Lease) error {
		print(begun)
		<-ctx.Done()
		print(returned)
		return nil
	})
}

// A writer writes each request into the book, with the fencing token.
type writer struct {
	book string
	base http.RoundTripper
}

func (h *writer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	lease := electorhttp.LeaseFrom(r.Context())
	time.Sleep(5 * time.Millisecond) // its work, so that some are always under way
	client := http.Client{Transport: &fencehttp.Transport{Lease: lease, Base: h.base}}
	q, err := http.NewRequestWithContext(r.Context(), "POST", h.book+r.URL.Path, nil)
	if err != nil {
		panic(err)
	}
	answer, err := client.Do(q)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer answer.Body.Close()
	io.Copy(io.Discard, answer.Body)
	if answer.StatusCode != http.StatusOK {
		http.Error(w, "the book refuses it: "+answer.Status, http.StatusInternalServerError)
		return
	}
	io.WriteString(w, lease.Token().String())
}
