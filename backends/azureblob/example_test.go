package azureblob_test

import (
	"context"
	"log"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/azureblob"
)

// By URL, with a key or a SAS in the environment.
func Example() {
	ctx := context.Background()
	e, err := elector.Open(ctx, "azureblob://myaccount/elections", "invoice-sender", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	err = e.Run(ctx, func(ctx context.Context, lease *elector.Lease) error {
		<-ctx.Done() // work here, with lease.Check before each side effect
		return ctx.Err()
	})
	log.Print(err)
}

// With your own client, for many elections: here with the machine's identity.
func ExampleNew() {
	var credential azcore.TokenCredential // of azidentity.NewDefaultAzureCredential
	client, err := container.NewClient("https://myaccount.blob.core.windows.net/elections", credential, nil)
	if err != nil {
		log.Fatal(err)
	}
	b, err := azureblob.New(context.Background(), client, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	for _, name := range []string{"invoice-sender", "report-writer"} {
		e, err := elector.New(b, name, nil)
		if err != nil {
			log.Fatal(err)
		}
		defer e.Close()
	}
}

// A worker adds to a blob that it reads. A leader that was paused cannot write it
// once a later one has claimed it.
func ExampleClaim() {
	var container *container.Client // yours
	kind := "text/csv"
	work := func(ctx context.Context, lease *elector.Lease) error {
		report := container.NewBlockBlobClient("report.csv")
		content, err := azureblob.Claim(ctx, report, lease)
		if err != nil && !bloberror.HasCode(err, bloberror.BlobNotFound) {
			return err
		}
		content = append(content, "2041,paid\n"...)
		return azureblob.Write(ctx, report, lease, content, &blockblob.UploadOptions{HTTPHeaders: &blob.HTTPHeaders{BlobContentType: &kind}})
	}
	_ = work // for Elector.Run
}
