package s3

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/awsclient"
)

// DefaultPrefix begins the keys of objects by default.
const DefaultPrefix = "elector/"

// minTTL leaves a request 450 ms, a sixth of the time that a holder trusts its
// lease. S3 answers within 100 to 200 ms.
const minTTL = 3 * time.Second

// maxObject is how many bytes of an object are read, more than any record has.
const maxObject = 64 << 10

// A Backend keeps each record in one object. Open and New make it.
type Backend struct {
	base   *backends.Base
	client *s3.Client
	bucket string
	prefix string
	idle   func()      // closes idle connections
	proven atomic.Bool // the server keeps conditions, see probe
}

var (
	_ backends.Lister    = (*Backend)(nil)
	_ backends.Inspector = (*Backend)(nil)
)

func newBackend(client *s3.Client, bucket, prefix string, idle func()) *Backend {
	b := &Backend{client: client, bucket: bucket, prefix: prefix, idle: idle}
	o := client.Options()
	store := "s3://" + bucket + "/" + prefix + "?region=" + o.Region
	if o.BaseEndpoint != nil {
		if u, err := url.Parse(*o.BaseEndpoint); err == nil {
			store += "&endpoint=" + backends.Redact(u)
		}
	}
	b.base = backends.NewBase(store, b.classify)
	return b
}

// Load implements [backends.Backend]. It is one request.
func (b *Backend) Load(ctx context.Context, name string) (backends.Record, error) {
	return b.base.Load(ctx, name, func(ctx context.Context) (backends.Record, error) {
		content, etag, err := b.get(ctx, b.prefix+name)
		if err != nil || etag == "" {
			return backends.Record{}, err
		}
		r, err := backends.Decode(name, content)
		r.Version = backends.Version(etag)
		return r, err
	})
}

// get returns at most maxObject+1 bytes of an object and their entity tag, or none
// if there is no object.
func (b *Backend) get(ctx context.Context, key string) (content []byte, etag string, err error) {
	o, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.bucket, Key: &key}, once)
	switch {
	case awsclient.Code(err) == noSuchKey:
		return nil, "", nil
	case err != nil:
		return nil, "", b.failed(ctx, err)
	}
	defer o.Body.Close()
	if content, err = io.ReadAll(io.LimitReader(o.Body, maxObject+1)); err != nil {
		return nil, "", b.failed(ctx, fmt.Errorf("the answer broke off: %w", err))
	}
	if etag = aws.ToString(o.ETag); etag == "" {
		return nil, "", errNoTag
	}
	if len(content) <= maxObject && torn(o, content) {
		return nil, "", errTorn
	}
	return content, etag, nil
}

// md5Form is how an entity tag looks that is the MD5 of the content. That of an
// object with a key of KMS or of the caller looks the same, and is not.
var md5Form = regexp.MustCompile(`^"[0-9a-f]{32}"$`)

// torn reports whether the content is not that of the entity tag.
func torn(o *s3.GetObjectOutput, content []byte) bool {
	plain := o.ServerSideEncryption == "" || o.ServerSideEncryption == types.ServerSideEncryptionAes256
	if !plain || o.SSECustomerAlgorithm != nil || !md5Form.MatchString(*o.ETag) {
		return false
	}
	sum := md5.Sum(content)
	return strings.Trim(*o.ETag, `"`) != hex.EncodeToString(sum[:])
}

// Swap implements [backends.Backend]. It is one request, or the probe too if Open
// had no permission for that: see docs/stores/s3.md.
func (b *Backend) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	return b.base.Swap(ctx, name, func(ctx context.Context) (backends.Record, error) {
		if !b.proven.Load() {
			if err := b.probe(ctx); err != nil {
				return backends.Record{}, err
			}
		}
		etag, err := b.put(ctx, b.prefix+name, string(prev.Version), backends.Encode(name, next))
		next.Version = backends.Version(etag)
		return next, err
	})
}

// put writes an object if it has the entity tag, or if there is none and the tag is
// empty. Otherwise it returns ErrConflict.
func (b *Backend) put(ctx context.Context, key, etag string, content []byte) (string, error) {
	sum := md5.Sum(content)
	in := &s3.PutObjectInput{
		Bucket:       &b.bucket,
		Key:          &key,
		Body:         bytes.NewReader(content),
		ContentMD5:   aws.String(base64.StdEncoding.EncodeToString(sum[:])), // content that arrives changed is refused
		ContentType:  aws.String("application/json"),
		CacheControl: aws.String("no-store"), // for what may stand in front of the bucket
	}
	condition(in, etag)
	o, err := b.client.PutObject(ctx, in, once)
	switch {
	case conflict(err, etag):
		return "", fmt.Errorf("%w: %w", backends.ErrConflict, err)
	case err != nil:
		return "", b.failed(ctx, err)
	case aws.ToString(o.ETag) == "":
		return "", errNoTag
	}
	return *o.ETag, nil
}

// condition makes a write depend on the entity tag; an empty one stands for no
// object.
func condition(in *s3.PutObjectInput, etag string) {
	if etag == "" {
		in.IfNoneMatch = aws.String("*")
	} else {
		in.IfMatch = &etag
	}
}

// conflict reports whether a write was refused because the object has another
// entity tag: in two other words while a write or a removal is under way, or if the
// object is gone.
func conflict(err error, etag string) bool {
	switch awsclient.Code(err) {
	case "PreconditionFailed", "ConditionalRequestConflict":
		return true
	case noSuchKey:
		return etag != ""
	}
	return false
}

// once makes a call send one request, whatever the client's policy is: a repeated
// conditional write can fail because its own first try succeeded. And it keeps newer
// releases of the SDK from adding a check sum that only Amazon's servers know.
func once(o *s3.Options) {
	o.Retryer = aws.NopRetryer{}
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		for _, id := range []string{"AWSChecksum:SetupInputContext", "AWSChecksum:SetupOutputContext"} {
			_, _ = stack.Initialize.Remove(id) // there is none in some releases
		}
		return nil
	})
}

// List implements [backends.Lister]. It is a request for each 1,000 elections.
func (b *Backend) List(ctx context.Context) ([]string, error) {
	return b.base.List(ctx, func(ctx context.Context) (names []string, _ error) {
		pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{Bucket: &b.bucket, Prefix: &b.prefix, Delimiter: aws.String("/")})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx, once)
			if err != nil {
				return nil, b.failed(ctx, err)
			}
			for _, o := range page.Contents {
				names = append(names, strings.TrimPrefix(aws.ToString(o.Key), b.prefix))
			}
		}
		return names, nil
	})
}

// Describe implements [backends.Backend].
func (b *Backend) Describe() backends.Description {
	return backends.Description{Store: b.base.Store(), MinTTL: minTTL, ReadOnly: b.base.ReadOnly()}
}

// Close implements [backends.Backend]. It ends the calls under way and closes the
// idle connections, except those of a client that was given to New.
func (b *Backend) Close() error {
	return b.base.Close(func() error { b.idle(); return nil })
}

// probe makes sure that the server keeps conditions, on an object that no election
// has. Some servers ignore the header fields and write: two candidates would win. On a
// server that is not Amazon's, rivals also write at once.
func (b *Backend) probe(ctx context.Context) error {
	key := b.prefix + ".probe"
	refused := func(etag string) (bool, error) {
		err := b.try(ctx, key, etag, []byte(probed))
		if errors.Is(err, backends.ErrConflict) {
			return true, nil
		}
		return false, err
	}
	there, err := refused("")
	if err == nil && !there {
		there, err = refused("") // the first one has created it
	}
	if err != nil {
		return err
	}
	if !there {
		return fmt.Errorf("%w: it created an object that exists, in spite of If-None-Match", errUnconditional)
	}
	changed, err := refused(`"00000000000000000000000000000000"`)
	if err != nil {
		return err
	}
	if !changed {
		return fmt.Errorf("%w: it overwrote an object with another entity tag than that of If-Match", errUnconditional)
	}
	if !amazon(b.client.Options().BaseEndpoint) {
		if err := b.race(ctx, key); err != nil {
			return err
		}
	}
	b.proven.Store(true)
	return nil
}

// probed is how the object of the probe begins.
const probed = "elector checks here that the server keeps conditional writes apart\n"
