package s3

import (
	"context"
	"errors"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
	"github.com/elector-go/elector/internal/mute"
)

func TestOpen(t *testing.T) {
	taken := func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("ETag", `"x"`)
	}
	unless := func(field string) http.HandlerFunc { // ignores all conditions but this
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get(field) != "" {
				refuse(w, 412, "PreconditionFailed", "no")
				return
			}
			taken(w, r)
		}
	}
	denied := refusal(403, "AccessDenied", "Access Denied")
	for _, c := range []struct {
		what          string
		absent, probe http.HandlerFunc
		want          error
		says          string
	}{
		{what: "well"},
		{what: "an object that may not be written, for observers", probe: denied},
		{what: "conditions ignored", probe: taken, want: backends.ErrMisconfigured, says: "in spite of If-None-Match"},
		{what: "If-None-Match ignored", probe: unless("If-Match"), want: backends.ErrMisconfigured, says: "in spite of If-None-Match"},
		{what: "If-Match ignored", probe: unless("If-None-Match"), want: backends.ErrMisconfigured, says: "of If-Match"},
		{what: "conditions unknown", probe: refusal(501, "NotImplemented", "A header you provided implies functionality that is not implemented"), want: backends.ErrMisconfigured, says: "knows no conditional writes"},
		{what: "no bucket", absent: refusal(404, "NoSuchBucket", "The specified bucket does not exist"), want: backends.ErrMisconfigured, says: "aws s3api create-bucket --bucket bucket"},
		{what: "nothing permitted", absent: denied, want: backends.ErrDenied, says: "s3:PutObject on arn:aws:s3:::bucket/elector/*"},
		{what: "no such user", absent: refusal(403, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records."), want: backends.ErrDenied, says: "credentials"},
		{what: "a wrong secret", absent: refusal(403, "SignatureDoesNotMatch", "The request signature we calculated does not match"), want: backends.ErrDenied, says: "credentials"},
		{what: "another region", absent: refusal(301, "PermanentRedirect", "The bucket you are attempting to access must be addressed using the specified endpoint."), want: backends.ErrMisconfigured, says: "another region"},
		{what: "a redirect", absent: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, want: backends.ErrMisconfigured, says: "redirects"},
		{what: "a region in the signature", absent: refusal(400, "AuthorizationHeaderMalformed", "the region 'us-east-1' is wrong; expecting 'eu-west-1'"), want: backends.ErrMisconfigured, says: "another region"},
		{what: "a wrong clock", absent: refusal(403, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large."), want: backends.ErrUnavailable, says: "clock"},
		{what: "an expired token", absent: refusal(400, "ExpiredToken", "The provided token has expired."), want: backends.ErrDenied, says: "expired"},
		{what: "an overloaded service", absent: refusal(503, "SlowDown", "Please reduce your request rate."), want: backends.ErrUnavailable, says: "throttles"},
		{what: "another service", absent: func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("Welcome to nginx!")) }, want: backends.ErrMisconfigured, says: "not S3"},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := newService(t)
			s.Instead(".absent", c.absent)
			s.Instead(".probe", c.probe)
			b, err := s.open(t.Context())
			if err == nil {
				b.Close()
			}
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if err != nil && (!strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "s3://bucket/elector/")) {
				t.Errorf("the error does not say %q and which store: %v", c.says, err)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
}

// The probe costs two writes, and one more where its object does not exist yet. On a
// server that is not Amazon's, rivals write too.
func TestProbe(t *testing.T) {
	s := newService(t)
	const race = 1 + rounds*(rivals+1)
	for i, want := range []map[string]int{{".absent": 1, ".probe": 3 + race}, {".absent": 1, ".probe": 2 + race}} {
		b, err := s.open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b.Close()
		if got := s.Requests(); !maps.Equal(got, want) {
			t.Errorf("opening for the %d. time took %v, want %v", i+1, got, want)
		}
	}
}

// A handle whose probe was denied reads, and writes nothing before the probe is done.
func TestUnproven(t *testing.T) {
	s := newService(t)
	s.Instead(".probe", refusal(403, "AccessDenied", "Access Denied"))
	for how, b := range s.handles(t) {
		s.Requests()
		if _, err := b.Load(t.Context(), how); err != nil {
			t.Errorf("%s: reading: %v", how, err)
		}
		if _, err := b.Swap(t.Context(), how, backends.Record{}, record); !errors.Is(err, backends.ErrDenied) || s.Requests()["write"] != 0 {
			t.Errorf("%s: writing: got %v, want ErrDenied and no request", how, err)
		}
		s.Instead(".probe", func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("ETag", `"x"`)
		})
		if _, err := b.Swap(t.Context(), how, backends.Record{}, record); !errors.Is(err, backends.ErrMisconfigured) || s.Requests()["write"] != 0 {
			t.Errorf("%s: writing without conditions: got %v, want ErrMisconfigured and no request", how, err)
		}
		s.Instead(".probe", nil)
		if _, err := b.Swap(t.Context(), how, backends.Record{}, record); err != nil {
			t.Errorf("%s: writing after the probe: %v", how, err)
		}
		s.Instead(".probe", refusal(403, "AccessDenied", "Access Denied"))
	}
}

// Opening ends with its context, whatever hangs.
func TestOpenDeadline(t *testing.T) {
	s := newService(t)
	asked := make(chan struct{}, 1)
	s.Instead(".absent", func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		mute.Handler(w, r)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if _, err := s.open(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
	if _, err := s.open(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
}

func TestOpenNowhere(t *testing.T) {
	newService(t) // for its credentials
	s := httptest.NewServer(nil)
	s.Close()
	u := &url.URL{Scheme: "s3", Host: "bucket", RawQuery: "endpoint=" + s.URL}
	if _, err := open(t.Context(), u); !errors.Is(err, backends.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	secured := httptest.NewUnstartedServer(http.NotFoundHandler())
	secured.Config.ErrorLog = log.New(io.Discard, "", 0)
	secured.StartTLS()
	defer secured.Close()
	u.RawQuery = "endpoint=" + secured.URL
	if _, err := open(t.Context(), u); !errors.Is(err, backends.ErrMisconfigured) {
		t.Errorf("a certificate that is not trusted: got %v, want ErrMisconfigured", err)
	}
}

func TestNoCredentials(t *testing.T) {
	s := newService(t)
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	if _, err := s.open(t.Context()); !errors.Is(err, backends.ErrDenied) || !strings.Contains(err.Error(), "AWS_PROFILE") {
		t.Errorf("got %v, want ErrDenied", err)
	}
	if n := s.Requests(); len(n) != 0 {
		t.Errorf("requests without credentials: %v", n)
	}
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	if _, err := open(t.Context(), &url.URL{Scheme: "s3", Host: "bucket"}); !errors.Is(err, backends.ErrURL) || !strings.Contains(err.Error(), "region") {
		t.Errorf("no region: got %v, want ErrURL", err)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]address{
		"s3://bucket":                                     {bucket: "bucket", prefix: "elector/"},
		"s3://bucket/":                                    {bucket: "bucket", prefix: "elector/"},
		"s3://my.bucket-x/a":                              {bucket: "my.bucket-x", prefix: "a/"},
		"s3://bucket/a/b%20c/":                            {bucket: "bucket", prefix: "a/b c/"},
		"s3://bucket?region=eu-west-1":                    {bucket: "bucket", prefix: "elector/", region: "eu-west-1"},
		"s3://bucket?endpoint=http://h:1":                 {bucket: "bucket", prefix: "elector/", endpoint: "http://h:1", pathStyle: true},
		"s3://bucket?readonly=true":                       {bucket: "bucket", prefix: "elector/", readOnly: true},
		"s3://bucket?path_style=true":                     {bucket: "bucket", prefix: "elector/", pathStyle: true},
		"s3://b12?endpoint=https://h/gateway":             {bucket: "b12", prefix: "elector/", endpoint: "https://h/gateway", pathStyle: true},
		"s3://bucket?endpoint=https://h&path_style=false": {bucket: "bucket", prefix: "elector/", endpoint: "https://h"},
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parse(u); err != nil || got != want {
			t.Errorf("%s: got %+v and error %v, want %+v", text, got, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"s3:bucket",
		"s3://",
		"s3:///a",
		"s3://Bucket",
		"s3://-bucket",
		"s3://ab",
		"s3://bucket--use1-az4--x-s3",
		"s3://" + strings.Repeat("a", 64),
		"s3://bucket:443/a",
		"s3://hunter2@bucket",
		"s3://user:hunter2@bucket/a",
		"s3://user:1/hunter2@bucket",
		"s3://user:1?hunter2@bucket",
		"s3://user:1#hunter2@bucket",
		"s3://bucket#a",
		"s3://bucket/a//b",
		"s3://bucket/a/../b",
		"s3://bucket/.",
		"s3://bucket/a%00",
		"s3://bucket/a%0Ab",
		"s3://bucket/%FF",
		"s3://bucket/" + strings.Repeat("a", 900),
		"s3://bucket?project=p",
		"s3://bucket?endpoint=a&endpoint=b",
		"s3://bucket?endpoint=127.0.0.1:4443",
		"s3://bucket?endpoint=ftp://h",
		"s3://bucket?endpoint=http://",
		"s3://bucket?endpoint=http://h%3Fkey=hunter2",
		"s3://bucket?endpoint=http://user:hunter2%40h",
		"s3://bucket?path_style=perhaps",
		"s3://bucket?readonly=perhaps",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = parse(u)
		if !errors.Is(err, backends.ErrURL) {
			t.Errorf("%s: got %v, want ErrURL", text, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows a secret: %v", text, err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	s := newService(t)
	client := s.client(t)
	check.NotMade[*Backend](t, "client")(New(t.Context(), nil, nil))
	check.NotMade[*Backend](t, "Bucket")(New(t.Context(), client, nil))
	check.NotMade[*Backend](t, "Bucket")(New(t.Context(), client, &Options{Bucket: "b/c"}))
	check.NotMade[*Backend](t, "Bucket")(New(t.Context(), client, &Options{Bucket: "zone--x-s3"}))
	check.NotMade[*Backend](t, "Prefix")(New(t.Context(), client, &Options{Bucket: "bucket", Prefix: "a//b/"}))
	if n := s.Requests(); len(n) > 0 {
		t.Errorf("it was asked: %v", n)
	}
	reader, err := New(t.Context(), client, &Options{Bucket: "bucket", ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	check.OnlyReads(t, reader)
}
