package s3

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
)

// A canned client gives one answer to each request, without a network, and
// remembers what was asked for.
type canned struct {
	status int
	etag   string
	answer []byte
	asked  []*url.URL
}

func (c *canned) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	c.asked = append(c.asked, r.URL)
	header := http.Header{}
	if c.etag != "" {
		header["Etag"] = []string{c.etag}
	}
	return &http.Response{StatusCode: c.status, Header: header, Body: io.NopCloser(bytes.NewReader(c.answer)), ContentLength: int64(len(c.answer)), Request: r}, nil
}

// backend is one that was opened.
func (c *canned) backend() *Backend {
	client := s3.New(s3.Options{Region: "r", HTTPClient: c, UsePathStyle: true, Credentials: aws.CredentialsProviderFunc(
		func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "hunter2"}, nil
		})})
	b := newBackend(client, "bucket", DefaultPrefix, func() {})
	b.proven.Store(true)
	return b
}

// FuzzObject: whatever an object holds, it is a record, foreign or torn, and is read
// in bounded memory; and without an entity tag it is no object.
func FuzzObject(f *testing.F) {
	for _, content := range check.Contents() {
		f.Add(content, object{content: content}.tag())
	}
	for _, etag := range []string{"", `"x"`, `""`, "x", `"00000000000000000000000000000000"`, `W/"x"`} {
		f.Add(backends.Encode(check.Election, check.Good()), etag)
	}
	f.Fuzz(func(t *testing.T, content []byte, etag string) {
		b := (&canned{status: 200, answer: content, etag: etag}).backend()
		var r backends.Record
		var err error
		check.Bounded(t, 1<<15+min(len(content), maxObject), func() { r, err = b.Load(t.Context(), check.Election) })
		switch {
		case errors.Is(err, backends.ErrMisconfigured):
			if etag != "" {
				t.Fatalf("entity tag %q is one: %v", etag, err)
			}
		case errors.Is(err, backends.ErrUnavailable):
			if !md5Form.MatchString(etag) || (object{content: content}).tag() == etag {
				t.Fatalf("entity tag %q is that of the content: %v", etag, err)
			}
		case check.Loaded(t, check.Election, r, err) && string(r.Version) != etag:
			t.Fatalf("entity tag %q makes version %q", etag, r.Version)
		}
	})
}

// FuzzAnswer: no answer, of any server, is taken for a record unless it is one, and
// only the service's own error code shows that a record does not exist.
func FuzzAnswer(f *testing.F) {
	for _, body := range []string{``, `<`, `<Error/>`, `<Error><Code>NoSuchKey</Code></Error>`, `<Error><Code>NoSuchBucket</Code></Error>`, `<Error><Code>PreconditionFailed</Code></Error>`, `<Error><Code>AccessDenied</Code></Error>`,
		`<Error><Code>NoSuchKey`, `<html>404</html>`, `{"Code":"NoSuchKey"}`, `<Error><Code>SlowDown</Code><Message>a&#10;b</Message></Error>`, string(backends.Encode(check.Election, check.Good()))} {
		for _, status := range []uint16{200, 204, 301, 304, 400, 403, 404, 409, 412, 503} {
			f.Add(status-100, `"x"`, []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, status uint16, etag string, body []byte) {
		c := &canned{status: 100 + int(status)%500, etag: etag, answer: body}
		r, err := c.backend().Load(t.Context(), check.Election)
		switch {
		case err == nil && r.Exists():
			check.Loaded(t, check.Election, r, err)
		case err == nil && (r != (backends.Record{}) || !bytes.Contains(body, []byte(noSuchKey))):
			t.Fatalf("%d %q was taken for no record: %+v", c.status, body, r)
		case err != nil && !known(err):
			t.Fatalf("%d %q: %v is no error of package backends", c.status, body, err)
		}
		next, err := c.backend().Swap(t.Context(), check.Election, backends.Record{}, check.Good())
		if err != nil && !known(err) && !errors.Is(err, backends.ErrConflict) || err == nil && (c.status < 200 || c.status >= 300 || string(next.Version) != etag) {
			t.Fatalf("%d %q: Swap returns %+v, %v", c.status, body, next, err)
		}
		if len(c.asked) != 2 {
			t.Fatalf("%d %q: two calls made %d requests", c.status, body, len(c.asked))
		}
	})
}

func known(err error) bool {
	return errors.Is(err, backends.ErrForeignRecord) || errors.Is(err, backends.ErrUnavailable) || errors.Is(err, backends.ErrDenied) || errors.Is(err, backends.ErrMisconfigured)
}

// FuzzNames: a name is the end of an object's key, as it is; for an unusable name no
// request is made.
func FuzzNames(f *testing.F) {
	for _, names := range check.Names() {
		f.Add(names[0])
	}
	f.Fuzz(func(t *testing.T, name string) {
		c := &canned{status: 200, answer: []byte("{}"), etag: `"1"`}
		_, err := c.backend().Load(t.Context(), name)
		_, e := c.backend().Swap(t.Context(), name, backends.Record{}, check.Good())
		if !check.Usable(name) {
			if !errors.Is(err, backends.ErrName) || !errors.Is(e, backends.ErrName) || len(c.asked) > 0 {
				t.Fatalf("%q: Load %v and Swap %v with requests %q, want ErrName and none", name, err, e, c.asked)
			}
			return
		}
		if !errors.Is(err, backends.ErrForeignRecord) || e != nil || len(c.asked) != 2 {
			t.Fatalf("%q: Load %v and Swap %v with requests %q", name, err, e, c.asked)
		}
		for _, asked := range c.asked {
			if asked.Path != "/bucket/"+DefaultPrefix+name {
				t.Fatalf("%q is asked for with %s", name, asked)
			}
		}
	})
}

// FuzzURL: a URL names a bucket and a prefix or is refused, and what looks like a
// password in it, which has no place there, never shows.
func FuzzURL(f *testing.F) {
	check.URLs(f, "bucket", "bucket/", "bucket/a/b/", "bucket?endpoint=http://h:1&path_style=false", "bucket?endpoint=https://i:p@h", "bucket?endpoint=https://h/gateway", "bucket?endpoint=h", "bucket?region=r", "bucket?path_style=perhaps", "", "/a", "b", "bucket:80", "bucket--x-s3",
		"bucket/a//b", "bucket/../a", "bucket/a%0ab", "bucket/%ff", "bucket/"+strings.Repeat("a", 900), "bucket#x", "bucket?x=1")
	f.Fuzz(func(t *testing.T, form uint8, user, before, after, rest string) {
		a, ok := check.NewAddress(form, []string{"s3"}, user, before, after, rest)
		if !ok {
			return
		}
		inEndpoint := "s3://bucket?endpoint=http" + a.Text[len("s3"):]
		for _, text := range []string{a.Text, inEndpoint, "s3://" + rest} {
			u, err := url.Parse(text)
			if err != nil {
				continue
			}
			got, err := parse(u)
			a.Hides(t, err, got.bucket, got.prefix, got.region)
			if err != nil {
				if !errors.Is(err, backends.ErrURL) {
					t.Fatalf("%q: %v is not ErrURL", text, err)
				}
				continue
			}
			if text == a.Text && u.User != nil || !bucketName.MatchString(got.bucket) || !strings.HasSuffix(got.prefix, "/") || strings.HasPrefix(got.prefix, "/") || len(got.prefix)+backends.MaxName > 1024 || !backends.ValidText(got.prefix) {
				t.Fatalf("%q was taken as %+v", text, got)
			}
			if e, err := url.Parse(got.endpoint); err != nil || got.endpoint != "" && (e.Host == "" || e.User != nil) {
				t.Fatalf("%q was taken with endpoint %q", text, got.endpoint)
			} else {
				a.Hides(t, backends.Redact(e)) // a part of the store's name from now on
			}
		}
	})
}
