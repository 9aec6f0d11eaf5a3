//go:build azureblob

package stores

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// The roles of the page of Blob Storage are enough, and no more than that.
func TestAzureBlobPolicies(t *testing.T) {
	const service = "Microsoft.Storage/storageAccounts/blobServices/"
	cloud{
		page: "azureblob.md",
		action: func(r *http.Request) string {
			q, path := r.URL.Query(), strings.TrimPrefix(r.URL.Path, "/"+azuriteAccount+"/")
			get := r.Method == http.MethodGet || r.Method == http.MethodHead
			blob := strings.HasPrefix(path, azuriteContainer+"/")
			switch {
			case get && path == "" && q.Get("restype") == "service":
				return service + "read"
			case get && path == azuriteContainer && q.Get("comp") == "list":
				return service + "containers/blobs/read"
			case get && path == azuriteContainer && q.Get("restype") == "container":
				return service + "containers/read"
			case get && blob:
				return service + "containers/blobs/read"
			case r.Method == http.MethodPut && blob:
				return service + "containers/blobs/write"
			}
			return r.Method + " " + r.URL.String()
		},
		refuse: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/xml")
			w.Header().Set("x-ms-error-code", "AuthorizationPermissionMismatch")
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, `<?xml version="1.0" encoding="utf-8"?><Error><Code>AuthorizationPermissionMismatch</Code><Message>This request is not authorized to perform this operation using this permission.</Message></Error>`)
		},
		candidate: map[string][]string{
			service + "containers/blobs/read":  {"open"},
			service + "containers/blobs/write": {"campaign"},
			service + "containers/read":        {},
		},
		reader: map[string][]string{
			service + "read":                  {},
			service + "containers/read":       {},
			service + "containers/blobs/read": {"open"},
		},
	}.prove(t, azureStore(t))
}
