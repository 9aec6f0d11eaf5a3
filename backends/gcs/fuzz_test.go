package gcs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"cloud.google.com/go/storage"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/option"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
)

// A canned transport gives one answer to each request, without a network, and
// remembers what was asked for.
type canned struct {
	status     int
	generation string
	content    []byte
	asked      []*url.URL
}

func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	c.asked = append(c.asked, r.URL)
	header := http.Header{}
	if c.generation != "" {
		header.Set("X-Goog-Generation", c.generation)
	}
	return &http.Response{StatusCode: c.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		Body: io.NopCloser(bytes.NewReader(c.content)), ContentLength: int64(len(c.content)), Request: r}, nil
}

// cannedBackends are one whose client reads objects by XML and one by JSON.
func cannedBackends(f *testing.F) (c *canned, all []*Backend) {
	c = &canned{}
	for _, reads := range []option.ClientOption{option.WithUserAgent("XML"), storage.WithJSONReads()} {
		client, err := storage.NewClient(context.Background(), reads, option.WithEndpoint("http://h/storage/v1/"),
			option.WithHTTPClient(&http.Client{Transport: c}), option.WithCredentials(&google.Credentials{}))
		if err != nil {
			f.Fatal(err)
		}
		b := made(New(context.Background(), client, &Options{Bucket: "bucket"}))
		f.Cleanup(func() { b.Close(); client.Close() })
		all = append(all, b)
	}
	return c, all
}

// FuzzObject: whatever an object holds, it is a record or foreign, and is read
// in bounded memory; and without a generation it is no object.
func FuzzObject(f *testing.F) {
	for _, content := range check.Contents() {
		f.Add(content, "1795184054880793")
	}
	for _, generation := range []string{"", "0", "-1", "1", "x", "9223372036854775807", "9223372036854775808"} {
		f.Add(backends.Encode(check.Election, check.Good()), generation)
	}
	c, all := cannedBackends(f)
	f.Fuzz(func(t *testing.T, content []byte, generation string) {
		for _, b := range all {
			*c = canned{status: 200, content: content, generation: generation}
			var r backends.Record
			var err error
			check.Bounded(t, 1<<14+min(len(content), maxObject), func() { r, err = b.Load(t.Context(), check.Election) })
			if errors.Is(err, backends.ErrUnavailable) || errors.Is(err, backends.ErrMisconfigured) {
				if strings.Trim(generation, "0123456789") == "" && strings.Trim(generation, "0") != "" && len(generation) < 19 {
					t.Fatalf("generation %s is one: %v", generation, err)
				}
				continue
			}
			if check.Loaded(t, check.Election, r, err) && strings.Trim(string(r.Version), "0123456789") != "" {
				t.Fatalf("generation %q makes version %q", generation, r.Version)
			}
		}
	})
}

// FuzzNames: a name is the end of an object's name, as it is; for an unusable
// name no request is made.
func FuzzNames(f *testing.F) {
	for _, names := range check.Names() {
		f.Add(names[0])
	}
	c, all := cannedBackends(f)
	f.Fuzz(func(t *testing.T, name string) {
		for _, b := range all {
			*c = canned{status: 200, content: []byte(`{"generation":"1"}`), generation: "1"}
			_, err := b.Load(t.Context(), name)
			_, e := b.Swap(t.Context(), name, backends.Record{}, check.Good())
			if !check.Usable(name) {
				if !errors.Is(err, backends.ErrName) || !errors.Is(e, backends.ErrName) || len(c.asked) > 0 {
					t.Fatalf("%q: Load %v and Swap %v with requests %q, want ErrName and none", name, err, e, c.asked)
				}
				continue
			}
			if !errors.Is(err, backends.ErrForeignRecord) || e != nil || len(c.asked) != 2 {
				t.Fatalf("%q: Load %v and Swap %v with requests %q", name, err, e, c.asked)
			}
			read := c.asked[0].Path
			if i := strings.Index(read, "bucket/"); i < 0 || strings.TrimPrefix(read[i+len("bucket/"):], "o/") != DefaultPrefix+name || c.asked[1].Query().Get("name") != DefaultPrefix+name {
				t.Fatalf("%q is read as %s and written as %s", name, read, c.asked[1])
			}
		}
	})
}

// FuzzURL: a URL names a bucket and a prefix or is refused, and what looks like
// a password in it, which has no place there, never shows.
func FuzzURL(f *testing.F) {
	check.URLs(f, "bucket", "bucket/", "bucket/a/b/", "bucket?endpoint=http://h:1", "bucket?endpoint=https://i:p@h", "bucket?endpoint=http://h/storage/v1/", "bucket?endpoint=h", "", "/a", "b", "bucket:80", "bucket/a//b", "bucket/../a", "bucket/a%0ab", "bucket/%ff", "bucket/.well-known/x",
		"bucket/"+strings.Repeat("a", 900), "bucket#x", "bucket?x=1")
	f.Setenv("STORAGE_EMULATOR_HOST", "")
	f.Fuzz(func(t *testing.T, form uint8, user, before, after, rest string) {
		a, ok := check.NewAddress(form, []string{"gs"}, user, before, after, rest)
		if !ok {
			return
		}
		inEndpoint := "gs://bucket?endpoint=http" + a.Text[len("gs"):]
		for _, text := range []string{a.Text, inEndpoint, "gs://" + rest} {
			u, err := url.Parse(text)
			if err != nil {
				continue
			}
			c, err := parse(u)
			a.Hides(t, err, c.bucket, c.prefix, c.endpoint)
			if err != nil {
				if !errors.Is(err, backends.ErrURL) {
					t.Fatalf("%q: %v is not ErrURL", text, err)
				}
				continue
			}
			if text == a.Text && u.User != nil || !bucketName.MatchString(c.bucket) || !strings.HasSuffix(c.prefix, "/") || strings.HasPrefix(c.prefix, "/") || len(c.prefix)+backends.MaxName > 1024 || !backends.ValidText(c.prefix) {
				t.Fatalf("%q was taken as %+v", text, c)
			}
			if e, err := url.Parse(c.endpoint); err != nil || e.User != nil || (c.endpoint != "") != c.anonymous {
				t.Fatalf("%q was taken as %+v", text, c)
			}
		}
	})
}
