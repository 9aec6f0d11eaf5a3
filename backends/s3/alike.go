package s3

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
)

// amazon reports whether requests go to Amazon S3 itself, also by a private endpoint:
// its promises are not probed with rivals.
func amazon(endpoint *string) bool {
	if endpoint == nil {
		return true
	}
	u, err := url.Parse(*endpoint)
	if err != nil {
		return false
	}
	host := u.Hostname()
	for _, domain := range []string{".amazonaws.com", ".amazonaws.com.cn", ".api.aws"} {
		if strings.HasSuffix(host, domain) {
			return true
		}
	}
	return false
}

const (
	rivals = 8 // writers at once
	rounds = 2

	raceTime = 3 * time.Second
)

var errStale = errors.New("a read that began after a write was acknowledged showed what the write had replaced")

// race lets rivals overwrite one state of the probe's object at the same time. A server
// that compares and writes in two steps lets several of them win. Each writes other
// content, so no entity tag comes back, and what other processes write meanwhile is
// never taken for that. A server that refuses all of them, as one that allows a write a
// second, is not blamed, and neither is one that throttles the race or is too busy to
// finish it, as when many processes start: they all write this one object.
func (b *Backend) race(ctx context.Context, key string) error {
	limit := raceTime
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end)/2)
	}
	racing, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := b.compete(racing, key)
	if err == nil || errors.Is(err, errUnconditional) || errors.Is(err, errStale) {
		return err
	}
	if _, kind := b.classify(err); errors.Is(kind, backends.ErrUnavailable) {
		return ctx.Err()
	}
	return err
}

// compete returns what race is to return, or why it could not finish.
func (b *Backend) compete(ctx context.Context, key string) error {
	etag, err := b.tag(ctx, key)
	for round := 0; err == nil && etag != "" && round < rounds; round++ {
		var all sync.WaitGroup
		won := make([]bool, rivals)
		for i := range won {
			all.Go(func() {
				_, err := b.put(ctx, key, etag, []byte(probed+crand.Text()+"\n"))
				won[i] = err == nil
			})
		}
		all.Wait()
		winners := 0
		for _, w := range won {
			if w {
				winners++
			}
		}
		if winners > 1 {
			return fmt.Errorf("%w: %d of %d writes at once overwrote the same state, each with its entity tag in If-Match, so it compares and writes in two steps", errUnconditional, winners, rivals)
		}
		if winners == 0 {
			return nil // throttled, or other processes win: do not keep them from it
		}
		before := etag
		if etag, err = b.tag(ctx, key); err == nil && winners == 1 && etag == before {
			return fmt.Errorf("%w: %w", backends.ErrMisconfigured, errStale)
		}
	}
	return err
}

// tag returns the entity tag of the probe's object, or none if it cannot be known now.
func (b *Backend) tag(ctx context.Context, key string) (string, error) {
	_, etag, err := b.get(ctx, key)
	if errors.Is(err, errTorn) { // another process probes too
		return "", nil
	}
	return etag, err
}

// try is put for the probe's object. It waits and tries again while the server throttles
// it, because other processes probe too, if ctx leaves time for that.
func (b *Backend) try(ctx context.Context, key, etag string, content []byte) error {
	for {
		_, err := b.put(ctx, key, etag, content)
		if s := status(err); s != http.StatusTooManyRequests && s != http.StatusServiceUnavailable {
			return err
		}
		wait := 200*time.Millisecond + rand.N(time.Second)
		if end, ok := ctx.Deadline(); !ok || time.Until(end) < 2*wait {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}
