package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/electortest"
	"github.com/elector-go/elector/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m, http.DefaultClient.CloseIdleConnections) }

// start runs the recipe. Its worker returns what comes from fails, or nil when it is
// told to stop, and then closes told. Its handler answers when it may.
func start(t *testing.T) (stop func() error, l net.Listener, asked, answer, told chan bool, fails chan error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked, answer, told, fails = make(chan bool, 1), make(chan bool), make(chan bool), make(chan error)
	s := electortest.New(t, "errgroup", nil)
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- true
		<-answer
		io.WriteString(w, "the answer")
	})
	stop = s.Start(func(ctx context.Context) error {
		return run(ctx, s.Elector, l, handler, func(ctx context.Context, _ *elector.Lease) error {
			select {
			case err := <-fails:
				return err
			case <-ctx.Done():
				close(told)
				return nil
			}
		})
	})
	s.Win()
	return stop, l, asked, answer, told, fails
}

// A process that is told to stop answers the request that is under way.
func TestStop(t *testing.T) {
	stop, l, asked, answer, _, _ := start(t)
	answered := make(chan string, 1)
	go func() {
		r, err := http.Get("http://" + l.Addr().String())
		if err != nil {
			answered <- err.Error()
			return
		}
		defer r.Body.Close()
		body, _ := io.ReadAll(r.Body)
		answered <- string(body)
	}()
	<-asked
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	for { // until it takes no more requests
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			break
		}
		c.Close()
	}
	close(answer)
	if got := <-answered; got != "the answer" {
		t.Errorf("the request under way: %s", got)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// If one of them fails, the other ends.
func TestFailures(t *testing.T) {
	t.Run("worker", func(t *testing.T) {
		stop, l, _, _, _, fails := start(t)
		broken := errors.New("broken")
		fails <- broken
		if err := stop(); !errors.Is(err, broken) {
			t.Error(err)
		}
		if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
			c.Close()
			t.Error("the server still serves")
		}
	})
	t.Run("server", func(t *testing.T) {
		stop, l, _, _, told, _ := start(t)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		<-told // a stop that comes before the server's error is the end of both without one
		if err := stop(); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}
