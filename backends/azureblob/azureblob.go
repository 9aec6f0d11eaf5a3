package azureblob

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/elector-go/elector/backends"
)

// DefaultPrefix begins the names of blobs by default.
const DefaultPrefix = "elector/"

// suffix ends the names of blobs. Azure may drop a dot at the end of a name, where
// elections' names can have one.
const suffix = ".json"

const minTTL = time.Second

// maxBlob is how many bytes of a blob are read, more than any record has.
const maxBlob = 64 << 10

// A Backend keeps each record in one blob. Open and New make it.
type Backend struct {
	base      *backends.Base
	account   string // for advice
	name      string // of the container
	prefix    string
	container *container.Client
	service   *service.Client // for Inspect; nil with a client of the caller
	secondary bool
	closeIdle func() // closes the connections that are not in use
	end       func() // ends the dialing of connections
}

var (
	_ backends.Lister    = (*Backend)(nil)
	_ backends.Inspector = (*Backend)(nil)
)

// Options are the options of New. The zero value means the defaults.
type Options struct {
	// Prefix is what blobs' names begin with, as it is, before the election's name
	// and ".json". The default is DefaultPrefix.
	Prefix string

	// ReadOnly makes a handle that only reads: see [backends.OpenReadOnly].
	ReadOnly bool
}

// New returns a backend in the client's container. Close leaves the client open.
// options may be nil. New returns ErrOptions of package backends for a client or
// options that it cannot use. It sends nothing, whatever ctx is: the first call shows
// that the container is missing, the first renewal that it is immutable.
//
// Make the client with [container.NewClient] and a credential of package azidentity
// for a managed identity, or with a key. Its retries are switched off for the
// requests of this package.
func New(ctx context.Context, client *container.Client, options *Options) (*Backend, error) {
	errOptions := fmt.Errorf("%w of azureblob.New", backends.ErrOptions)
	if client == nil {
		return nil, fmt.Errorf("%w: the client is nil; make one with container.NewClient", errOptions)
	}
	if options == nil {
		options = &Options{}
	}
	prefix := cmp.Or(options.Prefix, DefaultPrefix)
	if wrong := wrongPrefix(prefix); wrong != "" {
		return nil, fmt.Errorf("%w: Prefix %s", errOptions, wrong)
	}
	account, name := "", ""
	if u, err := url.Parse(client.URL()); err == nil { // which may have a SAS
		path := strings.Split(strings.Trim(u.Path, "/"), "/")
		account, _, _ = strings.Cut(u.Hostname(), ".")
		name = path[len(path)-1]
		if len(path) > 1 { // as on an emulator
			account = path[len(path)-2]
		}
	}
	b := newBackend("azureblob://"+account+"/"+name+"/"+prefix, account, name, prefix)
	b.container, b.secondary = client, strings.HasSuffix(account, secondary)
	b.base.SetReadOnly(options.ReadOnly)
	return b, nil
}

func newBackend(store, account, name, prefix string) *Backend {
	b := &Backend{account: account, name: name, prefix: prefix, closeIdle: func() {}, end: func() {}}
	b.base = backends.NewBase(store, b.classify)
	return b
}

// once switches a client's retries off. The elector retries; a conditional write
// that the library sent a second time could fail because of the first.
func once(ctx context.Context) context.Context {
	return policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1})
}

// call makes a request, and returns when ctx ends, which a client may not do while
// it waits for an access token.
func call[T any](ctx context.Context, b *Backend, request func(context.Context) (T, error)) (T, error) {
	return backends.WithContext(ctx, b.base, func() (T, error) {
		var none T
		if b.secondary {
			return none, errSecondary
		}
		v, err := request(once(ctx))
		if ctx.Err() != nil {
			// In a network gone dark the idle connections are dead too, and
			// finding out one call at a time could cost a lease.
			b.closeIdle()
		}
		return v, plain(err)
	})
}

// Load implements [backends.Backend]. Besides the errors that it documents it
// returns ErrUnavailable from a service that does not answer or is throttling,
// ErrDenied and ErrMisconfigured. It is one request.
func (b *Backend) Load(ctx context.Context, name string) (backends.Record, error) {
	return b.base.Load(ctx, name, func(ctx context.Context) (backends.Record, error) {
		return call(ctx, b, func(ctx context.Context) (backends.Record, error) {
			content, version, err := b.read(ctx, b.prefix+name+suffix)
			if err != nil || version == "" {
				return backends.Record{}, err
			}
			r, err := backends.Decode(name, content)
			if err != nil {
				return backends.Record{}, err
			}
			r.Version = version
			return r, nil
		})
	})
}

// read returns at most maxBlob+1 bytes of a blob and their version, or no version
// if the blob is missing.
func (b *Backend) read(ctx context.Context, name string) (content []byte, version backends.Version, err error) {
	answer, err := b.container.NewBlobClient(name).DownloadStream(ctx, nil)
	if bloberror.HasCode(err, bloberror.BlobNotFound) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	defer answer.Body.Close()
	if content, err = io.ReadAll(io.LimitReader(answer.Body, maxBlob+1)); err != nil {
		return nil, "", fmt.Errorf("the answer broke off: %w", err)
	}
	version, err = versionOf(answer.ETag)
	return content, version, err
}

// entity is the form of an ETag that stands for one state of one blob. Any other, such
// as *, would make a condition that holds for other states too.
var entity = regexp.MustCompile(`^"[!#-)+-~]+"$`)

func versionOf(tag *azcore.ETag) (backends.Version, error) {
	if tag == nil || !entity.MatchString(string(*tag)) {
		return "", errNoTag
	}
	return backends.Version(*tag), nil
}

// Swap implements [backends.Backend], with the further errors of Load, and
// ErrReadOnly for a blob on which another program holds a lease. It is one request.
func (b *Backend) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	return b.base.Swap(ctx, name, func(ctx context.Context) (backends.Record, error) {
		condition := absent
		if prev.Exists() {
			if !entity.MatchString(string(prev.Version)) {
				return next, fmt.Errorf("%w (and the version to replace is not from this store)", backends.ErrConflict)
			}
			condition = unchanged(azcore.ETag(prev.Version))
		}
		return call(ctx, b, func(ctx context.Context) (_ backends.Record, err error) {
			next.Version, err = b.write(ctx, b.prefix+name+suffix, condition, backends.Encode(name, next))
			if overtaken(err) {
				err = backends.ErrConflict
			}
			return next, err
		})
	})
}

var (
	anyTag = azcore.ETagAny
	absent = &blob.ModifiedAccessConditions{IfNoneMatch: &anyTag}
)

func unchanged(tag azcore.ETag) *blob.ModifiedAccessConditions {
	return &blob.ModifiedAccessConditions{IfMatch: &tag}
}

// overtaken reports whether a conditional write was refused because the blob is in
// another state than the one that it was to replace.
func overtaken(err error) bool {
	return bloberror.HasCode(err, bloberror.ConditionNotMet, bloberror.BlobAlreadyExists, bloberror.BlobNotFound)
}

// write writes a whole blob and returns its version.
func (b *Backend) write(ctx context.Context, name string, condition *blob.ModifiedAccessConditions, content []byte) (backends.Version, error) {
	kind, caching := "application/json", "no-store"
	answer, err := b.container.NewBlockBlobClient(name).Upload(ctx, streaming.NopCloser(bytes.NewReader(content)), &blockblob.UploadOptions{
		HTTPHeaders:      &blob.HTTPHeaders{BlobContentType: &kind, BlobCacheControl: &caching},
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: condition},
	})
	if err != nil {
		return "", err
	}
	return versionOf(answer.ETag)
}

// List implements [backends.Lister], with the further errors of Load. It is a
// request for each 5,000 elections.
func (b *Backend) List(ctx context.Context) ([]string, error) {
	return b.base.List(ctx, func(ctx context.Context) ([]string, error) {
		return call(ctx, b, func(ctx context.Context) (names []string, _ error) {
			pages := b.container.NewListBlobsHierarchyPager("/", &container.ListBlobsHierarchyOptions{Prefix: &b.prefix})
			for pages.More() {
				page, err := pages.NextPage(ctx)
				if err != nil {
					return nil, err
				}
				if page.Segment == nil {
					return nil, errNoTag
				}
				for _, item := range page.Segment.BlobItems {
					if item.Name == nil {
						return nil, errNoTag
					}
					if name, ours := strings.CutSuffix(strings.TrimPrefix(*item.Name, b.prefix), suffix); ours {
						names = append(names, name)
					}
				}
			}
			return names, nil
		})
	})
}

// Describe implements [backends.Backend].
func (b *Backend) Describe() backends.Description {
	return backends.Description{Store: b.base.Store(), MinTTL: minTTL, ReadOnly: b.base.ReadOnly()}
}

// Close implements [backends.Backend]. It ends the calls under way and closes
// the connections, unless the client was given to New.
func (b *Backend) Close() error {
	return b.base.Close(func() error { b.end(); b.closeIdle(); return nil })
}
