// Fencedhttp is a service that keeps a book, and refuses the late entry of an old
// leader. In three terminals, with ELECTOR_URL=file:///tmp/bookkeepers:
//
//	go run ./examples/fencedhttp serve /tmp 127.0.0.1:8080
//	go run ./examples/fencedhttp lead -late http://127.0.0.1:8080
//	go run ./examples/fencedhttp lead http://127.0.0.1:8080
//
// The second one stops between its check and a request. The third one takes over. Let
// the second one go on, with the command that it has printed: its entry is refused.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/elector-go/elector"
	_ "github.com/elector-go/elector/backends/etcd"
	_ "github.com/elector-go/elector/backends/file"
	_ "github.com/elector-go/elector/backends/postgres"
	"github.com/elector-go/elector/examples/door"
	"github.com/elector-go/elector/fence/fencehttp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch arguments := os.Args[1:]; {
	case len(arguments) == 3 && arguments[0] == "serve":
		err = serve(ctx, arguments[1], arguments[2])
	case len(arguments) == 2 && arguments[0] == "lead":
		err = lead(ctx, arguments[1], http.DefaultTransport)
	case len(arguments) == 3 && arguments[0] == "lead" && arguments[1] == "-late":
		err = lead(ctx, arguments[2], late{})
	default:
		err = errors.New("usage: fencedhttp serve FOLDER ADDRESS | fencedhttp lead [-late] URL")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fencedhttp:", err)
		os.Exit(1)
	}
}

// serve keeps a book in the folder. The Handler in front of it is all that fencing
// takes.
func serve(ctx context.Context, folder, address string) error {
	book := &door.Book{Path: filepath.Join(folder, "book.txt")}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) { reply(w)(book.Read()) })
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		line, err := io.ReadAll(r.Body)
		if err == nil {
			err = book.Append(string(line))
		}
		reply(w)("", err)
	})
	handler := &fencehttp.Handler{
		Next:     mux,
		Election: "bookkeeper",
		Fence:    &elector.Fence{Keeper: &door.Keeper{Path: filepath.Join(folder, "tokens.json")}},
	}

	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Printf("serves http://%s\n", listener.Addr())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func reply(w http.ResponseWriter) func(text string, err error) {
	return func(text string, err error) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		io.WriteString(w, text)
	}
}

// lead makes entries while this process leads.
func lead(ctx context.Context, url string, base http.RoundTripper) error {
	e, err := elector.Open(ctx, os.Getenv("ELECTOR_URL"), "bookkeeper", &elector.Options{TTL: 3 * time.Second})
	if err != nil {
		return err
	}
	return errors.Join(e.Run(ctx, func(ctx context.Context, lease *elector.Lease) error {
		fmt.Printf("leads with token %d\n", lease.Token())
		client := &http.Client{Transport: &fencehttp.Transport{Lease: lease, Base: base}}
		for {
			// Reading shows the token too: from now on no older leader can write.
			book, err := do(client.Get(url))
			if err != nil {
				return err
			}
			entry := fmt.Sprintf("entry %d, by process %d", door.Count(book)+1, os.Getpid())
			if _, err := do(client.Post(url, "text/plain", strings.NewReader(entry))); err != nil {
				return err
			}
			fmt.Println("has written", entry)
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return nil
			}
		}
	}), e.Close())
}

// do reads a response. A refusal is ErrStale: this process has lost its election.
func do(r *http.Response, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if highest, refused := fencehttp.Refused(r); refused {
		return "", fmt.Errorf("refused with %s: %w: the highest token is %d", r.Status, elector.ErrStale, highest)
	}
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", r.Status, body)
	}
	return string(body), err
}

// late pauses the process after the check of the lease and before the request.
type late struct{}

func (late) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost {
		door.Pause()
	}
	return http.DefaultTransport.RoundTrip(r)
}
