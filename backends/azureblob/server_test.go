package azureblob

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fakehttp"
)

// A server plays as much of Blob Storage as the adapter uses, in one container.
type server struct {
	*fakehttp.Server

	mutex  sync.Mutex
	blobs  map[string]object
	last   int
	header http.Header // of the container's properties
}

type object struct {
	content  []byte
	tag      string
	header   http.Header // that the content was sent with
	metadata map[string]string
}

const account = "account"

func newServer(t *testing.T) *server {
	s := &server{blobs: map[string]object{}, header: http.Header{}}
	s.Server = fakehttp.New(t, s.usual)
	t.Setenv("AZURE_STORAGE_SAS_TOKEN", "")
	t.Setenv("AZURE_STORAGE_KEY", "a2V5")
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "")
	return s
}

// usual returns the kind of a request, "read" say, and how the service answers it.
func (s *server) usual(r *http.Request) (what string, serve http.HandlerFunc) {
	q := r.URL.Query()
	what, serve = "container", s.container
	switch {
	case q.Get("comp") == "list":
		what, serve = "list", s.unknown
	case q.Get("restype") == "service":
		what, serve = "service", s.unknown
	case q.Get("restype") == "container":
	case r.Method == http.MethodPut && q.Get("comp") == "metadata":
		what, serve = "metadata", s.metadata
	case r.Method == http.MethodPut:
		what, serve = "write", s.write
	case r.Method == http.MethodHead:
		what, serve = "properties", s.read
	case r.Method == http.MethodGet:
		what, serve = "read", s.read
	}
	return what, serve
}

func (s *server) set(name string, o object) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.put(name, o)
}

func (s *server) put(name string, o object) (tag string) {
	s.last++
	o.tag = fmt.Sprintf(`"0x%d"`, s.last)
	s.blobs[name] = o
	return o.tag
}

func name(r *http.Request) string {
	return strings.TrimPrefix(r.URL.Path, "/"+account+"/container/")
}

func (s *server) container(w http.ResponseWriter, _ *http.Request) {
	maps.Copy(w.Header(), s.header)
}

func (s *server) unknown(w http.ResponseWriter, _ *http.Request) {
	refuse(w, 501, "NotImplemented", "")
}

func (s *server) read(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	o, found := s.blobs[name(r)]
	s.mutex.Unlock()
	if !found {
		refuse(w, 404, "BlobNotFound", "The specified blob does not exist.")
		return
	}
	if want := r.Header.Get("If-Match"); want != "" && want != o.tag {
		refuse(w, 412, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met.")
		return
	}
	for key, value := range o.metadata {
		w.Header().Set("x-ms-meta-"+key, value)
	}
	w.Header().Set("ETag", o.tag)
	w.Header().Set("Content-Length", fmt.Sprint(len(o.content)))
	if r.Method == http.MethodGet {
		w.Write(o.content)
	}
}

// met answers for a condition that does not hold.
func (s *server) met(w http.ResponseWriter, r *http.Request) bool {
	o, found := s.blobs[name(r)]
	switch match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match"); {
	case match == "" && none != "*":
		refuse(w, 400, "InvalidInput", "not what this test expects")
	case none == "*" && found:
		refuse(w, 409, "BlobAlreadyExists", "The specified blob already exists.")
	case match != "" && !found:
		refuse(w, 404, "BlobNotFound", "The specified blob does not exist.")
	case match != "" && match != o.tag:
		refuse(w, 412, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met.")
	default:
		return true
	}
	return false
}

func metadataOf(r *http.Request) map[string]string {
	m := map[string]string{}
	for key, values := range r.Header {
		if name, ok := strings.CutPrefix(key, "X-Ms-Meta-"); ok {
			m[strings.ToLower(name)] = values[0]
		}
	}
	return m
}

func (s *server) write(w http.ResponseWriter, r *http.Request) {
	content, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("x-ms-blob-type") != "BlockBlob" {
		refuse(w, 400, "InvalidInput", fmt.Sprint(err))
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.met(w, r) {
		w.Header().Set("ETag", s.put(name(r), object{content: content, header: r.Header, metadata: metadataOf(r)}))
		w.WriteHeader(http.StatusCreated)
	}
}

func (s *server) metadata(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.met(w, r) {
		o := s.blobs[name(r)]
		o.metadata = metadataOf(r)
		w.Header().Set("ETag", s.put(name(r), o))
	}
}

// refuse answers with an error as the service does.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("x-ms-request-id", "7")
	if code != "" {
		w.Header().Set("x-ms-error-code", code)
	}
	w.WriteHeader(status)
	fmt.Fprintf(w, "\ufeff<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>%s</Code><Message>%s\nRequestId:7\nTime:now</Message></Error>", code, message)
}

func refusalOf(status int, code, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		refuse(w, status, code, message)
	}
}

func (s *server) address() *url.URL {
	return &url.URL{Scheme: "azureblob", Host: account, Path: "/container", RawQuery: "endpoint=" + s.URL + "/" + account}
}

func (s *server) open(ctx context.Context) (backends.Backend, error) { return open(ctx, s.address()) }

// handles are what Open and New make, the latter with a client whose retries
// are at their defaults. Nothing was asked through them yet.
func (s *server) handles(t *testing.T) map[string]backends.Backend {
	t.Helper()
	opened, err := s.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	s.Requests()
	return map[string]backends.Backend{"Open": opened, "New": made(New(t.Context(), s.client(t), nil))}
}

// client is a user's client, with retries.
func (s *server) client(t *testing.T) *container.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	options := &container.ClientOptions{}
	options.Transport = &http.Client{Transport: transport}
	client, err := container.NewClientWithNoCredential(s.URL+"/"+account+"/container", options)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

var record = backends.Record{Holder: "h", Token: 1, TTL: 15 * time.Second, RenewEvery: 4 * time.Second, Attempt: backends.Attempt{Nonce: "n", Sequence: 1}}

// made returns what New has made.
func made(b *Backend, err error) *Backend {
	if err != nil {
		panic(err)
	}
	return b
}
