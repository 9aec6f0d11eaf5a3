package consul

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
)

// A canned transport gives one answer to each request, and remembers the keys that
// were asked for.
type canned struct {
	status int
	index  string
	body   string
	keys   []string
}

func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if key, ok := strings.CutPrefix(r.URL.Path, "/v1/kv/"); ok {
		c.keys = append(c.keys, key)
	}
	var operations []struct{ KV Operation }
	if json.NewDecoder(r.Body).Decode(&operations) == nil {
		for _, o := range operations {
			c.keys = append(c.keys, o.KV.Key)
		}
	}
	header := http.Header{}
	if c.index != "" {
		header.Set("X-Consul-Index", c.index)
	}
	return &http.Response{StatusCode: c.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		Body: io.NopCloser(strings.NewReader(c.body)), ContentLength: int64(len(c.body)), Request: r}, nil
}

func (c *canned) backend() *Backend {
	return made(New(context.Background(), &http.Client{Transport: c}, &Options{Address: "http://h:8500"}))
}

// FuzzContent: whatever value a key has, it is a record or foreign, and is read in
// bounded memory.
func FuzzContent(f *testing.F) {
	for _, content := range check.Contents() {
		f.Add(content, uint64(9))
	}
	f.Fuzz(func(t *testing.T, content []byte, index uint64) {
		body, _ := json.Marshal([]Pair{{Key: DefaultPrefix + check.Election, Value: content, ModifyIndex: index}})
		b := (&canned{status: 200, index: "9", body: string(body)}).backend()
		var r backends.Record
		var err error
		check.Bounded(t, 1<<12+min(len(body), maxAnswer), func() { r, err = b.Load(t.Context(), check.Election) })
		if index == 0 && errors.Is(err, backends.ErrMisconfigured) || len(body) > maxAnswer && errors.Is(err, backends.ErrForeignRecord) {
			return
		}
		if check.Loaded(t, check.Election, r, err) && r.Version != version(index) {
			t.Fatalf("the version of index %d is %q", index, r.Version)
		}
	})
}

// FuzzAnswer: whatever a server answers, a read is a record, no record by a 404
// with an index, or an error; and a write is applied, a conflict or an error.
func FuzzAnswer(f *testing.F) {
	pair := `{"LockIndex":0,"Key":"elector/` + check.Election + `","Flags":0,"Value":null,"CreateIndex":8,"ModifyIndex":9}`
	for _, body := range []string{"", "[]", "null", "{}", "[" + pair + "]", "[" + pair + "," + pair + "]", strings.Repeat("[", 1000), `{"Results":[{"KV":` + pair + `}],"Errors":null}`,
		`{"Results":null,"Errors":[{"OpIndex":0,"What":"failed to set key, index is stale"}]}`, `{"Errors":[{"OpIndex":0,"What":"Permission denied"}]}`, `{"Errors":[null]}`, `{"Results":[null]}`, `{"Results":[{"KV":null}]}`, "No cluster leader"} {
		for _, status := range []int{200, 403, 404, 409, 500} {
			f.Add(status, "9", body)
		}
	}
	f.Add(404, "", "")
	f.Add(404, "-1", "")
	f.Add(307, "18446744073709551616", "")
	f.Fuzz(func(t *testing.T, status int, index, body string) {
		if status < 200 || status > 999 || strings.ContainsAny(index, "\r\n") {
			return
		}
		b := (&canned{status: status, index: index, body: body}).backend()
		var r backends.Record
		var err error
		check.Bounded(t, 1<<12+min(len(body), maxAnswer), func() { r, err = b.Load(t.Context(), check.Election) })
		if err == nil && !r.Exists() && (status != 404 || strings.Trim(index, "+0123456789") != "" || index == "") {
			t.Fatalf("%d with the index %q means that there is no record", status, index)
		}
		if err == nil && r.Exists() && (status != 200 || r.Validate() != nil) {
			t.Fatalf("%d with %q is the record %+v", status, body, r)
		}
		made, err := b.Swap(t.Context(), check.Election, backends.Record{}, check.Good())
		if err == nil && (status != 200 || !made.Exists() || made.Version == "0") || errors.Is(err, backends.ErrConflict) && (status != 409 || !strings.Contains(body, "stale") && !strings.Contains(body, `\u`)) {
			t.Fatalf("%d with %q: made %+v, %v", status, body, made, err)
		}
		if err != nil && len(err.Error()) > 2000 {
			t.Fatalf("an error of %d bytes for a person to read", len(err.Error()))
		}
	})
}

// FuzzNames: a name is the end of a key, as it is; for an unusable name no request
// is made.
func FuzzNames(f *testing.F) {
	for _, names := range check.Names() {
		f.Add(names[0], names[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		var keys []string
		for _, name := range []string{a, b} {
			c := &canned{status: 500}
			_, err := c.backend().Load(t.Context(), name)
			_, e := c.backend().Swap(t.Context(), name, backends.Record{}, check.Good())
			if !check.Usable(name) {
				if !errors.Is(err, backends.ErrName) || !errors.Is(e, backends.ErrName) || len(c.keys) > 0 {
					t.Fatalf("%q: Load %v and Swap %v with the keys %q, want ErrName and none", name, err, e, c.keys)
				}
				return
			}
			key := DefaultPrefix + name
			if strings.Join(c.keys, " ") != strings.Join([]string{key, key, key + "/guard-", key + "/guard-" + check.Good().Attempt.Nonce}, " ") {
				t.Fatalf("%q has the keys %q", name, c.keys)
			}
			keys = append(keys, key)
		}
		if a != b {
			check.Distinct(t, keys...)
		}
	})
}

// FuzzURL: a URL names servers and a prefix or is refused, and what looks like a
// password in it, which has no place there, never shows.
func FuzzURL(f *testing.F) {
	check.URLs(f, "h", "h:1,i:2/a/b/", "[::1]:4/", "h,,i", ":8500", "", "/prefix", "h/%20x", "h/a%40b", "h//", "h/a..", "h/../a", "h?token=x", "h?dc=eu-1", "h?dc=a/b", "h?server_name=i", "h?ca=/no/such/file", "h?token_file=/no/such/file", "h?cert=a&key=b", "h#f")
	f.Setenv("CONSUL_HTTP_TOKEN", "")
	f.Setenv("CONSUL_HTTP_TOKEN_FILE", "")
	f.Fuzz(func(t *testing.T, form uint8, user, before, after, rest string) {
		a, ok := check.NewAddress(form, []string{"consul", "consuls"}, user, before, after, rest)
		if !ok {
			return
		}
		for _, text := range []string{a.Text, "consul://" + rest, "consuls://" + rest} {
			u, err := url.Parse(text)
			if err != nil {
				continue // backends.Open shows nothing of it
			}
			transport := &http.Transport{}
			b, err := parse(u, transport)
			a.Hides(t, err)
			if err != nil {
				if !errors.Is(err, backends.ErrURL) {
					t.Fatalf("%q: %v is not ErrURL", text, err)
				}
				continue
			}
			a.Hides(t, b.Describe().Store)
			if u.User != nil || !strings.HasSuffix(b.prefix, "/") || strings.HasPrefix(b.prefix, "/") || strings.Contains(b.prefix, "..") || len(b.addresses) == 0 || (transport.TLSClientConfig != nil) != (u.Scheme == "consuls") {
				t.Fatalf("%q: prefix %q, servers %q, TLS %v", text, b.prefix, b.addresses, transport.TLSClientConfig != nil)
			}
			for _, at := range b.addresses {
				if name, port, err := net.SplitHostPort(at.Host); err != nil || name == "" || port == "" {
					t.Fatalf("%q: server %q: %v", text, at.Host, err)
				}
			}
		}
	})
}
