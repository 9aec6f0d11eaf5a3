package gcs

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/storage"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/option"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fakehttp"
)

// A service plays as much of Cloud Storage as the adapter uses, in one bucket.
type service struct {
	*fakehttp.Server

	mutex   sync.Mutex
	objects map[string]object
	last    int64
	bucket  string // what the bucket's attributes are besides its name
}

type object struct {
	content    []byte
	generation int64
	metadata   map[string]any
	header     http.Header
}

func newService(t *testing.T) *service {
	s := &service{objects: map[string]object{}, last: 1e15}
	s.Server = fakehttp.New(t, s.usual)
	return s
}

// usual returns the kind of a request, "read" say, and how the service answers it.
func (s *service) usual(r *http.Request) (what string, serve http.HandlerFunc) {
	what, serve = "bucket", s.attributes
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/upload/storage/v1/b/bucket/o":
		what, serve = "write", s.write
	case strings.HasPrefix(r.URL.Path, "/storage/v1/b/bucket/o/"), strings.HasPrefix(r.URL.Path, "/bucket/"):
		what, serve = "read", s.read
	case r.Method != http.MethodGet || r.URL.Path != "/storage/v1/b/bucket":
		what, serve = r.Method+" "+r.URL.Path, func(w http.ResponseWriter, _ *http.Request) { refuse(w, 501, "notImplemented", "") }
	}
	return what, serve
}

func (s *service) set(name string, o object) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.last++
	o.generation = s.last
	s.objects[name] = o
}

func (s *service) attributes(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintf(w, `{"kind": "storage#bucket", "name": "bucket"%s}`, s.bucket)
}

func (s *service) read(w http.ResponseWriter, r *http.Request) {
	_, name, _ := strings.Cut(r.URL.Path, "/bucket/")
	name = strings.TrimPrefix(name, "o/")
	s.mutex.Lock()
	o, ok := s.objects[name]
	s.mutex.Unlock()
	if !ok {
		http.Error(w, "No such object: bucket/"+name, http.StatusNotFound)
		return
	}
	for key, values := range o.header {
		w.Header()[key] = values
	}
	if r.URL.Query().Get("alt") == "json" { // the attributes
		a := maps.Clone(o.metadata)
		if a == nil {
			a = map[string]any{}
		}
		a["name"], a["generation"], a["crc32c"] = name, strconv.FormatInt(o.generation, 10), checkSum(o.content)
		json.NewEncoder(w).Encode(a)
		return
	}
	w.Header().Set("X-Goog-Generation", strconv.FormatInt(o.generation, 10))
	w.Write(o.content)
}

func (s *service) write(w http.ResponseWriter, r *http.Request) {
	_, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		refuse(w, 400, "invalid", err.Error())
		return
	}
	var o object
	parts := multipart.NewReader(r.Body, parameters["boundary"])
	for i := range 2 {
		part, err := parts.NextPart()
		if err == nil && i == 0 {
			err = json.NewDecoder(part).Decode(&o.metadata)
		} else if err == nil {
			o.content, err = io.ReadAll(part)
		}
		if err != nil {
			refuse(w, 400, "invalid", err.Error())
			return
		}
	}
	sum := checkSum(o.content)
	if sent := o.metadata["crc32c"]; sent != sum && (sent != nil || strings.HasPrefix(r.URL.Query().Get("name"), DefaultPrefix)) {
		refuse(w, 400, "invalid", fmt.Sprintf("Provided CRC32C %v doesn't match calculated CRC32C %s.", o.metadata["crc32c"], sum))
		return
	}
	q, name := r.URL.Query(), r.URL.Query().Get("name")
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if q.Get("uploadType") != "multipart" || !q.Has("ifGenerationMatch") {
		refuse(w, 400, "invalid", "not what this test expects: "+r.URL.RawQuery)
		return
	}
	if q.Get("ifGenerationMatch") != strconv.FormatInt(s.objects[name].generation, 10) {
		refuse(w, 412, "conditionNotMet", "At least one of the pre-conditions you specified did not hold.")
		return
	}
	s.last++
	o.generation = s.last
	if key := q.Get("kmsKeyName"); key != "" {
		o.metadata["kmsKeyName"] = key + "/cryptoKeyVersions/7"
	}
	s.objects[name] = o
	fmt.Fprintf(w, `{"kind": "storage#object", "name": %q, "bucket": "bucket", "generation": "%d"}`, name, o.generation)
}

func checkSum(content []byte) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.Checksum(content, castagnoli)))
}

// refuse answers with an error as the service does.
func refuse(w http.ResponseWriter, status int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error": {"code": %d, "message": %q, "errors": [{"message": %q, "domain": "global", "reason": %q}]}}`, status, message, message, reason)
}

func refusal(status int, reason, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		refuse(w, status, reason, message)
	}
}

func (s *service) open(ctx context.Context) (backends.Backend, error) {
	return open(ctx, &url.URL{Scheme: "gs", Host: "bucket", RawQuery: "endpoint=" + s.URL})
}

// handles are what Open and New make, the latter with a client whose retries
// are at their defaults. Nothing was asked through them yet.
func (s *service) handles(t *testing.T) map[string]backends.Backend {
	t.Helper()
	opened, err := s.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	all := map[string]backends.Backend{"Open": opened}
	for name, reads := range map[string]option.ClientOption{"New": option.WithUserAgent("XML"), "New with JSON reads": storage.WithJSONReads()} {
		all[name] = made(New(t.Context(), s.client(t, reads), &Options{Bucket: "bucket"}))
	}
	s.Requests()
	return all
}

// client is a user's client, with retries.
func (s *service) client(t *testing.T, more ...option.ClientOption) *storage.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	options := []option.ClientOption{
		option.WithEndpoint(s.URL + "/storage/v1/"),
		option.WithHTTPClient(&http.Client{Transport: transport}),
		option.WithCredentials(&google.Credentials{}), // or it looks for some on the machine
	}
	client, err := storage.NewClient(t.Context(), append(options, more...)...)
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
