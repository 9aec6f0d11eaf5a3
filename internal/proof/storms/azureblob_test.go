//go:build azureblob

package storms

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/azureblob"
	"github.com/elector-go/elector/internal/proof/stores"
)

// The storms run on an emulator only, whose key everybody knows.
func TestAzureBlob(t *testing.T) {
	t.Setenv("ELECTOR_TEST_AZUREBLOB", "")
	s := start(t, stores.AzureBlob)
	storm := func(name string, write func(*azureBlob, context.Context, *Attempt) error) (*azureBlob, Storm) {
		b := &azureBlob{links: map[string]link{}}
		watched, done, err := stores.AzuriteContainer(s.Address, "elector", b)
		must(t, err)
		t.Cleanup(done)
		plain, done, err := stores.AzuriteContainer(s.Address, "elector")
		must(t, err)
		t.Cleanup(done)
		b.Client = watched.NewBlockBlobClient("data/" + name)
		s := Storm{Election: name, Every: 100 * time.Millisecond, Pause: 100 * time.Millisecond, Seed: 1, Acquired: b.acquired}
		s.Write = func(ctx context.Context, a *Attempt) error {
			return write(b, context.WithValue(ctx, attempt{}, a), a)
		}
		for range 3 {
			s.Handles = append(s.Handles, made(azureblob.New(t.Context(), plain, nil)))
		}
		return b, s
	}
	b, fenced := storm("fenced", (*azureBlob).write)
	fenced.Order = b.order
	pass(t, fenced)
	_, broken := storm("without-an-etag", (*azureBlob).writeBlindly)
	caught(t, broken, late)
}

// An azureBlob is written, and watches its own client: azurite's ETags are in no
// order, but each write names the one that it replaces.
type azureBlob struct {
	*blockblob.Client
	mutex sync.Mutex
	links map[string]link // by the ETag that was replaced, empty at first
}

type link struct {
	tag         string // that it made
	token       uint64
	acquisition bool
}

// attempt is the key of the *Attempt in the context of a write.
type attempt struct{}

// Do implements [policy.Policy].
func (b *azureBlob) Do(r *policy.Request) (*http.Response, error) {
	if r.Raw().Method != http.MethodPut {
		return r.Next()
	}
	a, writing := r.Raw().Context().Value(attempt{}).(*Attempt)
	if writing {
		a.Pause()
		a.Send()
	}
	header := r.Raw().Header
	token := uint64(0)
	for name, values := range header { // the library does not write them as net/http does
		if strings.EqualFold(name, "x-ms-meta-elector_token") {
			token, _ = strconv.ParseUint(values[0], 10, 64)
		}
	}
	answer, err := r.Next()
	if err == nil && answer.StatusCode < 300 {
		b.mutex.Lock()
		defer b.mutex.Unlock()
		b.links[header.Get("If-Match")] = link{answer.Header.Get("ETag"), token, !writing}
	}
	return answer, err
}

func (b *azureBlob) acquired(ctx context.Context, lease backends.Lease) error {
	_, err := azureblob.Claim(ctx, b.Client, lease)
	if bloberror.HasCode(err, bloberror.BlobNotFound) {
		err = azureblob.Write(ctx, b.Client, lease, nil, nil)
	}
	return err
}

func (b *azureBlob) write(ctx context.Context, a *Attempt) error {
	return azureblob.Write(ctx, b.Client, a, []byte(fmt.Sprint(a.Number)), nil)
}

// writeBlindly is a broken fence.
func (b *azureBlob) writeBlindly(ctx context.Context, a *Attempt) error {
	old, err := b.GetProperties(ctx, nil)
	if err != nil {
		return err
	}
	metadata := map[string]*string{}
	for name, value := range old.Metadata {
		metadata[strings.ToLower(name)] = value
	}
	if token, _ := strconv.ParseUint(*metadata["elector_token"], 10, 64); token > a.Token {
		return backends.ErrStale
	}
	mine := fmt.Sprint(a.Token)
	metadata["elector_token"] = &mine
	_, err = b.Upload(ctx, streaming.NopCloser(strings.NewReader(fmt.Sprint(a.Number))), &blockblob.UploadOptions{Metadata: metadata})
	return err
}

func (b *azureBlob) order(context.Context) (acquisitions, writes []Mark, err error) {
	tag := ""
	for position := range int64(len(b.links)) {
		l, found := b.links[tag]
		if !found {
			return nil, nil, errors.New("the writes do not follow each other")
		}
		m := Mark{l.token, position}
		if l.acquisition {
			acquisitions = append(acquisitions, m)
		} else {
			writes = append(writes, m)
		}
		tag = l.tag
	}
	return acquisitions, writes, nil
}
