package gcs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"cloud.google.com/go/storage"

	"github.com/elector-go/elector/backends"
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
// The election may be in any store, and the object in any bucket. As with
// [storage.Writer], attributes of the old object are not kept; set adjusts the
// writer, its ContentType for example, before each try, and may be nil.
//
// Write sends two requests, one for the attributes and one for the content, and
// repeats them as the client does; and again each time that another write comes in
// between, until ctx ends. It holds a second copy of the content meanwhile. Its
// errors are:
//
//   - The lease's error if that is over.
//   - ErrStale if the object has a higher token: the worker must stop.
//   - ErrMisconfigured if the object has another election's token, or one that is
//     no number.
//   - Any other error of the client. Whether the object was written is unknown.
func Write(ctx context.Context, object *storage.ObjectHandle, lease backends.Lease, content []byte, set func(*storage.Writer)) error {
	return replace(ctx, object, lease, func(w *storage.Writer, _ *storage.ObjectAttrs) ([]byte, error) {
		if set != nil {
			set(w)
		}
		return content, nil
	})
}

// Claim reads an object and writes it back with the lease's token, so that an
// earlier leader cannot write it any more, and returns the content as it is stored:
// compressed, if its ContentEncoding is gzip, which a client with
// [storage.WithJSONReads] cannot read. A leader that computes what it writes
// from what it reads calls Claim first. The object's other metadata and attributes
// stay, except access control lists that the caller may not read.
//
// Claim sends three requests, and behaves like Write otherwise. It returns the
// errors of Write, and [storage.ErrObjectNotExist] if there is no object: then
// create it with Write.
func Claim(ctx context.Context, object *storage.ObjectHandle, lease backends.Lease) ([]byte, error) {
	var content []byte
	err := replace(ctx, object, lease, func(w *storage.Writer, old *storage.ObjectAttrs) (_ []byte, err error) {
		if old == nil {
			return nil, storage.ErrObjectNotExist
		}
		content, err = read(ctx, object.Generation(old.Generation).ReadCompressed(old.ContentEncoding == "gzip"))
		w.ObjectAttrs = *old // with the check sums, which the service compares
		w.SendCRC32C = true
		w.KMSKeyName, _, _ = strings.Cut(old.KMSKeyName, "/cryptoKeyVersions/")
		return content, err
	})
	if err != nil {
		return nil, err
	}
	return content, nil
}

// replace writes what next returns for the old object, nil if there is none, until
// no other write comes in between.
func replace(ctx context.Context, object *storage.ObjectHandle, lease backends.Lease, next func(w *storage.Writer, old *storage.ObjectAttrs) ([]byte, error)) error {
	failed, failedAt := error(nil), int64(0)
	for {
		a, err := lease.Acquisition()
		if err != nil {
			return err
		}
		old, err := object.Attrs(ctx)
		condition, generation := storage.Conditions{DoesNotExist: true}, int64(0)
		switch {
		case err == nil:
			condition, generation = storage.Conditions{GenerationMatch: old.Generation}, old.Generation
			if err := fencing.Admit(old.Metadata, tokenMetadata, electionMetadata, a); err != nil {
				return fmt.Errorf("writing gs://%s/%s under the lease of election %s: %w", object.BucketName(), object.ObjectName(), a.Election, err)
			}
		case !errors.Is(err, storage.ErrObjectNotExist):
			return err
		}
		if failed != nil && generation == failedAt { // so no other write is the reason
			return failed
		}
		failed, failedAt = write(object.If(condition).NewWriter(ctx), old, a, next), generation
		if code(failed) != http.StatusPreconditionFailed && (old == nil || !errors.Is(failed, storage.ErrObjectNotExist)) {
			return failed
		}
	}
}

// write makes one try of replace.
func write(w *storage.Writer, old *storage.ObjectAttrs, a backends.Acquisition, next func(*storage.Writer, *storage.ObjectAttrs) ([]byte, error)) error {
	content, err := next(w, old)
	if err != nil {
		return err
	}
	metadata := map[string]string{}
	maps.Copy(metadata, w.Metadata)
	metadata[tokenMetadata], metadata[electionMetadata] = strconv.FormatUint(a.Record.Token, 10), a.Election
	w.Metadata = metadata
	w.ChunkSize = len(content) + 1 // in one request, under its condition
	_, err = w.Write(content)
	if answer := w.Close(); answer != nil { // the error of Write gives no reason
		err = answer
	}
	return err
}

func read(ctx context.Context, object *storage.ObjectHandle) ([]byte, error) {
	r, err := object.NewReader(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}
