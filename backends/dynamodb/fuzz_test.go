package dynamodb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
)

// A canned client gives one answer to each request, without a network, and
// remembers the requests' bodies.
type canned struct {
	status int
	answer []byte
	asked  [][]byte
}

func (c *canned) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	c.asked = append(c.asked, body)
	return &http.Response{StatusCode: c.status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(bytes.NewReader(c.answer)), ContentLength: int64(len(c.answer)), Request: r}, err
}

func (c *canned) backend() *Backend {
	client := dynamodb.New(dynamodb.Options{Region: "r", HTTPClient: c, Credentials: aws.CredentialsProviderFunc(
		func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "hunter2"}, nil
		})})
	return newBackend(client, "elector", func() {})
}

// FuzzItem: whatever string an item has as its record, it is one or foreign,
// and is read in bounded memory.
func FuzzItem(f *testing.F) {
	for _, content := range check.Contents() {
		f.Add(recordAttribute, "S", string(content))
	}
	good := string(backends.Encode(check.Election, check.Good()))
	f.Add("Record", "S", good)
	f.Add(recordAttribute, "B", good)
	f.Add(recordAttribute, "N", "5")
	f.Fuzz(func(t *testing.T, attribute, kind, content string) {
		if !utf8.ValidString(attribute + kind + content) {
			return // not in JSON: see FuzzAnswer
		}
		answer, err := json.Marshal(map[string]any{"Item": map[string]any{keyAttribute: map[string]string{"S": check.Election}, attribute: map[string]string{kind: content}}})
		if err != nil {
			t.Fatal(err)
		}
		b := (&canned{status: 200, answer: answer}).backend()
		var r backends.Record
		check.Bounded(t, 1<<14+len(answer), func() { r, err = b.Load(t.Context(), check.Election) })
		if err != nil && !errors.Is(err, backends.ErrForeignRecord) && (attribute != recordAttribute || kind != "S") {
			// An attribute of a kind that the service does not have is no answer of it.
			if !errors.Is(err, backends.ErrUnavailable) {
				t.Fatalf("Load of %s: %v", answer, err)
			}
			return
		}
		if check.Loaded(t, check.Election, r, err) && (attribute != recordAttribute || kind != "S" || string(r.Version) != content) {
			t.Fatalf("%s was taken as %+v", answer, r)
		}
	})
}

// FuzzAnswer: no answer, of any server, is taken for a record unless it is one, and
// an error is one of package backends'.
func FuzzAnswer(f *testing.F) {
	good, _ := json.Marshal(string(backends.Encode(check.Election, check.Good())))
	for _, body := range []string{`{}`, ``, `null`, `[]`, `"x"`, `{"Item":null}`, `{"Item":{}}`, `{"Item":[]}`, `{"Item":{"record":null}}`, `{"Item":{"record":{}}}`, `{"Item":{"record":{"S":null}}}`, `{"Item":{"record":{"S":5}}}`,
		`{"Item":{"record":{"NULL":true}}}`, `{"Item":{"record":{"M":{}}}}`, `{"Item":{"record":{"S":` + string(good) + `}}}`, `{"Item":{"record":{"S":` + string(good) + `,"N":"1"}}}`, `{"Item":{"record":{"S":` + string(good) + `}}}x`,
		`<html>`, `{"__type":"x#AccessDeniedException","message":"m"}`, `{"__type":"ThrottlingException"}`, `{"__type":"a.b#ResourceNotFoundException"}`, `{"__type":5}`, `{"message":"\ud800"}`} {
		f.Add(uint16(200), []byte(body))
		f.Add(uint16(400), []byte(body))
		f.Add(uint16(503), []byte(body))
	}
	f.Fuzz(func(t *testing.T, status uint16, body []byte) {
		c := &canned{status: 100 + int(status)%500, answer: body}
		r, err := c.backend().Load(t.Context(), check.Election)
		switch {
		case err == nil && r.Exists():
			check.Loaded(t, check.Election, r, err)
		case err == nil && r != (backends.Record{}):
			t.Fatalf("a record without a version: %+v", r)
		case err != nil && !known(err):
			t.Fatalf("%d %q: %v is no error of package backends", c.status, body, err)
		}
		next, err := c.backend().Swap(t.Context(), check.Election, backends.Record{}, check.Good())
		if err != nil && !known(err) && !errors.Is(err, backends.ErrConflict) || err == nil && (c.status < 200 || c.status >= 300 || !next.Exists()) {
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

// FuzzNames: a name is an item's key as it is; an invalid name is never sent.
func FuzzNames(f *testing.F) {
	for _, names := range check.Names() {
		f.Add(names[0])
	}
	f.Fuzz(func(t *testing.T, name string) {
		c := &canned{status: 200, answer: []byte("{}")}
		_, err := c.backend().Load(t.Context(), name)
		_, e := c.backend().Swap(t.Context(), name, backends.Record{}, check.Good())
		if !check.Usable(name) {
			if !errors.Is(err, backends.ErrName) || !errors.Is(e, backends.ErrName) || len(c.asked) > 0 {
				t.Fatalf("%q: Load %v and Swap %v with requests %q, want ErrName and none", name, err, e, c.asked)
			}
			return
		}
		if err != nil || e != nil || len(c.asked) != 2 {
			t.Fatalf("%q: Load %v and Swap %v with requests %q", name, err, e, c.asked)
		}
		for _, body := range c.asked {
			var asked struct{ Key, Item map[string]struct{ S string } }
			if err := json.Unmarshal(body, &asked); err != nil || asked.Key[keyAttribute].S+asked.Item[keyAttribute].S != name {
				t.Fatalf("%q is asked for with %s, %v", name, body, err)
			}
		}
	})
}

// FuzzURL: a URL names a table or is refused, and what looks like a password in
// it, which has no place there, never shows.
func FuzzURL(f *testing.F) {
	check.URLs(f, "tab", "tab/?region=r", "tab?endpoint=http://h:1&create=true", "tab?endpoint=https://i:p@h", "tab?endpoint=ftp://h", "tab?single_region=true", "", "/tab", "ab", "host:8000/tab", "tab/other", "tab#x", "tab?create=perhaps", "tab?region=a&region=b")
	f.Fuzz(func(t *testing.T, form uint8, user, before, after, rest string) {
		a, ok := check.NewAddress(form, []string{"dynamodb"}, user, before, after, rest)
		if !ok {
			return
		}
		inEndpoint := a
		inEndpoint.Text = "dynamodb://tab?endpoint=http" + a.Text[len("dynamodb"):]
		for _, text := range []string{a.Text, inEndpoint.Text, "dynamodb://" + rest} {
			u, err := url.Parse(text)
			if err != nil {
				continue
			}
			got, err := parse(u)
			a.Hides(t, err, got.Table, got.region)
			if err != nil {
				if !errors.Is(err, backends.ErrURL) {
					t.Fatalf("%q: %v is not ErrURL", text, err)
				}
				continue
			}
			if text == a.Text && u.User != nil || !tableName.MatchString(got.Table) {
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
