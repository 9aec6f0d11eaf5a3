package gcs

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fakehttp"
)

// A handle for reading alone sends nothing but reads, and needs no right to see the
// bucket's settings.
func TestReadOnly(t *testing.T) {
	s := newService(t)
	s.Instead("bucket", refusal(403, "forbidden", "a@b.c does not have storage.buckets.get access"))
	s.Instead("GET /storage/v1/b/bucket/o", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") })
	b, err := backends.OpenReadOnly(t.Context(), "gs://bucket?endpoint="+s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if got := s.Requests(); !maps.Equal(got, map[string]int{"read": 1, "bucket": 1}) {
		t.Errorf("opening takes %v", got)
	}
	if found := fakehttp.ReadsAlone(t, b, record); len(found) != 1 || found[0].Fix != "" || !strings.Contains(found[0].Seen, "not shown") {
		t.Errorf("it finds %+v", found)
	}
	if got := s.Requests(); got["write"] != 0 {
		t.Errorf("all that it sends: %v", got)
	}
}

// What keeps a leader from renewing is no reason not to read.
func TestReadOnlyRefuses(t *testing.T) {
	forbidden := refusal(403, "forbidden", "a@b.c does not have storage.objects.get access to the Google Cloud Storage object.")
	for what, c := range map[string]struct {
		bucket, read http.HandlerFunc
		attributes   string
		kind         error
		says         string
	}{
		"no bucket":          {bucket: refusal(404, "notFound", "The specified bucket does not exist."), kind: backends.ErrMisconfigured, says: "there is no bucket bucket, so no election has ever used it"},
		"no right":           {read: forbidden, kind: backends.ErrDenied, says: "roles/storage.objectViewer"},
		"a retention policy": {attributes: `, "retentionPolicy": {"retentionPeriod": "3600", "effectiveTime": "2026-01-01T00:00:00Z"}`},
	} {
		s := newService(t)
		s.bucket = c.attributes
		s.Instead("bucket", c.bucket)
		s.Instead("read", c.read)
		b, err := backends.OpenReadOnly(t.Context(), "gs://bucket?endpoint="+s.URL)
		if err == nil {
			b.Close()
		}
		if !errors.Is(err, c.kind) || err != nil && (!strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "opening gs://bucket/elector/")) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

// The token of a handle for reading alone cannot write.
func TestReadOnlyScope(t *testing.T) {
	asked := ""
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = claims(r.FormValue("assertion"))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token": "t", "token_type": "Bearer", "expires_in": 3600}`)
	}))
	defer tokens.Close()
	keyFile(t, tokens.URL)
	s := newService(t)
	b, err := config{bucket: "bucket", prefix: "elector/", endpoint: s.URL, readOnly: true}.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if !strings.Contains(asked, "devstorage.read_only") || strings.Contains(asked, "full_control") {
		t.Errorf("the token is asked for with %s", asked)
	}
}

// claims returns what a signed assertion says.
func claims(assertion string) string {
	parts := strings.Split(assertion, ".")
	if len(parts) != 3 {
		return ""
	}
	content, _ := base64.RawURLEncoding.DecodeString(parts[1])
	return string(content)
}
