package gcs

import (
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// List follows the pages, and asks for no more than names.
func TestListPages(t *testing.T) {
	s := newService(t)
	s.Instead("GET /storage/v1/b/bucket/o", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		answer := `{"items": [{"name": "elector/b"}, {"name": "elector/c"}], "nextPageToken": "next"}`
		switch {
		case q.Get("prefix") != "elector/" || q.Get("delimiter") != "/" || q.Get("projection") != "noAcl":
			answer = "{}"
		case q.Get("pageToken") == "next":
			answer = `{"items": [{"name": "elector/a"}, {"name": "elector/"}], "prefixes": ["elector/below/"]}`
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, answer)
	})
	for how, b := range s.handles(t) {
		names, err := b.(backends.Lister).List(t.Context())
		if err != nil || !slices.Equal(names, []string{"a", "b", "c"}) {
			t.Errorf("%s: got %q, %v", how, names, err)
		}
	}
}

// Inspect finds what costs money, and what deletes records.
func TestInspect(t *testing.T) {
	for settings, wrong := range map[string]string{
		``: "",
		`, "storageClass": "STANDARD", "softDeletePolicy": {"retentionDurationSeconds": "0"}, "versioning": {"enabled": false}`:   "",
		`, "softDeletePolicy": {"retentionDurationSeconds": "604800"}`:                                                            "soft delete",
		`, "versioning": {"enabled": true}`:                                                                                       "object versioning",
		`, "storageClass": "NEARLINE"`:                                                                                            "storage class",
		`, "lifecycle": {"rule": [{"action": {"type": "Delete"}, "condition": {"age": 1}}]}`:                                      "lifecycle rules",
		`, "lifecycle": {"rule": [{"action": {"type": "Delete"}, "condition": {"age": 1, "matchesPrefix": ["elector/a"]}}]}`:      "lifecycle rules",
		`, "lifecycle": {"rule": [{"action": {"type": "Delete"}, "condition": {"age": 1, "matchesPrefix": ["logs/"]}}]}`:          "",
		`, "lifecycle": {"rule": [{"action": {"type": "Delete"}, "condition": {"isLive": false}}]}`:                               "",
		`, "lifecycle": {"rule": [{"action": {"type": "SetStorageClass", "storageClass": "COLDLINE"}, "condition": {"age": 1}}]}`: "",
	} {
		s := newService(t)
		s.bucket = settings
		b, err := s.open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		i, err := b.(backends.Inspector).Inspect(t.Context(), 15*time.Second)
		b.Close()
		if err != nil || time.Since(i.Clock).Abs() > time.Hour {
			t.Fatalf("clock %v, error %v", i.Clock, err)
		}
		found := ""
		for _, f := range i.Findings {
			if f.Fix != "" {
				found += f.What
			}
		}
		if found != wrong {
			t.Errorf("with %s it finds %q, want %q", settings, found, wrong)
		}
	}
	s := newService(t)
	b, err := s.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s.Instead("bucket", refusal(403, "forbidden", "no"))
	if i, err := b.(backends.Inspector).Inspect(t.Context(), 15*time.Second); err != nil || len(i.Findings) != 1 || i.Findings[0].Fix == "" {
		t.Errorf("without the permission: %+v, %v", i, err)
	}
}
