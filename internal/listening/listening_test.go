package listening

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// Drop ends the Watches of a connection with its reason, and not as if their callers had
// cancelled them. The next Watch connects again.
func TestDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connections := 0
		h := &Hub{Listen: func(ctx context.Context, ready func(), _ func(string)) error {
			connections++
			ready()
			<-ctx.Done()
			return ctx.Err()
		}}
		why := errors.New("the server takes no writes")
		h.Drop(why) // there is none
		for i := range 2 {
			ended := make(chan error, 1)
			go func() { ended <- h.Watch(t.Context(), "a", func() error { return nil }) }()
			synctest.Wait()
			if connections != i+1 {
				t.Fatalf("%d connections, want %d", connections, i+1)
			}
			h.Drop(why)
			if err := <-ended; err != why {
				t.Errorf("a Watch ends with %v, want %v", err, why)
			}
		}
	})
}
