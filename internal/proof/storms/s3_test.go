//go:build s3

package storms

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/s3"
	"github.com/elector-go/elector/internal/proof/stores"
)

// The storms run on a server that the tests started only: each write of the service
// costs.
//
// A leader writes what the one before it has written, as one does that computes the
// same report. So the entity tag, an MD5 of the content, does not say who wrote, unless
// the token is in the content.
func TestS3(t *testing.T) {
	t.Setenv("ELECTOR_TEST_S3", "")
	stores.AnyCredentials()
	store := start(t, stores.S3)
	u, err := url.Parse(store.URL)
	must(t, err)
	client, done := stores.S3Client(u.Query().Get("endpoint"), store.Admin)
	t.Cleanup(done)
	storm := func(name string, claim func(*document, context.Context, backends.Lease) error, write func(*document, context.Context, *Attempt) error) Storm {
		d := &document{client: client, bucket: u.Host, key: "data/" + name}
		s := Storm{Election: name, Every: 100 * time.Millisecond, Pause: 100 * time.Millisecond, Seed: 1}
		s.Acquired = func(ctx context.Context, lease backends.Lease) error { return claim(d, ctx, lease) }
		s.Write = func(ctx context.Context, a *Attempt) error { return write(d, ctx, a) }
		for range 3 {
			b, err := s3.New(t.Context(), client, &s3.Options{Bucket: u.Host})
			must(t, err)
			t.Cleanup(func() { must(t, b.Close()) })
			s.Handles = append(s.Handles, b)
		}
		return s
	}
	pass(t, storm("fenced", (*document).claim, (*document).write))
	caught(t, storm("without-a-condition", (*document).claimBeside, func(d *document, ctx context.Context, a *Attempt) error {
		return d.put(ctx, a, a, func(in *awss3.PutObjectInput) { in.IfMatch, in.IfNoneMatch = nil, nil })
	}), late)
	// The token in the metadata alone, with If-Match.
	caught(t, storm("token-beside-the-content", (*document).claimBeside, func(d *document, ctx context.Context, a *Attempt) error {
		return d.put(ctx, a, a, nil)
	}), late)
}

// A document is an object that is written. All write the same content.
type document struct {
	client      *awss3.Client
	bucket, key string
}

var content = []byte("the report\n")

func (d *document) claim(ctx context.Context, lease backends.Lease) error {
	_, err := s3.Claim(ctx, d.client, d.bucket, d.key, lease)
	if errors.As(err, new(*types.NoSuchKey)) {
		err = s3.Write(ctx, d.client, d.bucket, d.key, lease, content, nil)
	}
	return err
}

func (d *document) write(ctx context.Context, a *Attempt) error {
	return s3.Write(ctx, d.client, d.bucket, d.key, a, content, func(*awss3.PutObjectInput) {
		a.Pause()
		a.Send()
	})
}

func (d *document) claimBeside(ctx context.Context, lease backends.Lease) error {
	return d.put(ctx, lease, nil, nil)
}

// put is a broken fence: it reads the metadata, and writes on the condition that the
// content is the same.
func (d *document) put(ctx context.Context, lease backends.Lease, a *Attempt, change func(*awss3.PutObjectInput)) error {
	acquisition, err := lease.Acquisition()
	if err != nil {
		return err
	}
	token := acquisition.Record.Token
	for {
		in := &awss3.PutObjectInput{Bucket: &d.bucket, Key: &d.key, Body: bytes.NewReader(content), IfNoneMatch: aws.String("*"),
			Metadata: map[string]string{"elector-token": fmt.Sprint(token), "elector-election": acquisition.Election}}
		old, err := d.client.HeadObject(ctx, &awss3.HeadObjectInput{Bucket: &d.bucket, Key: &d.key})
		switch {
		case err == nil:
			in.IfMatch, in.IfNoneMatch = old.ETag, nil
			if there, _ := strconv.ParseUint(old.Metadata["elector-token"], 10, 64); there > token {
				return backends.ErrStale
			}
		case !errors.As(err, new(*types.NotFound)):
			return err
		}
		if change != nil {
			change(in)
		}
		if a != nil {
			a.Pause()
			a.Send()
		}
		_, err = d.client.PutObject(ctx, in)
		var answer smithy.APIError
		if !errors.As(err, &answer) || answer.ErrorCode() != "PreconditionFailed" {
			return err
		}
	}
}
