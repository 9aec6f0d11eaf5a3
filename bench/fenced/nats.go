package fenced

import (
	"context"
	"fmt"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/nats"
	"github.com/elector-go/elector/internal/proof/stores"
)

func natses(ctx context.Context, t *target) ([]pair, error) {
	nc, err := stores.NATSConnect(ctx, t.address)
	if err != nil {
		return nil, err
	}
	t.closers = append(t.closers, nc.Close)
	b, err := backends.Open(ctx, t.url)
	if err != nil {
		return nil, err
	}
	t.closers = append(t.closers, func() { b.Close() })
	plain := func(ctx context.Context, n int) error {
		_, err := nc.RequestWithContext(ctx, "$KV.elections.fenced", []byte(fmt.Sprint(n)))
		return err
	}
	return []pair{{"nats.Put", plain, func(ctx context.Context, n int) error {
		_, err := nats.Put(ctx, through{t.lease, b}, "fenced", []byte(fmt.Sprint(n)))
		return err
	}}}, nil
}
