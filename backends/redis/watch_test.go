package redis

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// A Watch ends with its context, and with its handle, also while its connection is being
// made and the server does not answer; and at the first fault of the connection.
func TestWatchEnds(t *testing.T) {
	subscribe := "*3\r\n" + bulk("subscribe") + bulk(DefaultPrefix) + ":1\r\n"
	for word, answer := range map[string]string{"HELLO": hang, "INFO": hang, "SUBSCRIBE": hang, "": ""} {
		for _, closes := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, closes %v", word, closes), func(t *testing.T) {
				f := newFake(t)
				f.answers["SUBSCRIBE"] = subscribe
				b, err := f.open(t, Options{})
				if err != nil {
					t.Fatal(err)
				}
				for len(f.news) > 0 {
					<-f.news
				}
				f.set(func() { f.answers[word] = answer })
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				read, ended := make(chan bool, 10), make(chan error, 1)
				go func() {
					ended <- b.Watch(ctx, "a", func(backends.Record) { read <- true })
				}()
				if word == "" {
					<-read
				} else {
					for <-f.news != word {
					}
				}
				begun := time.Now()
				if closes {
					b.Close()
				} else {
					cancel()
				}
				if err := <-ended; err == nil || !closes && !errors.Is(err, context.Canceled) {
					t.Errorf("it ends with %v", err)
				}
				if took := time.Since(begun); took > patience*4/5 {
					t.Errorf("it ended %v later, when its connection timed out", took)
				}
			})
		}
	}
	t.Run("a fault", func(t *testing.T) {
		f := newFake(t)
		f.answers["SUBSCRIBE"] = subscribe
		b, err := f.open(t, Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = b.Watch(t.Context(), "a", func(backends.Record) { f.drop() })
		if !errors.Is(err, backends.ErrUnavailable) {
			t.Errorf("it ends with %v", err)
		}
	})
}
