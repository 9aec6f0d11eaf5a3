package raw

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"cloud.google.com/go/storage"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"github.com/elector-go/elector/backends/gcs"
)

// A gcsRecords has an object for each record.
type gcsRecords struct {
	JSON
	bucket *storage.BucketHandle
	prefix string
}

func openGCS(_ context.Context, u *url.URL) (Records, func() error, error) {
	endpoint, _, _ := strings.Cut(u.Query().Get("endpoint"), "/storage/v1")
	if endpoint == "" {
		return nil, nil, errors.New("it is the cloud's own, which is not for breaking")
	}
	transport := &http.Transport{}
	// The client is not ended by this context.
	client, err := storage.NewClient(context.Background(),
		storage.WithJSONReads(),
		option.WithEndpoint(endpoint+"/storage/v1/"),
		option.WithCredentials(&google.Credentials{}),
		option.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		return nil, nil, err
	}
	r := gcsRecords{bucket: client.Bucket(u.Host).Retryer(storage.WithPolicy(storage.RetryAlways)), prefix: gcs.DefaultPrefix}
	if path := strings.Trim(u.Path, "/"); path != "" {
		r.prefix = path + "/"
	}
	return r, func() error {
		defer transport.CloseIdleConnections()
		return client.Close()
	}, nil
}

func (r gcsRecords) Get(ctx context.Context, election string) ([]byte, error) {
	content, _, err := r.read(ctx, election)
	return content, err
}

func (r gcsRecords) read(ctx context.Context, election string) (content []byte, generation int64, err error) {
	reader, err := r.bucket.Object(r.prefix + election).NewReader(ctx)
	if errors.Is(err, storage.ErrObjectNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer reader.Close()
	content, err = io.ReadAll(reader)
	return content, reader.Attrs.Generation, err
}

func (r gcsRecords) Put(ctx context.Context, election string, content []byte) error {
	return write(ctx, r.bucket.Object(r.prefix+election), content)
}

func write(ctx context.Context, to *storage.ObjectHandle, content []byte) error {
	w := to.NewWriter(ctx)
	w.CacheControl = "no-store"
	_, err := w.Write(content)
	return errors.Join(err, w.Close())
}

func (r gcsRecords) Replace(ctx context.Context, election string, old, content []byte) (bool, error) {
	now, generation, err := r.read(ctx, election)
	if err != nil || !bytes.Equal(now, old) {
		return false, err
	}
	err = write(ctx, r.bucket.Object(r.prefix+election).If(storage.Conditions{GenerationMatch: generation}), content)
	var answer *googleapi.Error
	if errors.As(err, &answer) && answer.Code == http.StatusPreconditionFailed {
		return false, nil
	}
	return err == nil, err
}

func (r gcsRecords) Delete(ctx context.Context, election string) error {
	err := r.bucket.Object(r.prefix + election).Delete(ctx)
	if errors.Is(err, storage.ErrObjectNotExist) {
		return nil
	}
	return err
}
