package store

import (
	"context"
	"fmt"
	"time"

	"github.com/elector-go/elector/backends"
)

// SwapAll makes many swaps, each of another record, in as few requests as the backend allows,
// and returns the outcome of each. Each has so much time from when it is sent, and all together
// as long as if they went one after the other, and twice more.
func (c *Client) SwapAll(ctx context.Context, changes []backends.Change, timeout time.Duration) []backends.Outcome {
	return c.all(ctx, swaps, len(changes), func(i int) *Request {
		change := changes[i]
		return &Request{Ask: Ask{Rank: Gain, Timeout: timeout}, name: change.Name, bytes: Size(change.Prev) + Size(change.Next),
			build: func() (backends.Change, bool) { return change, true }}
	})
}

// LoadAll reads many records in as few requests as the backend allows, and returns the outcome
// of each. They have as much time as those of SwapAll.
func (c *Client) LoadAll(ctx context.Context, names []string, timeout time.Duration) []backends.Outcome {
	return c.all(ctx, loads, len(names), func(i int) *Request {
		return &Request{Ask: Ask{Rank: Seek, Timeout: timeout}, name: names[i], sent: func() {}}
	})
}

func (c *Client) all(ctx context.Context, k kind, n int, request func(i int) *Request) []backends.Outcome {
	requests := make([]*Request, n)
	for i := range requests {
		requests[i] = request(i)
		requests[i].client, requests[i].ctx, requests[i].done = c, ctx, make(chan struct{})
	}
	if n == 0 {
		return nil
	}
	c.begin(k, requests...)
	ctx, cancel := c.clock.WithTimeout(ctx, time.Duration(2+n/requests[0].line.most)*requests[0].Timeout)
	defer cancel()
	outcomes := make([]backends.Outcome, n)
	for i, r := range requests {
		if outcomes[i], _ = r.Wait(ctx); outcomes[i].Err != nil && ctx.Err() != nil {
			outcomes[i].Err = fmt.Errorf("%w: no answer: %w", backends.ErrUnavailable, context.Cause(ctx))
		}
	}
	return outcomes
}

// Size counts the bytes of a record that its holder and other processes chose.
func Size(r backends.Record) int { return len(r.Holder) + len(r.Value) + len(r.Extensions) }
