package raw

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/elector-go/elector/backends/azureblob"
	"github.com/elector-go/elector/internal/proof/stores"
)

// An azureRecords has a blob for each record.
type azureRecords struct {
	JSON
	container *container.Client
	prefix    string
}

func openAzureBlob(_ context.Context, u *url.URL) (Records, func() error, error) {
	endpoint, err := url.Parse(u.Query().Get("endpoint"))
	if err != nil || endpoint.Host == "" {
		return nil, nil, errors.New("it is the cloud's own, which is not for breaking")
	}
	name, path, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	client, done, err := stores.AzuriteContainer(endpoint.Host, name)
	if err != nil {
		return nil, nil, err
	}
	r := azureRecords{container: client, prefix: azureblob.DefaultPrefix}
	if path != "" {
		r.prefix = path + "/"
	}
	return r, func() error { done(); return nil }, nil
}

func (r azureRecords) blob(election string) *blockblob.Client {
	return r.container.NewBlockBlobClient(r.prefix + election + ".json")
}

func (r azureRecords) Get(ctx context.Context, election string) ([]byte, error) {
	content, _, err := r.read(ctx, election)
	return content, err
}

func (r azureRecords) read(ctx context.Context, election string) (content []byte, tag *azcore.ETag, err error) {
	answer, err := r.blob(election).DownloadStream(ctx, nil)
	if bloberror.HasCode(err, bloberror.BlobNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	content, err = io.ReadAll(answer.Body)
	return content, answer.ETag, err
}

func (r azureRecords) Put(ctx context.Context, election string, content []byte) error {
	return r.write(ctx, election, content, nil)
}

func (r azureRecords) write(ctx context.Context, election string, content []byte, condition *blob.ModifiedAccessConditions) error {
	_, err := r.blob(election).Upload(ctx, streaming.NopCloser(bytes.NewReader(content)), &blockblob.UploadOptions{
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: condition}})
	return err
}

func (r azureRecords) Replace(ctx context.Context, election string, old, content []byte) (bool, error) {
	now, tag, err := r.read(ctx, election)
	if err != nil || !bytes.Equal(now, old) {
		return false, err
	}
	err = r.write(ctx, election, content, &blob.ModifiedAccessConditions{IfMatch: tag})
	if bloberror.HasCode(err, bloberror.ConditionNotMet) {
		return false, nil
	}
	return err == nil, err
}

func (r azureRecords) Delete(ctx context.Context, election string) error {
	_, err := r.blob(election).Delete(ctx, nil)
	if bloberror.HasCode(err, bloberror.BlobNotFound) {
		return nil
	}
	return err
}
