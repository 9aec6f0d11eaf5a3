//go:build azureblob

package stores

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	blobs "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/azureblob"
	"github.com/elector-go/elector/conformance"
)

// The suite runs on a container of the real service with
//
//	ELECTOR_TEST_AZUREBLOB='azureblob://ACCOUNT/CONTAINER/PREFIX' AZURE_STORAGE_KEY=… go test -count=1 -timeout=60m -run 'TestAzureBlob$' .
//
// It leaves its blobs there: their names are of this run alone, and the container is
// best made for it. No container is made or changed.
func TestAzureBlob(t *testing.T) {
	s := azureStore(t)
	raw := reachAzure(t, s)
	h := conformance.Harness{
		Open:         opener(s.URL),
		OpenReadOnly: readOnlyOpener(s.URL),
		OpenFaulty:   faulty(s, s.URL),
		Slow:         true,
		Raw:          &conformance.Raw{Get: raw.get, Put: raw.put, Delete: raw.remove},
		Setups:       azureSetups(s),
	}
	if s.server == nil {
		h.TTL = 5 * time.Second // it may be far away
	} else {
		open := h.Open
		h.Open = func(t testing.TB) backends.Backend { return hasten(t, open(t)) }
	}
	conform(t, AzureBlob, s.How, h)
}

// azureStore obtains a store. A server that the tests started has a public key.
func azureStore(t *testing.T) *Store {
	s := obtain(t, AzureBlob)
	if s.server != nil {
		t.Setenv("AZURE_STORAGE_KEY", azuriteKey)
		t.Setenv("AZURE_STORAGE_SAS_TOKEN", "")
		t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "")
	}
	return s
}

// rawAzure reaches a container behind the adapter's back.
type rawAzure struct {
	*blobs.Client
	prefix string
}

func reachAzure(t *testing.T, s *Store) rawAzure {
	t.Helper()
	u, err := url.Parse(s.URL)
	must(t, err)
	name, path, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	r := rawAzure{prefix: azureblob.DefaultPrefix}
	if path != "" {
		r.prefix = path + "/"
	}
	endpoint := u.Query().Get("endpoint")
	if endpoint == "" {
		endpoint = "https://" + u.Host + ".blob.core.windows.net"
	}
	key, err := blobs.NewSharedKeyCredential(u.Host, os.Getenv("AZURE_STORAGE_KEY"))
	must(t, err)
	transport := &http.Transport{DisableKeepAlives: true}
	options := &blobs.ClientOptions{}
	options.Transport = &http.Client{Transport: transport}
	r.Client, err = blobs.NewClientWithSharedKeyCredential(endpoint+"/"+name, key, options)
	must(t, err)
	return r
}

func (r rawAzure) blob(name string) *blockblob.Client {
	return r.NewBlockBlobClient(r.prefix + name + ".json")
}

func (r rawAzure) get(t testing.TB, name string) []byte {
	t.Helper()
	answer, err := r.blob(name).DownloadStream(t.Context(), nil)
	if bloberror.HasCode(err, bloberror.BlobNotFound) {
		return nil
	}
	must(t, err)
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	must(t, err)
	return content
}

func (r rawAzure) put(t testing.TB, name string, content []byte) {
	t.Helper()
	_, err := r.blob(name).Upload(t.Context(), streaming.NopCloser(bytes.NewReader(content)), nil)
	must(t, err)
}

func (r rawAzure) remove(t testing.TB, name string) {
	t.Helper()
	_, err := r.blob(name).Delete(t.Context(), nil)
	must(t, err)
}

// azureSetups are URLs and containers that do not serve.
func azureSetups(s *Store) map[string]func(testing.TB) error {
	at := func(endpoint, container string) string {
		return "azureblob://" + azuriteAccount + "/" + container + "?" + url.Values{"endpoint": {endpoint}}.Encode()
	}
	refuses := func(storeURL string, want error) func(testing.TB) error {
		return func(t testing.TB) error {
			err := openError(t, storeURL)
			if !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
			return err
		}
	}
	setups := map[string]func(testing.TB) error{
		"no server": func(t testing.TB) error {
			return refuses(at(azuriteEndpoint(vacantAddress(t)), "elections"), backends.ErrUnavailable)(t)
		},
		"a container name that cannot be": refuses("azureblob://account/Elections", backends.ErrURL),
		"the secondary region":            refuses("azureblob://account-secondary/elections", backends.ErrURL),
		"an unknown parameter":            refuses("azureblob://account/elections?key=mine", backends.ErrURL),
		"a login in the URL":              refuses("azureblob://user:password@account/elections", backends.ErrURL),
		// Azurite has no immutability policies, and in the service the container
		// could not be removed for a while.
		"an immutable container": func(t testing.TB) error {
			played := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("x-ms-has-immutability-policy", "true")
			}))
			defer played.Close()
			return refuses(at(played.URL, "elections"), backends.ErrMisconfigured)(t)
		},
	}
	if s.server != nil {
		endpoint := azuriteEndpoint(s.Address)
		setups["no such container"] = refuses(at(endpoint, "no-such-container"), backends.ErrMisconfigured)
		setups["a wrong key"] = func(t testing.TB) error {
			t.(*testing.T).Setenv("AZURE_STORAGE_KEY", "d3Jvbmc=")
			return refuses(at(endpoint, azuriteContainer), backends.ErrDenied)(t)
		}
	}
	return setups
}

// A lease of Azure on a record's blob locks out every write of it: the leader's and
// the others' errors name it, and when it is broken the election goes on.
func TestAzureBlobLeased(t *testing.T) {
	t.Setenv(variables[AzureBlob], "")
	s := azureStore(t)
	raw := reachAzure(t, s)
	b := opener(s.URL)(t)
	t.Cleanup(func() { must(t, b.Close()) })
	record := backends.Record{Holder: "h", Token: 1, TTL: 15 * time.Second, RenewEvery: time.Second, Attempt: backends.Attempt{Nonce: "n", Sequence: 1}}
	mine, err := b.Swap(t.Context(), "leased", backends.Record{}, record)
	must(t, err)
	holder, err := lease.NewBlobClient(raw.blob("leased"), nil)
	must(t, err)
	_, err = holder.AcquireLease(t.Context(), -1, nil)
	must(t, err)
	for what, prev := range map[string]backends.Record{"a renewal": mine, "a creation": {}} {
		_, err := b.Swap(t.Context(), "leased", prev, record)
		if what == "a creation" && errors.Is(err, backends.ErrConflict) {
			continue // the service may look at the condition first
		}
		if !errors.Is(err, backends.ErrReadOnly) || !strings.Contains(err.Error(), "az storage blob lease break") || !strings.Contains(err.Error(), "election leased") {
			t.Errorf("%s: got %v, want ErrReadOnly and what to do", what, err)
		}
		t.Log(err)
	}
	if r, err := b.Load(t.Context(), "leased"); err != nil || r != mine {
		t.Errorf("reading it: %+v, %v", r, err)
	}
	_, err = holder.BreakLease(t.Context(), &lease.BlobBreakOptions{BreakPeriod: new(int32)})
	must(t, err)
	record.Attempt.Sequence++
	if _, err := b.Swap(t.Context(), "leased", mine, record); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// A SAS of the container alone is enough, with the permissions that the package
// lists, and without one of them the error is ErrDenied and does not show it.
func TestAzureBlobSAS(t *testing.T) {
	t.Setenv(variables[AzureBlob], "")
	s := azureStore(t)
	raw := reachAzure(t, s)
	record := backends.Record{Holder: "h", Token: 1, TTL: 15 * time.Second, RenewEvery: time.Second, Attempt: backends.Attempt{Nonce: "n", Sequence: 1}}
	with := func(p sas.ContainerPermissions) string {
		t.Helper()
		signed, err := raw.GetSASURL(p, time.Now().Add(time.Hour), nil)
		must(t, err)
		_, query, _ := strings.Cut(signed, "?")
		t.Setenv("AZURE_STORAGE_SAS_TOKEN", query)
		values, err := url.ParseQuery(query)
		must(t, err)
		return values.Get("sig")
	}
	enough := sas.ContainerPermissions{Read: true, Write: true, List: true}
	with(enough)
	b := opener(s.URL)(t)
	defer b.Close()
	r, err := b.Swap(t.Context(), "signed", backends.Record{}, record)
	must(t, err)
	record.Attempt.Sequence++
	_, err = b.Swap(t.Context(), "signed", r, record)
	must(t, err)
	if names, err := b.(backends.Lister).List(t.Context()); err != nil || !strings.Contains(fmt.Sprint(names), "signed") {
		t.Errorf("listing: %q, %v", names, err)
	}
	if _, err := b.(backends.Inspector).Inspect(t.Context(), time.Second); err != nil {
		t.Errorf("inspecting: %v", err)
	}

	signature := with(sas.ContainerPermissions{Read: true, List: true})
	reader := opener(s.URL)(t)
	defer reader.Close()
	if _, err := reader.Load(t.Context(), "signed"); err != nil {
		t.Errorf("reading with a SAS that may: %v", err)
	}
	_, err = reader.Swap(t.Context(), "unsigned", backends.Record{}, record)
	if !errors.Is(err, backends.ErrDenied) {
		t.Errorf("a write without the permission: got %v, want ErrDenied", err)
	}
	must(t, s.Pause())
	defer s.Continue()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, late := reader.Load(ctx, "signed")
	must(t, s.Continue())
	for _, err := range []error{err, late} {
		if text := fmt.Sprintf("%v %+v", err, err); strings.Contains(text, signature) || strings.Contains(text, url.QueryEscape(signature)) || strings.Contains(text, "\n") {
			t.Errorf("the error has more than one line, or the signature: %s", text)
		}
	}
	t.Log(err)
}

// With a client of the caller the library's own retries are off.
func TestAzureBlobNew(t *testing.T) {
	t.Setenv(variables[AzureBlob], "")
	s := azureStore(t)
	client, done, err := AzuriteContainer(s.Address, azuriteContainer)
	must(t, err)
	defer done()
	b, err := azureblob.New(t.Context(), client, &azureblob.Options{Prefix: "mine/"})
	must(t, err)
	record := backends.Record{Holder: "h", Token: 1, TTL: 15 * time.Second, RenewEvery: time.Second, Attempt: backends.Attempt{Nonce: "n", Sequence: 1}}
	made, err := b.Swap(t.Context(), "a", backends.Record{}, record)
	must(t, err)
	if r, err := b.Load(t.Context(), "a"); err != nil || r != made {
		t.Errorf("got %+v, %v", r, err)
	}
	if got, want := b.Describe().Store, "azureblob://"+azuriteAccount+"/"+azuriteContainer+"/mine/"; got != want {
		t.Errorf("the store is %s, want %s", got, want)
	}
	must(t, b.Close())
	if _, err := client.NewBlockBlobClient("mine/a.json").GetProperties(t.Context(), &blob.GetPropertiesOptions{}); err != nil {
		t.Errorf("Close closed the caller's client: %v", err)
	}
}
