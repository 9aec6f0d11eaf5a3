package azureblob

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
)

// A canned transport gives one answer to each request, without a network, and
// remembers what was asked for.
type canned struct {
	tag     string
	content []byte
	asked   []*url.URL
}

func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	status := http.StatusOK
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	if r.Method == http.MethodPut {
		status = http.StatusCreated
	}
	c.asked = append(c.asked, r.URL)
	header := http.Header{}
	if c.tag != "" {
		header.Set("ETag", c.tag)
	}
	return &http.Response{StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		Body: io.NopCloser(bytes.NewReader(c.content)), ContentLength: int64(len(c.content)), Request: r}, nil
}

func cannedBackend(f *testing.F) (*canned, *Backend) {
	c := &canned{}
	options := &container.ClientOptions{}
	options.Transport = &http.Client{Transport: c}
	client, err := container.NewClientWithNoCredential("http://h/account/container", options)
	if err != nil {
		f.Fatal(err)
	}
	b := made(New(context.Background(), client, nil))
	f.Cleanup(func() { b.Close() })
	return c, b
}

// FuzzBlob: whatever a blob holds, it is a record or foreign, and is read in
// bounded memory; and without an ETag of one state it is no blob.
func FuzzBlob(f *testing.F) {
	for _, content := range check.Contents() {
		f.Add(content, `"0x8DE5D7BBAA5E1C2"`)
	}
	for _, tag := range []string{"", "*", `"*"`, `W/"0x1"`, "0x1", `"a","b"`, `""`, `"a b"`} {
		f.Add(backends.Encode(check.Election, check.Good()), tag)
	}
	c, b := cannedBackend(f)
	f.Fuzz(func(t *testing.T, content []byte, tag string) {
		*c = canned{content: content, tag: tag}
		var r backends.Record
		var err error
		check.Bounded(t, 1<<14+min(len(content), maxBlob), func() { r, err = b.Load(t.Context(), check.Election) })
		if errors.Is(err, backends.ErrMisconfigured) {
			if entity.MatchString(tag) {
				t.Fatalf("ETag %s is one: %v", tag, err)
			}
			return
		}
		if check.Loaded(t, check.Election, r, err) && (string(r.Version) != tag || strings.Contains(tag[1:len(tag)-1], `"`) || strings.Contains(tag, "*")) {
			t.Fatalf("ETag %q makes version %q", tag, r.Version)
		}
	})
}

// FuzzNames: a name is the end of a blob's name, before the suffix; for an unusable
// name no request is made.
func FuzzNames(f *testing.F) {
	for _, names := range check.Names() {
		f.Add(names[0])
	}
	c, b := cannedBackend(f)
	f.Fuzz(func(t *testing.T, name string) {
		*c = canned{content: []byte("{}"), tag: `"0x1"`}
		_, err := b.Load(t.Context(), name)
		_, e := b.Swap(t.Context(), name, backends.Record{}, check.Good())
		if !check.Usable(name) {
			if !errors.Is(err, backends.ErrName) || !errors.Is(e, backends.ErrName) || len(c.asked) > 0 {
				t.Fatalf("%q: Load %v and Swap %v with requests %q, want ErrName and none", name, err, e, c.asked)
			}
			return
		}
		if !errors.Is(err, backends.ErrForeignRecord) || e != nil || len(c.asked) != 2 {
			t.Fatalf("%q: Load %v and Swap %v with requests %q", name, err, e, c.asked)
		}
		for _, u := range c.asked {
			if u.Path != "/account/container/"+DefaultPrefix+name+suffix || u.RawQuery != "" {
				t.Fatalf("%q is asked for as %s", name, u)
			}
		}
	})
}

// FuzzURL: a URL names a container and a prefix or is refused, and what looks like a
// password in it, which has no place there, never shows.
func FuzzURL(f *testing.F) {
	check.URLs(f, "account/container", "account/container/", "account/container/a/b/", "account/container?endpoint=http://h:1/account", "account/container?endpoint=https://i:p@h", "account/container?endpoint=h", "", "/a", "account", "account:80/container",
		"account/container/a//b", "account/container/../a", "account/container/a.", "account/container/a%0ab", "account/container/%ff", "account/container/"+strings.Repeat("a", 900), "account/container#x", "account/container?x=1", "account/container?sig=s", "account-secondary/container")
	f.Fuzz(func(t *testing.T, form uint8, user, before, after, rest string) {
		a, ok := check.NewAddress(form, []string{"azureblob"}, user, before, after, rest)
		if !ok {
			return
		}
		inEndpoint := "azureblob://account/container?endpoint=http" + a.Text[len("azureblob"):]
		for _, text := range []string{a.Text, inEndpoint, "azureblob://" + rest} {
			u, err := url.Parse(text)
			if err != nil {
				continue
			}
			c, err := parse(u)
			a.Hides(t, err, c.account, c.container, c.prefix, c.endpoint)
			if err != nil {
				if !errors.Is(err, backends.ErrURL) {
					t.Fatalf("%q: %v is not ErrURL", text, err)
				}
				continue
			}
			if text == a.Text && u.User != nil || !accountName.MatchString(c.account) || !containerName.MatchString(c.container) || !strings.HasSuffix(c.prefix, "/") || strings.HasPrefix(c.prefix, "/") || len(c.prefix)+backends.MaxName+len(suffix) > 1024 || !backends.ValidText(c.prefix) {
				t.Fatalf("%q was taken as %+v", text, c)
			}
			if e, err := url.Parse(c.endpoint); err != nil || e.User != nil {
				t.Fatalf("%q was taken as %+v", text, c)
			}
		}
	})
}
