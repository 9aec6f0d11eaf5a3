package raw

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/elector-go/elector/backends/s3"
	"github.com/elector-go/elector/internal/proof/stores"
)

// An s3Records has an object for each record.
type s3Records struct {
	JSON
	client         *awss3.Client
	bucket, prefix string
}

// openS3 is for servers that the tests started, which look at no credentials.
func openS3(_ context.Context, u *url.URL) (Records, func() error, error) {
	endpoint := u.Query().Get("endpoint")
	if endpoint == "" {
		return nil, nil, errors.New("it is the cloud's own, which is not for breaking")
	}
	client, done := stores.S3Client(endpoint, stores.Login{User: "test", Password: "test"})
	r := s3Records{client: client, bucket: u.Host, prefix: s3.DefaultPrefix}
	if path := strings.Trim(u.Path, "/"); path != "" {
		r.prefix = path + "/"
	}
	return r, func() error { done(); return nil }, nil
}

func (r s3Records) Get(ctx context.Context, election string) ([]byte, error) {
	content, _, err := r.read(ctx, election)
	return content, err
}

func (r s3Records) read(ctx context.Context, election string) (content []byte, etag *string, err error) {
	o, err := r.client.GetObject(ctx, &awss3.GetObjectInput{Bucket: &r.bucket, Key: aws.String(r.prefix + election)})
	if errors.As(err, new(*types.NoSuchKey)) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer o.Body.Close()
	content, err = io.ReadAll(o.Body)
	return content, o.ETag, err
}

func (r s3Records) put(ctx context.Context, election string, content []byte, etag *string) error {
	_, err := r.client.PutObject(ctx, &awss3.PutObjectInput{Bucket: &r.bucket, Key: aws.String(r.prefix + election), Body: bytes.NewReader(content), IfMatch: etag})
	return err
}

func (r s3Records) Put(ctx context.Context, election string, content []byte) error {
	return r.put(ctx, election, content, nil)
}

func (r s3Records) Replace(ctx context.Context, election string, old, content []byte) (bool, error) {
	now, etag, err := r.read(ctx, election)
	if err != nil || etag == nil || !bytes.Equal(now, old) {
		return false, err
	}
	err = r.put(ctx, election, content, etag)
	var answer smithy.APIError
	if errors.As(err, &answer) && answer.ErrorCode() == "PreconditionFailed" {
		return false, nil
	}
	return err == nil, err
}

func (r s3Records) Delete(ctx context.Context, election string) error {
	_, err := r.client.DeleteObject(ctx, &awss3.DeleteObjectInput{Bucket: &r.bucket, Key: aws.String(r.prefix + election)})
	return err
}
