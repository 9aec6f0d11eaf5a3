package gcs

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"cloud.google.com/go/storage"

	"github.com/elector-go/elector/backends"
)

// DefaultPrefix is what objects' names begin with when nothing else is said.
const DefaultPrefix = "elector/"

// GCS takes about one write per second of one object. A TTL of 5 s leaves room
// for three renewals at that rate.
const (
	minTTL           = 5 * time.Second
	minWriteInterval = 1200 * time.Millisecond
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maxObject is the most that is read of an object, more than any record has.
const maxObject = 64 << 10

// maxWaiting bounds the calls under way: those that wait for an access token go
// on after they were given up.
const maxWaiting = 1024

// A Backend keeps each record in one object. Open and New make it.
type Backend struct {
	bucket    string
	prefix    string
	store     string                // for errors
	handle    *storage.BucketHandle // without the library's retries
	closeIdle func()                // closes the connections that are not in use
	waiting   atomic.Int32          // calls under way, those that were given up included
	life      context.Context       // ends with Close
	end       context.CancelFunc
}

var _ backends.Backend = (*Backend)(nil)

// New returns a backend on a client of yours, which Close leaves open. Objects'
// names are the prefix, as it is, followed by the election's name; an empty
// prefix means [DefaultPrefix]. New does no I/O and checks nothing: that the
// bucket is missing or has a retention policy, the first call tells, or the
// first renewal.
//
// The client must be one made by [storage.NewClient]; the errors of
// [storage.NewGRPCClient] are all taken for passing ones. Its retries are
// switched off for the requests of this package. Reads work with and without
// [storage.WithJSONReads]. Over HTTP/2, which is its default, one connection
// that has gone dark holds up every call until the transport gives it up.
func New(client *storage.Client, bucket, prefix string) *Backend {
	if prefix == "" {
		prefix = DefaultPrefix
	}
	b := newBackend(bucket, prefix, func() {})
	b.use(client)
	return b
}

func newBackend(bucket, prefix string, closeIdle func()) *Backend {
	b := &Backend{bucket: bucket, prefix: prefix, store: "gs://" + bucket + "/" + prefix, closeIdle: closeIdle}
	b.life, b.end = context.WithCancel(context.Background())
	return b
}

// use sets the client. The elector retries, and a conditional write that the
// library sent a second time could fail because of the first.
func (b *Backend) use(client *storage.Client) {
	b.handle = client.Bucket(b.bucket).Retryer(storage.WithPolicy(storage.RetryNever))
}

// Load implements [backends.Backend]. Besides the errors that it documents it
// returns ErrUnavailable from a service that does not answer or is throttling,
// ErrDenied and ErrMisconfigured. It is one request, and a second one to tell
// whether the bucket is there if the object is not.
func (b *Backend) Load(ctx context.Context, name string) (backends.Record, error) {
	if err := backends.CheckName(name); err != nil {
		return backends.Record{}, err
	}
	r, err := await(ctx, b, func(ctx context.Context) (backends.Record, error) { return b.load(ctx, name) })
	if err != nil {
		return backends.Record{}, b.explain(ctx, "reading election "+name, err)
	}
	return r, nil
}

func (b *Backend) load(ctx context.Context, name string) (backends.Record, error) {
	content, generation, err := b.read(ctx, b.prefix+name)
	if err != nil {
		return backends.Record{}, err
	}
	if generation == 0 {
		_, err := b.attributes(ctx)
		return backends.Record{}, err
	}
	r, err := backends.Decode(name, content)
	if err != nil {
		return backends.Record{}, err
	}
	r.Version = backends.Version(strconv.FormatInt(generation, 10))
	return r, nil
}

// read returns at most maxObject+1 bytes of an object with the generation that
// they belong to, or generation 0 if nothing was found. That a bucket is
// missing cannot be told from that answer.
func (b *Backend) read(ctx context.Context, object string) (content []byte, generation int64, err error) {
	reader, err := b.handle.Object(object).NewReader(ctx)
	if errors.Is(err, storage.ErrObjectNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer reader.Close()
	// After a broken connection the library may ask for the rest of this very
	// generation, and find that it was replaced meanwhile: an error then, even
	// if it says that the object does not exist.
	if content, err = io.ReadAll(io.LimitReader(reader, maxObject+1)); err != nil {
		return nil, 0, fmt.Errorf("the answer broke off: %w", err)
	}
	if reader.Attrs.Generation <= 0 {
		return nil, 0, errNoGeneration
	}
	return content, reader.Attrs.Generation, nil
}

// attributes returns what the bucket is set up like, nil if that is not for us
// to know, which needs a permission of its own.
func (b *Backend) attributes(ctx context.Context) (*storage.BucketAttrs, error) {
	a, err := b.handle.Attrs(ctx)
	if code(err) == http.StatusForbidden && !throttled(err) {
		return nil, nil
	}
	return a, err
}

// Swap implements [backends.Backend], with the further errors of Load. It is
// one request.
func (b *Backend) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	if err := backends.CheckName(name); err != nil {
		return backends.Record{}, err
	}
	condition := storage.Conditions{DoesNotExist: true}
	if prev.Exists() {
		generation, err := strconv.ParseInt(string(prev.Version), 10, 64)
		if err != nil || generation <= 0 {
			return backends.Record{}, fmt.Errorf("%w (and the version to replace is none of this store's)", backends.ErrConflict)
		}
		condition = storage.Conditions{GenerationMatch: generation}
	}
	generation, err := await(ctx, b, func(ctx context.Context) (int64, error) {
		return b.write(ctx, b.prefix+name, condition, backends.Encode(name, next))
	})
	if code(err) == http.StatusPreconditionFailed && !says(err, "orgPolicy") {
		return backends.Record{}, backends.ErrConflict
	}
	if err != nil {
		return backends.Record{}, b.explain(ctx, "writing election "+name, err)
	}
	next.Version = backends.Version(strconv.FormatInt(generation, 10))
	return next, nil
}

// write writes a whole object and returns its generation.
func (b *Backend) write(ctx context.Context, object string, condition storage.Conditions, content []byte) (int64, error) {
	w := b.handle.Object(object).If(condition).NewWriter(ctx)
	w.ChunkSize = 0 // one request, and no buffer to send it again from
	w.ContentType = "application/json"
	w.CacheControl = "no-store"                                        // or caches may keep an object that everybody may read for an hour
	w.CRC32C, w.SendCRC32C = crc32.Checksum(content, castagnoli), true // and what arrives differently is refused
	_, err := w.Write(content)
	if answer := w.Close(); answer != nil { // the error of Write only says that there was one
		err = answer
	}
	if err != nil {
		return 0, err
	}
	if w.Attrs().Generation <= 0 {
		return 0, errNoGeneration
	}
	return w.Attrs().Generation, nil
}

// await returns what f returns, or an error as soon as ctx or the handle has
// ended: the libraries wait for an access token without looking at the context
// of the request that needs it.
func await[T any](ctx context.Context, b *Backend, f func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if b.life.Err() != nil { // what cancels ctx below then comes a moment too late
		return none, errClosed
	}
	if b.waiting.Add(1) > maxWaiting {
		b.waiting.Add(-1)
		return none, errStuck
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.life, cancel)()
	done := make(chan result, 1)
	go func() {
		defer b.waiting.Add(-1)
		var r result
		if r.err = ctx.Err(); r.err == nil {
			r.value, r.err = f(ctx)
		}
		if ctx.Err() != nil || b.life.Err() != nil {
			// The handle is closed, or the network may have gone dark: the
			// idle connections are then dead too, and finding out one call at
			// a time could cost a lease.
			b.closeIdle()
		}
		done <- r
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// Describe implements [backends.Backend].
func (b *Backend) Describe() backends.Description {
	return backends.Description{Store: b.store, MinTTL: minTTL, MinWriteInterval: minWriteInterval}
}

// Close implements [backends.Backend]. It ends the calls under way and closes
// the connections, unless the client was given to New.
func (b *Backend) Close() error {
	b.end()
	b.closeIdle()
	return nil
}
