package electorotel_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/integrations/electorotel"
	"github.com/elector-go/elector/partition"
)

// The metrics of a group whose only member starts and stops. One of its workers fails once;
// each takes a second to return when it is told to stop.
func TestGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &process{T: t, reader: metric.NewManualReader()}
		trace, err := electorotel.NewGroup(metric.NewMeterProvider(metric.WithReader(p.reader)))
		if err != nil {
			t.Fatal(err)
		}
		p.expect("before it runs", map[string]string{})
		g, err := partition.New(memory.New(), "orders", &partition.Options{Partitions: 4, Trace: trace, Elector: elector.Options{Logger: slog.New(slog.DiscardHandler)}})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		ctx, cancel := context.WithCancel(t.Context())
		var failed atomic.Bool
		done := make(chan error)
		go func() {
			done <- g.Run(ctx, func(ctx context.Context, _ *partition.Lease) error {
				if failed.CompareAndSwap(false, true) {
					return errors.New("no ledger")
				}
				<-ctx.Done()
				time.Sleep(time.Second)
				return nil
			})
		}()
		pass(time.Minute)
		want := map[string]string{
			"elector.group.owned ({partition}) backend=memory,group=orders":                       "4",
			"elector.group.partitions ({partition}) backend=memory,group=orders":                  "4",
			"elector.group.transitions ({transition}) backend=memory,cause=acquired,group=orders": "4",
			"elector.group.transitions ({transition}) backend=memory,cause=lost,group=orders":     "0",
			"elector.group.transitions ({transition}) backend=memory,cause=returned,group=orders": "0",
			"elector.group.transitions ({transition}) backend=memory,cause=timeout,group=orders":  "0",
			"elector.group.unowned (s) backend=memory,group=orders":                               "4 0.000",
			"elector.group.wanted ({partition}) backend=memory,group=orders":                      "4",
			"elector.group.worker.failures ({failure}) backend=memory,group=orders":               "1",
		}
		p.expect("while it owns all", want)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		maps.Copy(want, map[string]string{
			"elector.group.drain.duration (s) backend=memory,group=orders":                        "4 4.000",
			"elector.group.owned ({partition}) backend=memory,group=orders":                       "0",
			"elector.group.transitions ({transition}) backend=memory,cause=returned,group=orders": "4",
			"elector.group.wanted ({partition}) backend=memory,group=orders":                      "0",
		})
		p.expect("after it has left", want)
		if n := len(want); n != 10 {
			t.Errorf("a group has %d sets of attributes", n)
		}
	})
}
