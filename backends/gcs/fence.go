package gcs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"cloud.google.com/go/storage"

	"github.com/elector-go/elector/backends"
)

// The metadata that fence an object.
const (
	tokenMetadata    = "elector-token"
	electionMetadata = "elector-election"
)

// Write replaces a whole object, and keeps the lease's token and election in its
// metadata. It fails with ErrStale if the object has a higher token of this
// election, and with ErrMisconfigured if it has another election's. It takes two
// requests, and two more for each other writer that comes in between, until ctx
// ends.
//
// An older leader can write until a later one has written. So a leader that reads
// an object, and writes what it computed from that, calls Claim first.
//
// Write returns the lease's error if that is over, and the client's. The client
// and the bucket may be any; set adjusts the writer, its ContentType for example,
// and may be nil.
func Write(ctx context.Context, object *storage.ObjectHandle, holding backends.Holding, content []byte, set func(*storage.Writer)) error {
	_, err := replace(ctx, object, holding, set, func([]byte) []byte { return content })
	return err
}

// Claim reads an object and writes it back with the lease's token, so that no
// older leader can write it any more, and returns the content. It returns the
// errors of Write, and [storage.ErrObjectNotExist] if there is no object.
func Claim(ctx context.Context, object *storage.ObjectHandle, holding backends.Holding) ([]byte, error) {
	return replace(ctx, object, holding, nil, nil)
}

// replace writes content, or what the object holds if content is nil.
func replace(ctx context.Context, object *storage.ObjectHandle, holding backends.Holding, set func(*storage.Writer), content func([]byte) []byte) ([]byte, error) {
	for {
		a, err := holding.Acquisition()
		if err != nil {
			return nil, err
		}
		condition := storage.Conditions{DoesNotExist: true}
		attributes, err := object.Attrs(ctx)
		switch {
		case errors.Is(err, storage.ErrObjectNotExist) && content != nil:
			attributes = &storage.ObjectAttrs{}
		case err != nil:
			return nil, err
		default:
			condition = storage.Conditions{GenerationMatch: attributes.Generation}
			if err := admits(attributes.Metadata, a); err != nil {
				return nil, err
			}
		}
		var next []byte
		if content != nil {
			next = content(nil)
		} else if next, err = read(ctx, object.Generation(attributes.Generation)); errors.Is(err, storage.ErrObjectNotExist) {
			continue // replaced meanwhile
		} else if err != nil {
			return nil, err
		}
		w := object.If(condition).NewWriter(ctx)
		w.ContentType = attributes.ContentType
		if set != nil {
			set(w)
		}
		if w.Metadata == nil {
			w.Metadata = map[string]string{}
		}
		w.Metadata[tokenMetadata], w.Metadata[electionMetadata] = strconv.FormatUint(a.Record.Token, 10), a.Election
		_, err = w.Write(next)
		if answer := w.Close(); answer != nil {
			err = answer
		}
		if code(err) != http.StatusPreconditionFailed || says(err, "orgPolicy") {
			return next, err
		}
	}
}

// admits returns nil if an object with the metadata may be written under the
// acquisition.
func admits(metadata map[string]string, a backends.Acquisition) error {
	digits, fenced := metadata[tokenMetadata]
	if !fenced {
		return nil
	}
	if election := metadata[electionMetadata]; election != a.Election {
		return fmt.Errorf("%w: the object is fenced by election %.140q, and this lease is of %q", backends.ErrMisconfigured, election, a.Election)
	}
	token, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return fmt.Errorf("%w: the object's token %.40q is not a number; remove the metadata %s by hand", backends.ErrMisconfigured, digits, tokenMetadata)
	}
	if token > a.Record.Token {
		return fmt.Errorf("%w: token %d has written the object since; nothing was written", backends.ErrStale, token)
	}
	return nil
}

func read(ctx context.Context, object *storage.ObjectHandle) ([]byte, error) {
	r, err := object.NewReader(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}
