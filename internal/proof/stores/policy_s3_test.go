//go:build s3

package stores

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// The policies of the page of S3 are enough, and no more than that.
func TestS3Policies(t *testing.T) {
	cloud{
		page: "s3.md",
		list: "s3:ListBucket",
		action: func(r *http.Request) string {
			q := r.URL.Query()
			bucket := strings.Trim(r.URL.Path, "/") == s3Bucket && r.Method == http.MethodGet
			object := strings.HasPrefix(r.URL.Path, "/"+s3Bucket+"/elector/") // the prefix of the policy
			switch {
			case bucket && q.Has("list-type"):
				return "s3:ListBucket"
			case bucket && q.Has("versioning"):
				return "s3:GetBucketVersioning"
			case bucket && q.Has("lifecycle"):
				return "s3:GetLifecycleConfiguration"
			case object && (r.Method == http.MethodGet || r.Method == http.MethodHead):
				return "s3:GetObject"
			case object && r.Method == http.MethodPut:
				return "s3:PutObject"
			}
			return r.Method + " " + r.URL.String()
		},
		refuse: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>`)
		},
		candidate: map[string][]string{
			"s3:GetObject":  {"open"},
			"s3:PutObject":  {"campaign"},
			"s3:ListBucket": {"open"},
		},
		reader: map[string][]string{
			"s3:GetObject":                 {"open"},
			"s3:ListBucket":                {"open"},
			"s3:GetBucketVersioning":       {},
			"s3:GetLifecycleConfiguration": {},
		},
	}.prove(t, s3Store(t, startS3))
}
