package elector

import (
	"context"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/internal/rule"
)

// A campaign that is cancelled while its write is about to be sent waits for the outcome, and
// tells the store that the election is vacant.
func TestCancelledWhenSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New()
		e, err := New(b, "cancelled", &Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		e.view.Report = func(s rule.Step) {
			if s.Name == "repeat" {
				cancel()
				for range 1000 { // let the campaign go on
					runtime.Gosched()
				}
			}
		}
		if _, err := e.Campaign(ctx); err == nil {
			t.Error("a campaign that was cancelled has won")
		}
		time.Sleep(time.Second)
		if r, err := b.Load(t.Context(), "cancelled"); err != nil || !r.Vacant() {
			t.Errorf("the record of a campaign that was cancelled: %+v, %v", r, err)
		}
		e.Close()
	})
}
