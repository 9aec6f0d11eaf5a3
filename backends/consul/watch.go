package consul

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/elector-go/elector/backends"
)

const (
	// maxWatches bounds the blocking queries of a handle, each of which takes a
	// connection. An agent takes 200 connections from one address by default.
	maxWatches = 100

	// wait is how long Consul holds a blocking query, and up to a sixteenth
	// longer. After silence the agent is taken for dead.
	wait    = 10 * time.Second
	silence = 15 * time.Second
)

// Watch implements [backends.Watcher]. Each Watch takes a connection; of one handle
// only 100 can run.
func (b *Backend) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	return b.base.Watch(ctx, name, func(ctx context.Context) error {
		defer b.watches.Add(-1)
		if b.watches.Add(1) > maxWatches {
			return fmt.Errorf("%w: %d elections are watched through this handle already, and Consul limits connections; the others are read", backends.ErrUnavailable, maxWatches)
		}
		return b.watch(ctx, name, changed)
	})
}

func (b *Backend) watch(ctx context.Context, name string, changed func(backends.Record)) error {
	last, index, err := b.read(ctx, name, url.Values{})
	if err != nil {
		return err
	}
	changed(last)
	for {
		r, now, err := b.next(ctx, name, index)
		switch {
		case err != nil:
			return err
		case now < index || now == 0: // which would not block
			return errWentBack
		}
		// A query also ends after its time, and when other keys change.
		if r != last {
			changed(r)
		}
		last, index = r, now
	}
}

// next waits for the next change after the index, or returns the same state after
// a while.
func (b *Backend) next(ctx context.Context, name string, index uint64) (backends.Record, uint64, error) {
	inTime, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	r, now, err := b.read(inTime, name, url.Values{"index": {strconv.FormatUint(index, 10)}, "wait": {wait.String()}})
	if err != nil && inTime.Err() != nil && ctx.Err() == nil {
		err = errSilent
	}
	return r, now, err
}
