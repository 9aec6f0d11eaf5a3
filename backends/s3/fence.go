package s3

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/awsclient"
	"github.com/elector-go/elector/internal/fencing"
)

// The metadata that fence an object.
const (
	tokenMetadata    = "elector-token"
	electionMetadata = "elector-election"
)

// Write replaces a whole object, or creates it, and keeps the lease's token and
// election in its metadata. It fails if the object has a higher token. All writers
// of the object must use Write, and none may delete it: its token would be
// forgotten. See Fencing in the package comment.
//
// The object is stored compressed, with the Content-Encoding gzip and the token in
// the gzip header too: readers must decompress it. The election may be in any store,
// and the object in any bucket. Attributes of the old object are not kept; set
// adjusts the input before each try, its ContentType for example, and may be nil.
//
// Write sends two requests, one for the metadata and one for the content, and
// repeats them as the client does; and again each time that another write comes in
// between, until ctx ends. It holds a second copy of the content meanwhile. Its
// errors are:
//
//   - The lease's error if that is over.
//   - ErrStale if the object has a higher token: the worker must stop.
//   - ErrMisconfigured if the object has another election's token, or one that is
//     no number.
//   - Any other error of the client. Whether the object was written is unknown.
func Write(ctx context.Context, client *s3.Client, bucket, key string, lease backends.Lease, content []byte, set func(*s3.PutObjectInput)) error {
	return replace(ctx, client, bucket, key, lease, func(in *s3.PutObjectInput, _ *s3.HeadObjectOutput) ([]byte, error) {
		if set != nil {
			set(in)
		}
		return content, nil
	})
}

// Claim reads an object and writes it back with the lease's token, so that an earlier
// leader cannot write it any more, and returns the content, decompressed. A leader
// that computes what it writes from what it reads calls Claim first. The object keeps
// its metadata, headers, storage class and encryption; it loses its tags and access
// control list.
//
// Claim sends three requests, and behaves like Write otherwise. It returns the errors
// of Write, types.NoSuchKey if there is no object (then create it with Write), and
// ErrMisconfigured if the object has another Content-Encoding than gzip.
func Claim(ctx context.Context, client *s3.Client, bucket, key string, lease backends.Lease) ([]byte, error) {
	var content []byte
	err := replace(ctx, client, bucket, key, lease, func(in *s3.PutObjectInput, old *s3.HeadObjectOutput) (_ []byte, err error) {
		get := &s3.GetObjectInput{Bucket: &bucket, Key: &key}
		if old != nil {
			get.IfMatch = old.ETag
		}
		o, err := client.GetObject(ctx, get)
		if err != nil {
			return nil, err
		}
		defer o.Body.Close()
		in.Metadata, in.ContentType, in.CacheControl = o.Metadata, o.ContentType, o.CacheControl
		in.ContentDisposition, in.ContentLanguage = o.ContentDisposition, o.ContentLanguage
		in.StorageClass, in.ServerSideEncryption, in.SSEKMSKeyId = o.StorageClass, o.ServerSideEncryption, o.SSEKMSKeyId
		in.WebsiteRedirectLocation = o.WebsiteRedirectLocation
		content, err = decompress(aws.ToString(o.ContentEncoding), o.Body)
		return content, err
	})
	if err != nil {
		return nil, err
	}
	return content, nil
}

// replace writes what next returns for the old object, nil if there is none, until
// no other write comes in between.
func replace(ctx context.Context, client *s3.Client, bucket, key string, lease backends.Lease, next func(in *s3.PutObjectInput, old *s3.HeadObjectOutput) ([]byte, error)) error {
	failed, failedAt := error(nil), ""
	for {
		a, err := lease.Acquisition()
		if err != nil {
			return err
		}
		old, err := client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &bucket, Key: &key})
		etag := ""
		switch c := awsclient.Code(err); {
		case c == "NotFound", c == noSuchKey: // an answer to HEAD has no content to name the reason
			old = nil
		case err != nil:
			return err
		default:
			if etag = aws.ToString(old.ETag); etag == "" {
				return errNoTag
			}
			if err := fencing.Admit(old.Metadata, tokenMetadata, electionMetadata, a); err != nil {
				return fmt.Errorf("writing s3://%s/%s under the lease of election %s: %w", bucket, key, a.Election, err)
			}
		}
		if failed != nil && etag == failedAt && awsclient.Code(failed) == "PreconditionFailed" { // so no other write is the reason
			return failed
		}
		in := &s3.PutObjectInput{Bucket: &bucket, Key: &key}
		failed, failedAt = write(ctx, client, in, old, etag, a, next), etag
		if !conflict(failed, etag) {
			return failed
		}
	}
}

// write makes one try of replace.
func write(ctx context.Context, client *s3.Client, in *s3.PutObjectInput, old *s3.HeadObjectOutput, etag string, a backends.Acquisition, next func(*s3.PutObjectInput, *s3.HeadObjectOutput) ([]byte, error)) error {
	content, err := next(in, old)
	if err != nil {
		return err
	}
	metadata := map[string]string{}
	maps.Copy(metadata, in.Metadata)
	metadata[tokenMetadata], metadata[electionMetadata] = strconv.FormatUint(a.Record.Token, 10), a.Election
	compressed, err := compress(content, a)
	if err != nil {
		return err
	}
	in.Metadata, in.ContentEncoding, in.Body = metadata, aws.String("gzip"), bytes.NewReader(compressed)
	condition(in, etag)
	_, err = client.PutObject(ctx, in)
	return err
}

// compress puts the token into the bytes. The entity tag is the MD5 of the bytes and
// not of the metadata: a later leader that writes the same content would leave the
// tag as it was, and the condition of a late write would hold.
func compress(content []byte, a backends.Acquisition) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Comment = fmt.Sprintf("%s=%d", tokenMetadata, a.Record.Token)
	_, err := w.Write(content)
	err = errors.Join(err, w.Close())
	return b.Bytes(), err
}

func decompress(encoding string, r io.Reader) ([]byte, error) {
	switch encoding {
	case "", "identity", "aws-chunked":
		return io.ReadAll(r)
	case "gzip":
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, err
		}
		return io.ReadAll(z)
	}
	return nil, fmt.Errorf("%w: the object has the Content-Encoding %.40q, and only gzip can be fenced", backends.ErrMisconfigured, encoding)
}
