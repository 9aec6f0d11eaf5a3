package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
)

// A canned transport gives one answer to each request, without a network, and
// remembers the requests.
type canned struct {
	status int
	answer []byte
	asked  []*url.URL
	sent   [][]byte
}

func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		body, _ := io.ReadAll(r.Body)
		c.sent = append(c.sent, body)
	}
	c.asked = append(c.asked, r.URL)
	return &http.Response{StatusCode: c.status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(c.answer)), ContentLength: int64(len(c.answer)), Request: r}, nil
}

func (c *canned) backend() *Backend {
	return made(New(context.Background(), &http.Client{Transport: c}, &Options{BaseURL: "http://h", Namespace: "team"}))
}

// holding returns a Lease that holds the content.
func holding(content string) lease {
	return lease{Kind: "Lease", Metadata: metadata{Name: objectName(check.Election), UID: "u", ResourceVersion: "7", Annotations: map[string]string{recordAnnotation: content}}}
}

// FuzzContent: whatever the annotation of a Lease is, it is a record or foreign, and
// is read in bounded memory.
func FuzzContent(f *testing.F) {
	for _, content := range check.Contents() {
		f.Add(string(content))
	}
	f.Fuzz(func(t *testing.T, content string) {
		if !utf8.ValidString(content) {
			return // not in JSON: see FuzzAnswer
		}
		c := &canned{status: 200, answer: []byte(marshal(holding(content)))}
		b := c.backend()
		var r backends.Record
		var err error
		check.Bounded(t, 1<<14+len(c.answer), func() { r, err = b.Load(t.Context(), check.Election) })
		if check.Loaded(t, check.Election, r, err) && r.Version != "u/7" {
			t.Fatalf("the version is %q", r.Version)
		}
	})
}

// FuzzAnswer: an answer that is not that of an API server is an error, never an
// election without a record, and never a conflict.
func FuzzAnswer(f *testing.F) {
	absent := `{"kind":"Status","reason":"NotFound","details":{"name":"invoice-sender","kind":"leases"}}`
	good := marshal(holding(string(backends.Encode(check.Election, check.Good()))))
	for _, body := range []string{``, `null`, `{}`, `[]`, `"x"`, `<html>`, absent, strings.Replace(absent, "NotFound", "Conflict", 1), strings.Replace(absent, "leases", "pods", 1),
		good, good + "x", strings.Replace(good, `"u"`, `5`, 1), strings.Replace(good, `Lease`, `Pod`, 1), `{"kind":"Lease","metadata":{"name":"invoice-sender"}}`, `{"kind":"Status","message":"\ud800","code":5}`} {
		for _, status := range []uint16{200, 201, 404, 409, 410, 500} {
			f.Add(status-100, []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, status uint16, body []byte) {
		c := &canned{status: 100 + int(status)%500, answer: body}
		b := c.backend()
		r, err := b.Load(t.Context(), check.Election)
		switch {
		case err == nil && r.Exists():
			check.Loaded(t, check.Election, r, err)
		case err == nil && (r != backends.Record{} || c.status != 404 || !bytes.Contains(bytes.ToLower(body), []byte("notfound"))):
			t.Fatalf("%d %q is taken for an election without a record: %+v", c.status, body, r)
		case err != nil && !known(err):
			t.Fatalf("%d %q: %v is no error of package backends", c.status, body, err)
		}
		for _, prev := range []backends.Record{{}, {Version: "u/7"}} {
			_, err := b.Swap(t.Context(), check.Election, prev, check.Good())
			if errors.Is(err, backends.ErrConflict) && c.status != 404 && c.status != 409 || err != nil && !errors.Is(err, backends.ErrConflict) && !known(err) {
				t.Fatalf("%d %q: Swap returns %v", c.status, body, err)
			}
		}
	})
}

func known(err error) bool {
	for _, kind := range []error{backends.ErrForeignRecord, backends.ErrDenied, backends.ErrMisconfigured, backends.ErrUnavailable} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// FuzzEvent: whatever a watch brings, the Watch reports a record, reports that there
// is none, or ends.
func FuzzEvent(f *testing.F) {
	good := holding(string(backends.Encode(check.Election, check.Good())))
	for _, line := range []string{told("ADDED", good), told("MODIFIED", good), told("DELETED", good), told("BOOKMARK", good), told("ERROR", good), told("MODIFIED", holding("x")),
		`{"type":"ERROR","object":{"code":410}}`, `{"type":"ADDED"}`, `{"type":"ADDED","object":null}`, `{"type":"DELETED","object":{}}`, `null`} {
		f.Add([]byte(line), "5")
		f.Add([]byte(line), "")
	}
	f.Fuzz(func(t *testing.T, line []byte, since string) {
		b := (&canned{}).backend()
		r, news, err := b.follow(check.Election, event{"ADDED", line}, since)
		if err == nil && news {
			check.Loaded(t, check.Election, r, err)
		}
		if r, news, err = b.follow(check.Election, event{"DELETED", line}, since); err == nil && news && r != (backends.Record{}) {
			t.Fatalf("a deletion is reported as %+v", r)
		}
		if _, news, err = b.follow(check.Election, event{"ERROR", line}, since); err == nil || news {
			t.Fatalf("an error is %v", err)
		}
	})
}

// FuzzNames: two names are two Leases, whose names Kubernetes allows; for an
// unusable name no request is made.
func FuzzNames(f *testing.F) {
	for _, names := range check.Names() {
		f.Add(names[0], names[1])
	}
	f.Add("a--0123456789abcdef", "A")
	f.Fuzz(func(t *testing.T, a, b string) {
		var keys []string
		for _, name := range []string{a, b} {
			c := &canned{status: 500}
			h := c.backend()
			_, err := h.Load(t.Context(), name)
			_, e := h.Swap(t.Context(), name, backends.Record{Version: "u/7"}, check.Good())
			if !check.Usable(name) {
				if !errors.Is(err, backends.ErrName) || !errors.Is(e, backends.ErrName) || len(c.asked) > 0 {
					t.Fatalf("%q: Load %v and Swap %v with requests %q, want ErrName and none", name, err, e, c.asked)
				}
				return
			}
			if len(c.asked) != 2 || c.asked[0].Path != c.asked[1].Path || path.Dir(c.asked[0].Path) != leases || !bytes.Contains(c.sent[0], []byte(`"name":"`+path.Base(c.asked[0].Path)+`"`)) {
				t.Fatalf("%q is asked for as %q", name, c.asked)
			}
			object := path.Base(c.asked[0].Path)
			if len(object) > 253 || !subdomain.MatchString(object) {
				t.Fatalf("%q is kept as %q", name, object)
			}
			keys = append(keys, object)
		}
		if a != b {
			check.Distinct(t, keys...)
		}
	})
}

// FuzzURL: a URL names an API server and a namespace or is refused, and what looks
// like a password in it, which has no place there, never shows.
func FuzzURL(f *testing.F) {
	check.URLs(f, "h/team", "h:6443/team", "[::1]:4/team", "h/team/", "h,i/team", ":1/team", "", "/team", "h", "h/a/b", "h/%2e%2e", "h/team?tls=false", "h/team?tls=x", "h/team?ca=/no/such/file", "h/team?ca=a&ca=b", "h/team?token_file=/no", "h/team?token=x", "h/team?server_name=i", "h/team#f")
	f.Setenv("KUBERNETES_SERVICE_HOST", "")
	f.Fuzz(func(t *testing.T, form uint8, user, before, after, rest string) {
		a, ok := check.NewAddress(form, []string{"kubernetes"}, user, before, after, rest)
		if !ok {
			return
		}
		texts := []string{a.Text, "kubernetes://" + rest}
		for _, key := range []string{"token", "password"} {
			if query, ok := a.Query(key); ok {
				texts = append(texts, "kubernetes://h/team?"+query)
			}
		}
		for _, text := range texts {
			u, err := url.Parse(text)
			if err != nil {
				continue
			}
			c, err := parse(u)
			a.Hides(t, err, c.store, c.base, c.namespace)
			if err != nil {
				if !errors.Is(err, backends.ErrURL) {
					t.Fatalf("%q: %v is not ErrURL", text, err)
				}
				continue
			}
			base, err := url.Parse(c.base)
			if text == a.Text && u.User != nil || !namespaceName.MatchString(c.namespace) || err != nil || base.Port() == "" || base.Path != "" || (base.Scheme == "https") != (c.tls != nil) || c.tls == nil && c.tokenFile != "" {
				t.Fatalf("%q was taken as %+v", text, c)
			}
		}
	})
}
