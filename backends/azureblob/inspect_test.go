package azureblob

import (
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

func answerXML(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		io.WriteString(w, text)
	}
}

// List follows the pages.
func TestListPages(t *testing.T) {
	s := newServer(t)
	page := func(names, marker string) http.HandlerFunc {
		return answerXML(`<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs>` + names + `</Blobs><NextMarker>` + marker + `</NextMarker></EnumerationResults>`)
	}
	const properties = "<Properties></Properties>"
	s.Instead("list", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		switch {
		case q.Get("prefix") != "elector/" || q.Get("delimiter") != "/":
			page("", "")(w, r)
		case q.Get("marker") == "next":
			page(`<Blob><Name>elector/a.json</Name>`+properties+`</Blob><Blob><Name>elector/.json</Name>`+properties+`</Blob><BlobPrefix><Name>elector/below/</Name></BlobPrefix>`, "")(w, r)
		default:
			page(`<Blob><Name>elector/b.json</Name>`+properties+`</Blob><Blob><Name>elector/other</Name>`+properties+`</Blob><Blob><Name>elector/c..json</Name>`+properties+`</Blob>`, "next")(w, r)
		}
	})
	for how, b := range s.handles(t) {
		names, err := b.(backends.Lister).List(t.Context())
		if err != nil || !slices.Equal(names, []string{"a", "b", "c."}) {
			t.Errorf("%s: got %q, %v", how, names, err)
		}
	}
}

// Inspect finds what costs money, and what keeps a leader from renewing.
func TestInspect(t *testing.T) {
	settings := func(policy string) http.HandlerFunc {
		return answerXML(`<?xml version="1.0" encoding="utf-8"?><StorageServiceProperties>` + policy + `</StorageServiceProperties>`)
	}
	for name, test := range map[string]struct {
		container, service http.HandlerFunc
		wrong              string
	}{
		"well":                {nil, settings(`<DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy>`), ""},
		"soft delete":         {nil, settings(`<DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days></DeleteRetentionPolicy>`), "soft delete"},
		"a policy since":      {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("x-ms-has-immutability-policy", "true") }, settings(""), "immutability"},
		"a SAS":               {refusalOf(403, "AuthorizationFailure", "no"), refusalOf(403, "AuthorizationFailure", "no"), "immutability"},
		"no settings allowed": {nil, refusalOf(403, "AuthorizationPermissionMismatch", "no"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			b, err := s.open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			s.Instead("container", test.container)
			s.Instead("service", test.service)
			i, err := b.(backends.Inspector).Inspect(t.Context(), 15*time.Second)
			if err != nil || test.container == nil && time.Since(i.Clock).Abs() > time.Hour {
				t.Fatalf("clock %v, error %v", i.Clock, err)
			}
			found := ""
			for _, f := range i.Findings {
				if f.Fix != "" {
					found += f.What
				}
			}
			if found != test.wrong {
				t.Errorf("it finds %q, want %q", found, test.wrong)
			}
		})
	}
}
