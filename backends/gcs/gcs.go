package gcs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/iterator"
	raw "google.golang.org/api/storage/v1"

	"github.com/elector-go/elector/backends"
)

// DefaultPrefix begins the names of objects by default.
const DefaultPrefix = "elector/"

// GCS takes about one write per second of one object. A TTL of 5 s leaves room
// for three renewals at that rate.
const (
	minTTL           = 5 * time.Second
	minWriteInterval = 1200 * time.Millisecond
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maxObject is how many bytes of an object are read, more than any record has.
const maxObject = 64 << 10

// A Backend keeps each record in one object. Open and New make it.
type Backend struct {
	base      *backends.Base
	name      string // of the bucket
	prefix    string
	bucket    *storage.BucketHandle // without the library's retries
	service   *raw.Service          // for Inspect, and for reading alone; nil with a client of the caller
	closeIdle func()                // closes the connections that are not in use
	release   func() error          // of what Open made
}

var (
	_ backends.Lister    = (*Backend)(nil)
	_ backends.Inspector = (*Backend)(nil)
)

// Options are the options of New. Bucket is required; of the other fields the zero value
// means the default.
type Options struct {
	// Bucket is the name of the bucket. It has no default.
	Bucket string

	// Prefix is what objects' names begin with, as it is, before the election's name.
	// The default is DefaultPrefix.
	Prefix string

	// ReadOnly makes a handle that only reads: see [backends.OpenReadOnly].
	ReadOnly bool
}

// New returns a backend in a bucket, on your client, which Close leaves open. It returns
// ErrOptions of package backends for a client or options that it cannot use. New sends
// nothing, whatever ctx is: the first call shows that the bucket is missing, the first
// renewal that it has a retention policy.
//
// Make the client with [storage.NewClient]: errors of [storage.NewGRPCClient]
// all count as passing ones. Its retries are switched off for the requests of
// this package. Reads work with and without [storage.WithJSONReads]. Over
// HTTP/2, the client's default, one connection that has gone dark holds up every
// call until the transport gives it up.
func New(ctx context.Context, client *storage.Client, options *Options) (*Backend, error) {
	errOptions := fmt.Errorf("%w of gcs.New", backends.ErrOptions)
	if client == nil {
		return nil, fmt.Errorf("%w: the client is nil; make one with storage.NewClient", errOptions)
	}
	if options == nil {
		options = &Options{}
	}
	if !bucketName.MatchString(options.Bucket) {
		return nil, fmt.Errorf("%w: Bucket is %q; name the bucket, with %s", errOptions, options.Bucket, bucketRule)
	}
	prefix := cmp.Or(options.Prefix, DefaultPrefix)
	if wrong := wrongPrefix(prefix); wrong != "" {
		return nil, fmt.Errorf("%w: Prefix %s", errOptions, wrong)
	}
	b := newBackend("gs://"+options.Bucket+"/"+prefix, options.Bucket, prefix)
	b.use(client)
	b.base.SetReadOnly(options.ReadOnly)
	return b, nil
}

func newBackend(store, bucket, prefix string) *Backend {
	b := &Backend{name: bucket, prefix: prefix, closeIdle: func() {}}
	b.base = backends.NewBase(store, b.classify)
	return b
}

// use sets the client. The elector retries; a conditional write that the library
// sent a second time could fail because of the first.
func (b *Backend) use(client *storage.Client) {
	b.bucket = client.Bucket(b.name).Retryer(storage.WithPolicy(storage.RetryNever))
}

// call returns when ctx ends, which the libraries do not while they wait for an
// access token.
func call[T any](ctx context.Context, b *Backend, request func() (T, error)) (T, error) {
	return backends.WithContext(ctx, b.base, func() (T, error) {
		v, err := request()
		if ctx.Err() != nil {
			// In a network gone dark the idle connections are dead too, and
			// finding out one call at a time could cost a lease.
			b.closeIdle()
		}
		return v, err
	})
}

// Load implements [backends.Backend]. Besides the errors that it documents it
// returns ErrUnavailable from a service that does not answer or is throttling,
// ErrDenied and ErrMisconfigured. It is one request; if the object does not
// exist, a second one checks that the bucket does.
func (b *Backend) Load(ctx context.Context, name string) (backends.Record, error) {
	return b.base.Load(ctx, name, func(ctx context.Context) (backends.Record, error) {
		return call(ctx, b, func() (backends.Record, error) { return b.load(ctx, name) })
	})
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

// List implements [backends.Lister], with the further errors of Load. It is a
// request for each 1,000 elections, each a Class A operation.
func (b *Backend) List(ctx context.Context) ([]string, error) {
	return b.base.List(ctx, func(ctx context.Context) ([]string, error) {
		return call(ctx, b, func() (names []string, _ error) {
			query := &storage.Query{Prefix: b.prefix, Delimiter: "/", Projection: storage.ProjectionNoACL}
			if err := query.SetAttrSelection([]string{"Name"}); err != nil {
				return nil, err
			}
			objects := b.bucket.Objects(ctx, query)
			for {
				object, err := objects.Next()
				switch {
				case errors.Is(err, iterator.Done):
					return names, nil
				case err != nil:
					return nil, err
				}
				names = append(names, strings.TrimPrefix(object.Name, b.prefix))
			}
		})
	})
}

// read returns at most maxObject+1 bytes of an object and their generation, or
// generation 0 if nothing was found: the object or its bucket is missing.
func (b *Backend) read(ctx context.Context, object string) (content []byte, generation int64, err error) {
	reader, err := b.bucket.Object(object).NewReader(ctx)
	if errors.Is(err, storage.ErrObjectNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer reader.Close()
	// After a broken connection the library may ask for the rest of this
	// generation, which may have been replaced meanwhile: that is an error,
	// even if it reports that the object does not exist.
	if content, err = io.ReadAll(io.LimitReader(reader, maxObject+1)); err != nil {
		return nil, 0, fmt.Errorf("the answer broke off: %w", err)
	}
	if reader.Attrs.Generation <= 0 {
		return nil, 0, errNoGeneration
	}
	return content, reader.Attrs.Generation, nil
}

// attributes returns the bucket's settings, or nil without the permission to read them,
// or if the bucket was opened for reading alone.
func (b *Backend) attributes(ctx context.Context) (*storage.BucketAttrs, error) {
	var a *storage.BucketAttrs
	var err error
	if b.base.ReadOnly() && b.service != nil {
		// Attrs asks for the access control lists too, which a token that can only
		// read may not see. Nothing but the bucket's existence matters here.
		_, err = b.service.Buckets.Get(b.name).Fields("name").Context(ctx).Do()
	} else {
		a, err = b.bucket.Attrs(ctx)
	}
	if code(err) == http.StatusForbidden && !throttled(err) {
		return nil, nil
	}
	return a, err
}

// Swap implements [backends.Backend], with the further errors of Load. It is
// one request.
func (b *Backend) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	return b.base.Swap(ctx, name, func(ctx context.Context) (backends.Record, error) {
		condition := storage.Conditions{DoesNotExist: true}
		if prev.Exists() {
			generation, err := strconv.ParseInt(string(prev.Version), 10, 64)
			if err != nil || generation <= 0 {
				return next, fmt.Errorf("%w (and the version to replace is not from this store)", backends.ErrConflict)
			}
			condition = storage.Conditions{GenerationMatch: generation}
		}
		generation, err := call(ctx, b, func() (int64, error) {
			return b.write(ctx, b.prefix+name, condition, backends.Encode(name, next))
		})
		if code(err) == http.StatusPreconditionFailed && !says(err, "orgPolicy") {
			err = backends.ErrConflict
		}
		next.Version = backends.Version(strconv.FormatInt(generation, 10))
		return next, err
	})
}

// write writes a whole object and returns its generation.
func (b *Backend) write(ctx context.Context, object string, condition storage.Conditions, content []byte) (int64, error) {
	w := b.bucket.Object(object).If(condition).NewWriter(ctx)
	w.ChunkSize = 0 // one request, and no buffer to send it again from
	w.ContentType = "application/json"
	w.CacheControl = "no-store"                                        // or caches may keep a public object for an hour
	w.CRC32C, w.SendCRC32C = crc32.Checksum(content, castagnoli), true // content that arrives changed is refused
	_, err := w.Write(content)
	if answer := w.Close(); answer != nil { // the error of Write gives no reason
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

// Describe implements [backends.Backend].
func (b *Backend) Describe() backends.Description {
	return backends.Description{Store: b.base.Store(), MinTTL: minTTL, MinWriteInterval: minWriteInterval, ReadOnly: b.base.ReadOnly()}
}

// Close implements [backends.Backend]. It ends the calls under way and closes
// the connections, unless the client was given to New.
func (b *Backend) Close() error { return b.base.Close(b.release) }
