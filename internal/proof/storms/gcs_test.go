package storms

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/storage"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/option"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/gcs"
	"github.com/elector-go/elector/internal/proof/stores"
)

// The storms run on an emulator only: the service takes about one write a second of
// an object.
func TestGCS(t *testing.T) {
	t.Setenv("ELECTOR_TEST_GCS", "")
	u, err := url.Parse(start(t, stores.GCS).URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := storage.NewClient(t.Context(), storage.WithJSONReads(), option.WithEndpoint(u.Query().Get("endpoint")),
		option.WithCredentials(&google.Credentials{}), option.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	storm := func(name string, write func(*blob, context.Context, *Attempt) error) Storm {
		b := &blob{ObjectHandle: client.Bucket(u.Host).Object("data/" + name)}
		s := Storm{Election: name, Every: 100 * time.Millisecond, Pause: 100 * time.Millisecond, Seed: 1, Acquired: b.acquired, Order: b.order}
		s.Write = func(ctx context.Context, a *Attempt) error { return write(b, ctx, a) }
		for range 3 {
			s.Handles = append(s.Handles, made(gcs.New(t.Context(), client, &gcs.Options{Bucket: u.Host})))
		}
		return s
	}
	pass(t, storm("fenced", (*blob).write))
	caught(t, storm("without-a-generation", (*blob).writeBlindly), late)
}

// A blob is an object that is written, with the generations that the writes made.
// The emulator's are the time, in microseconds.
type blob struct {
	*storage.ObjectHandle
	mutex                sync.Mutex
	acquisitions, writes []Mark
}

func (b *blob) acquired(ctx context.Context, lease backends.Lease) error {
	a, err := lease.Acquisition()
	if err != nil {
		return err
	}
	_, err = gcs.Claim(ctx, b.ObjectHandle, lease)
	if errors.Is(err, storage.ErrObjectNotExist) {
		err = gcs.Write(ctx, b.ObjectHandle, lease, nil, nil)
	}
	if err != nil {
		return err
	}
	attributes, err := b.Attrs(ctx)
	if err != nil {
		return err
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.acquisitions = append(b.acquisitions, Mark{a.Record.Token, attributes.Generation})
	return nil
}

func (b *blob) write(ctx context.Context, a *Attempt) error {
	var last *storage.Writer
	err := gcs.Write(ctx, b.ObjectHandle, a, []byte(fmt.Sprint(a.Number)), func(w *storage.Writer) {
		a.Pause()
		a.Send()
		last = w
	})
	if err != nil {
		return err
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.writes = append(b.writes, Mark{a.Token, last.Attrs().Generation})
	return nil
}

// writeBlindly is a broken fence.
func (b *blob) writeBlindly(ctx context.Context, a *Attempt) error {
	old, err := b.Attrs(ctx)
	if err != nil {
		return err
	}
	if token, _ := strconv.ParseUint(old.Metadata["elector-token"], 10, 64); token > a.Token {
		return backends.ErrStale
	}
	a.Pause()
	a.Send()
	w := b.NewWriter(ctx)
	w.Metadata = map[string]string{"elector-token": fmt.Sprint(a.Token), "elector-election": old.Metadata["elector-election"]}
	_, err = strings.NewReader(fmt.Sprint(a.Number)).WriteTo(w)
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.writes = append(b.writes, Mark{a.Token, w.Attrs().Generation})
	return nil
}

func (b *blob) order(context.Context) (acquisitions, writes []Mark, err error) {
	return b.acquisitions, b.writes, nil
}
