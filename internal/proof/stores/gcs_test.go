package stores

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/storage"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/option"
	htransport "google.golang.org/api/transport/http"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/gcs"
	"github.com/elector-go/elector/conformance"
)

// The suite runs on a bucket of the real service with
//
//	gcloud auth application-default login
//	ELECTOR_TEST_GCS='gs://BUCKET/PREFIX' go test -count=1 -timeout=3h -run 'TestGCS$' .
//
// and roles/storage.objectUser on the bucket, nothing else. It leaves its
// objects there: their names are of this run alone, and the bucket is best made
// for it, without soft delete. No bucket is made or changed, so the set-ups
// that need one run on the emulator only.
//
// The service takes about one write a second of one object, and the suite does
// not wait for that between the writes of a case: one that fails with
// "rateLimitExceeded" has shown this limit and nothing else.
func TestGCS(t *testing.T) {
	s := obtain(t, GCS)
	raw := reachGCS(t, s)
	h := conformance.Harness{
		Open:         opener(s.URL),
		OpenReadOnly: readOnlyOpener(s.URL),
		OpenFaulty:   faulty(s, s.URL),
		Slow:         true,
		Raw:          &conformance.Raw{Get: raw.get, Put: raw.put, Delete: raw.remove},
		Setups:       gcsSetups(raw, s),
	}
	if raw.emulated {
		open := h.Open
		h.Open = func(t testing.TB) backends.Backend { return hasten(t, open(t)) }
	}
	conform(t, GCS, s.How, h)
}

// rawGCS reaches a bucket behind the adapter's back.
type rawGCS struct {
	client   *storage.Client
	bucket   *storage.BucketHandle
	prefix   string
	emulated bool
}

func reachGCS(t *testing.T, s *Store) rawGCS {
	t.Helper()
	u, err := url.Parse(s.URL)
	must(t, err)
	r := rawGCS{prefix: gcs.DefaultPrefix}
	if path := strings.Trim(u.Path, "/"); path != "" {
		r.prefix = path + "/"
	}
	var through http.RoundTripper = &http.Transport{DisableKeepAlives: true}
	options := []option.ClientOption{storage.WithJSONReads()}
	// Not of the test's context, which ends before clean-ups run.
	ctx := context.Background()
	if endpoint, _, _ := strings.Cut(u.Query().Get("endpoint"), "/storage/v1"); endpoint != "" {
		r.emulated = true
		options = append(options, option.WithEndpoint(endpoint+"/storage/v1/"), option.WithCredentials(&google.Credentials{}))
	} else {
		through, err = htransport.NewTransport(ctx, through, option.WithScopes(storage.ScopeReadWrite))
		must(t, err)
	}
	r.client, err = storage.NewClient(ctx, append(options, option.WithHTTPClient(&http.Client{Transport: through}))...)
	must(t, err)
	r.bucket = r.client.Bucket(u.Host).Retryer(storage.WithPolicy(storage.RetryAlways))
	return r
}

func (r rawGCS) get(t testing.TB, name string) []byte {
	t.Helper()
	reader, err := r.bucket.Object(r.prefix + name).NewReader(t.Context())
	if errors.Is(err, storage.ErrObjectNotExist) {
		return nil
	}
	must(t, err)
	defer reader.Close()
	content, err := io.ReadAll(reader)
	must(t, err)
	return content
}

func (r rawGCS) put(t testing.TB, name string, content []byte) {
	t.Helper()
	w := r.bucket.Object(r.prefix + name).NewWriter(t.Context())
	w.CacheControl = "no-store"
	_, err := w.Write(content)
	must(t, errors.Join(err, w.Close()))
}

func (r rawGCS) remove(t testing.TB, name string) {
	t.Helper()
	must(t, r.bucket.Object(r.prefix+name).Delete(t.Context()))
}

// gcsSetups are URLs and buckets that do not serve.
func gcsSetups(raw rawGCS, s *Store) map[string]func(testing.TB) error {
	_, query, _ := strings.Cut(s.URL, "?")
	in := func(bucket string) string { return "gs://" + bucket + "?" + query }
	run := fmt.Sprintf("elector-suite-%x", time.Now().UnixNano())
	setups := map[string]func(testing.TB) error{
		"no server": func(t testing.TB) error { return openError(t, "gs://bucket?endpoint=http://"+vacantAddress(t)) },
		"no such bucket": func(t testing.TB) error {
			err := openError(t, in(run+"-none"))
			if err != nil && !errors.Is(err, backends.ErrMisconfigured) {
				t.Errorf("got %v, want ErrMisconfigured", err)
			}
			return err
		},
		"a bucket name that cannot be": func(t testing.TB) error { return openError(t, in("Bucket")) },
		"an unknown parameter":         func(t testing.TB) error { return openError(t, "gs://bucket?project=mine") },
		"a login in the URL":           func(t testing.TB) error { return openError(t, "gs://user:password@bucket") },
		// The emulator has no retention policies, and on the real service
		// the bucket could not be removed for a while.
		"a bucket with a retention policy": func(t testing.TB) error {
			played := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/storage/v1/b/bucket" {
					http.NotFound(w, r)
					return
				}
				io.WriteString(w, `{"kind": "storage#bucket", "name": "bucket", "retentionPolicy": {"retentionPeriod": "3600", "effectiveTime": "2026-01-01T00:00:00Z"}}`)
			}))
			defer played.Close()
			return openError(t, "gs://bucket?endpoint="+played.URL)
		},
	}
	if raw.emulated {
		setups["a bucket that holds every new object"] = func(t testing.TB) error {
			held := raw.client.Bucket(run + "-held")
			must(t, held.Create(t.Context(), "project", nil))
			_, err := held.Update(t.Context(), storage.BucketAttrsToUpdate{DefaultEventBasedHold: true})
			must(t, err)
			return openError(t, in(run+"-held"))
		}
	}
	return setups
}
