package azureblob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fencing"
)

// The metadata that fence a blob. Azure compares their names without case.
const (
	tokenMetadata    = "elector_token"
	electionMetadata = "elector_election"
)

// Write replaces a whole block blob, or creates it, and keeps the lease's token and
// election in its metadata. It fails if the blob has a higher token. All writers of
// the blob must use Write, and none may delete it: its token would be forgotten. See
// Fencing in the package comment.
//
// The election may be in any store, and the blob in any container. As with
// [blockblob.Client.Upload], settings of the old blob are not kept; options, which
// may be nil, sets those of the new one. Its conditions on the ETag and on times are
// ignored.
//
// Write sends two requests, one for the properties and one for the content, and
// repeats them as the client does; and again each time that another write comes in
// between, until ctx ends. Its errors are:
//
//   - The lease's error if that is over.
//   - ErrStale if the blob has a higher token: the worker must stop.
//   - ErrMisconfigured if the blob has another election's token, or one that is no
//     number.
//   - Any other error of the client. Whether the blob was written is unknown.
func Write(ctx context.Context, client *blockblob.Client, lease backends.Lease, content []byte, options *blockblob.UploadOptions) error {
	o := blockblob.UploadOptions{}
	if options != nil {
		o = *options
	}
	var held *blob.LeaseAccessConditions
	if o.AccessConditions != nil {
		held = o.AccessConditions.LeaseAccessConditions
	}
	return replace(ctx, client, lease, func(old *state, condition *blob.ModifiedAccessConditions, fence map[string]*string) error {
		u := o
		u.Metadata = fenced(o.Metadata, fence)
		u.AccessConditions = &blob.AccessConditions{LeaseAccessConditions: held, ModifiedAccessConditions: condition}
		_, err := client.Upload(ctx, streaming.NopCloser(bytes.NewReader(content)), &u)
		return err
	})
}

// Claim puts the lease's token on a blob, so that an earlier leader cannot write it
// any more, and returns the content as it is stored. A leader that computes what it
// writes from what it reads calls Claim first. All else of the blob stays as it is.
//
// Claim sends three requests, and behaves like Write otherwise. It returns the
// errors of Write, and one with the code [bloberror.BlobNotFound] if there is no
// blob: then create it with Write.
func Claim(ctx context.Context, client *blockblob.Client, lease backends.Lease) ([]byte, error) {
	var content []byte
	err := replace(ctx, client, lease, func(old *state, condition *blob.ModifiedAccessConditions, fence map[string]*string) error {
		if old.missing != nil {
			return old.missing
		}
		claimed, err := client.SetMetadata(ctx, fenced(old.metadata, fence), &blob.SetMetadataOptions{AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: condition}})
		if err != nil {
			return err
		}
		if claimed.ETag == nil {
			return errNoTag
		}
		content, err = read(ctx, client, *claimed.ETag)
		return err
	})
	if err != nil {
		return nil, err
	}
	return content, nil
}

// A state is what a blob was found as.
type state struct {
	missing  error // why there is none
	tag      azcore.ETag
	metadata map[string]*string
	fence    map[string]string // the metadata with names in lower case
}

// replace calls write for the state of a blob, until no other write comes in
// between.
func replace(ctx context.Context, client *blockblob.Client, lease backends.Lease, write func(old *state, condition *blob.ModifiedAccessConditions, fence map[string]*string) error) error {
	failed, failedAt := error(nil), azcore.ETag("")
	for {
		a, err := lease.Acquisition()
		if err != nil {
			return err
		}
		old, err := look(ctx, client)
		if err != nil {
			return plain(err)
		}
		if err := fencing.Admit(old.fence, tokenMetadata, electionMetadata, a); err != nil {
			address, _, _ := strings.Cut(client.URL(), "?")
			return fmt.Errorf("writing %s under the lease of election %s: %w", address, a.Election, err)
		}
		if failed != nil && old.tag == failedAt { // so no other write is the reason
			return plain(failed)
		}
		condition := absent
		if old.missing == nil {
			condition = unchanged(old.tag)
		}
		token := strconv.FormatUint(a.Record.Token, 10)
		failed, failedAt = write(old, condition, map[string]*string{tokenMetadata: &token, electionMetadata: &a.Election}), old.tag
		if !overtaken(failed) || errors.Is(failed, old.missing) {
			return plain(failed)
		}
	}
}

// look returns the state of a blob.
func look(ctx context.Context, client *blockblob.Client) (*state, error) {
	p, err := client.GetProperties(ctx, nil)
	switch {
	case bloberror.HasCode(err, bloberror.BlobNotFound):
		return &state{missing: err}, nil
	case err != nil:
		return nil, err
	}
	if _, err := versionOf(p.ETag); err != nil {
		return nil, err
	}
	s := &state{tag: *p.ETag, metadata: p.Metadata, fence: map[string]string{}}
	for key, value := range p.Metadata {
		if value != nil {
			s.fence[strings.ToLower(key)] = *value
		}
	}
	return s, nil
}

// fenced returns the metadata with a fence in place of the one that it may have.
func fenced(metadata, fence map[string]*string) map[string]*string {
	all := maps.Clone(fence)
	for key, value := range metadata {
		if fence[strings.ToLower(key)] == nil {
			all[key] = value
		}
	}
	return all
}

// read returns the content of one state of a blob.
func read(ctx context.Context, client *blockblob.Client, tag azcore.ETag) ([]byte, error) {
	answer, err := client.DownloadStream(ctx, &blob.DownloadStreamOptions{AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: unchanged(tag)}})
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return io.ReadAll(answer.Body)
}
