package s3

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fakehttp"
)

// A service plays as much of S3 as the adapter uses, in one bucket.
type service struct {
	*fakehttp.Server

	mutex   sync.Mutex
	objects map[string]object
}

type object struct {
	content []byte
	etag    string // of the content, if empty
	header  http.Header
}

func (o object) tag() string {
	if o.etag != "" {
		return o.etag
	}
	return fmt.Sprintf(`"%x"`, md5.Sum(o.content))
}

func newService(t *testing.T) *service {
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hunter2-secret")
	s := &service{objects: map[string]object{}}
	s.Server = fakehttp.New(t, s.usual)
	return s
}

// usual returns the kind of a request, "read" say, and how the service answers it.
func (s *service) usual(r *http.Request) (what string, serve http.HandlerFunc) {
	key := strings.TrimPrefix(r.URL.Path, "/bucket/")
	object := key != "" && key != r.URL.Path
	what, serve = r.URL.RawQuery, func(w http.ResponseWriter, r *http.Request) { refuse(w, 501, "NotImplemented", r.URL.String()) }
	switch {
	case object && r.Method == http.MethodPut:
		what, serve = "write", s.write
	case object && r.Method == http.MethodGet:
		what, serve = "read", s.read
	case object && r.Method == http.MethodHead:
		what, serve = "head", s.read
	case r.URL.Query().Has("list-type"):
		what, serve = "list", s.list
	}
	for _, own := range []string{".probe", ".absent"} { // of opening
		if strings.HasSuffix(key, "/"+own) {
			what = own
		}
	}
	return what, serve
}

func (s *service) set(key string, o object) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.objects[key] = o
}

func (s *service) get(key string) object {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.objects[key]
}

func (s *service) read(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	o, ok := s.objects[strings.TrimPrefix(r.URL.Path, "/bucket/")]
	s.mutex.Unlock()
	if !ok {
		refuse(w, 404, noSuchKey, "The specified key does not exist.")
		return
	}
	if match := r.Header.Get("If-Match"); match != "" && match != o.tag() {
		refuse(w, 412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
		return
	}
	for key, values := range o.header {
		w.Header()[key] = values
	}
	w.Header().Set("ETag", o.tag())
	w.Write(o.content)
}

func (s *service) write(w http.ResponseWriter, r *http.Request) {
	content, err := io.ReadAll(r.Body)
	sum := md5.Sum(content)
	if sent := r.Header.Get("Content-Md5"); err != nil || sent != base64.StdEncoding.EncodeToString(sum[:]) && (sent != "" || strings.HasPrefix(r.URL.Path, "/bucket/"+DefaultPrefix)) {
		refuse(w, 400, "BadDigest", "The Content-MD5 you specified did not match what we received.")
		return
	}
	o, key := object{content: content, header: http.Header{}}, strings.TrimPrefix(r.URL.Path, "/bucket/")
	for name, values := range r.Header {
		if strings.HasPrefix(name, "X-Amz-Meta-") || name == "Content-Type" || name == "Cache-Control" || name == "Content-Encoding" || name == "X-Amz-Storage-Class" {
			o.header[name] = values
		}
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	old, there := s.objects[key]
	match := r.Header.Get("If-Match")
	switch {
	case r.Header.Get("If-None-Match") == "*" && there, match != "" && there && match != old.tag():
		refuse(w, 412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
		return
	case match != "" && !there:
		refuse(w, 404, noSuchKey, "The specified key does not exist.")
		return
	case match == "" && r.Header.Get("If-None-Match") != "*":
		refuse(w, 400, "InvalidRequest", "not what this test expects: no condition")
		return
	}
	s.objects[key] = o
	w.Header().Set("ETag", o.tag())
}

func (s *service) list(w http.ResponseWriter, _ *http.Request) {
	io.WriteString(w, `<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>`)
}

// refuse answers with an error as the service does.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>%s</Message><RequestId>1</RequestId></Error>`, code, message)
}

func refusal(status int, code, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		refuse(w, status, code, message)
	}
}

func (s *service) open(ctx context.Context) (backends.Backend, error) {
	return open(ctx, &url.URL{Scheme: "s3", Host: "bucket", RawQuery: "endpoint=" + s.URL})
}

// handles are what Open and New make, the latter with a client whose retries are at
// their defaults. Nothing was asked through them yet.
func (s *service) handles(t *testing.T) map[string]backends.Backend {
	t.Helper()
	opened, err := s.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	made, err := New(t.Context(), s.client(t), &Options{Bucket: "bucket"})
	if err != nil {
		t.Fatal(err)
	}
	s.Requests()
	return map[string]backends.Backend{"Open": opened, "New": made}
}

// client is a user's client, with retries.
func (s *service) client(t *testing.T) *s3.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return s3.New(s3.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(s.URL), UsePathStyle: true, HTTPClient: &http.Client{Transport: transport},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "hunter2-secret"}, nil
		}),
	})
}

var record = backends.Record{Holder: "h", Token: 1, TTL: 15 * time.Second, RenewEvery: 4 * time.Second, Attempt: backends.Attempt{Nonce: "n", Sequence: 1}}
