// Package mute tests how an adapter over HTTP meets a service that never answers.
package mute

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// Handler never answers, also when the client hangs up: an answer then could overtake
// the client's end of the connection.
func Handler(_ http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// Calls tests that such a service costs a call the time that the caller gives it and
// no more, and a call through a handle that is closed no time at all. open returns a
// handle, and what makes a handler serve all its requests. The record is one that the
// store can have.
func Calls(t *testing.T, record backends.Record, open func() (b backends.Backend, serve func(http.HandlerFunc))) {
	for _, closed := range []bool{false, true} {
		b, serve := open()
		asked := make(chan struct{}, 100)
		serve(func(w http.ResponseWriter, r *http.Request) {
			asked <- struct{}{}
			Handler(w, r)
		})
		timeout := 200 * time.Millisecond
		if closed {
			timeout = time.Hour
		}
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		calls := []func() error{
			func() error { _, err := b.Load(ctx, "a"); return err },
			func() error { _, err := b.Swap(ctx, "a", backends.Record{}, record); return err },
		}
		if w, ok := backends.AsWatcher(b); ok {
			calls = append(calls, func() error { return w.Watch(ctx, "a", func(backends.Record) {}) })
		}
		returned := make(chan error, len(calls))
		for _, call := range calls {
			go func() { returned <- call() }()
		}
		if closed {
			for range calls {
				<-asked
			}
			b.Close()
		}
		for range calls {
			select {
			case err := <-returned:
				if !errors.Is(err, backends.ErrUnavailable) || !closed && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("closed %v: got %v, want ErrUnavailable", closed, err)
				}
			case <-time.After(time.Minute):
				t.Fatal("a call does not return")
			}
		}
	}
}

// Idle tests that after a read that got no answer no other call waits on a connection
// that was made before it: in a network gone dark all of them are dead. serve makes a
// handler serve the reads, as usual does otherwise, and closed gets a value for each
// connection that has ended.
func Idle(t *testing.T, b backends.Backend, serve func(http.HandlerFunc), usual http.HandlerFunc, closed <-chan struct{}) {
	both := make(chan struct{})
	serve(func(w http.ResponseWriter, r *http.Request) {
		select { // two at a time need two connections
		case both <- struct{}{}:
		case <-both:
		case <-time.After(time.Minute):
			t.Error("two reads are not made at once")
		}
		usual(w, r)
	})
	loaded := make(chan error, 2)
	for range 2 {
		go func() { _, err := b.Load(t.Context(), "a"); loaded <- err }()
	}
	for range 2 {
		if err := <-loaded; err != nil {
			t.Fatal(err)
		}
	}
	serve(Handler)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := b.Load(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want DeadlineExceeded", err)
	}
	for range 2 {
		select {
		case <-closed:
		case <-time.After(time.Minute):
			t.Fatal("a connection of before the silence stays open")
		}
	}
}
