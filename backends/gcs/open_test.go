package gcs

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
	"github.com/elector-go/elector/internal/mute"
)

func TestOpen(t *testing.T) {
	forbidden := refusal(403, "forbidden", "a@b.c does not have storage.buckets.get access to the Google Cloud Storage bucket.")
	for _, test := range []struct {
		what         string
		attributes   string
		bucket, read http.HandlerFunc
		want         error
		says         string
	}{
		{what: "well"},
		{what: "attributes that may not be read", bucket: forbidden},
		{what: "attributes that do no harm", attributes: `, "versioning": {"enabled": true}, "objectRetention": {"mode": "Enabled"}, "softDeletePolicy": {"retentionDurationSeconds": "604800"}`},
		{what: "a retention policy", attributes: `, "retentionPolicy": {"retentionPeriod": "3600", "effectiveTime": "2026-01-01T00:00:00Z"}`,
			want: backends.ErrMisconfigured, says: "gcloud storage buckets update gs://bucket --clear-retention-period"},
		{what: "a default hold", attributes: `, "defaultEventBasedHold": true`,
			want: backends.ErrMisconfigured, says: "--no-default-event-based-hold"},
		{what: "no bucket", bucket: refusal(404, "notFound", "The specified bucket does not exist."),
			want: backends.ErrMisconfigured, says: "gcloud storage buckets create gs://bucket"},
		{what: "no login", bucket: refusal(401, "authError", "Invalid Credentials"), want: backends.ErrDenied, says: "credentials"},
		{what: "nothing permitted", bucket: forbidden, read: refusal(403, "forbidden", "a@b.c does not have storage.objects.get access to the Google Cloud Storage object."),
			want: backends.ErrDenied, says: "gcloud storage buckets add-iam-policy-binding gs://bucket"},
		{what: "listing not permitted", bucket: forbidden, read: refusal(403, "forbidden", "a@b.c does not have storage.objects.list access to the Google Cloud Storage bucket."),
			want: backends.ErrDenied, says: "that an object is missing"},
		{what: "an overloaded service", bucket: refusal(503, "backendError", "Backend Error"), want: backends.ErrUnavailable, says: "network"},
		{what: "requester pays", bucket: refusal(400, "required", "Bucket is a requester pays bucket but no user project provided."),
			want: backends.ErrMisconfigured, says: "requester-pays"},
		{what: "another service", bucket: forbidden, read: func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("Welcome to nginx!")) },
			want: backends.ErrMisconfigured, says: "not Cloud Storage"},
	} {
		t.Run(test.what, func(t *testing.T) {
			s := newService(t)
			s.bucket = test.attributes
			s.Instead("bucket", test.bucket)
			s.Instead("read", test.read)
			b, err := s.open(t.Context())
			if err == nil {
				b.Close()
			}
			if !errors.Is(err, test.want) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			if err != nil && (!strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "gs://bucket/elector/")) {
				t.Errorf("the error does not say %q and which store: %v", test.says, err)
			}
			for what, n := range s.Requests() {
				if n != 1 {
					t.Errorf("%d requests to %s", n, what)
				}
			}
		})
	}
}

// A bucket whose attributes we may not read shows that it keeps what it has at
// the first overwrite.
func TestRefusedWrites(t *testing.T) {
	const object = "Object 'bucket/elector/a' is "
	s := newService(t)
	for how, b := range s.handles(t) {
		for _, test := range []struct {
			status          int
			reason, message string
			want            error
			says            string
		}{
			{403, "retentionPolicyNotMet", object + "subject to bucket's retention policy or object retention and cannot be deleted or overwritten until 2031-09-20T12:18:15Z", backends.ErrMisconfigured, "--clear-retention-period"},
			{403, "forbidden", object + "subject to bucket's retention policy and cannot be deleted, overwritten or archived until 2031-09-20T12:18:15Z", backends.ErrMisconfigured, "--clear-retention-period"},
			{403, "objectUnderActiveHold", object + "under active Event-Based hold and cannot be deleted, overwritten or archived until hold is removed.", backends.ErrMisconfigured, "--no-event-based-hold"},
			{403, "forbidden", object + "under active Temporary hold and cannot be deleted, overwritten or archived until hold is removed.", backends.ErrMisconfigured, "--no-temporary-hold"},
			{403, "forbidden", "a@b.c does not have storage.objects.delete access to the Google Cloud Storage object. Permission 'storage.objects.delete' denied on resource (or it may not exist).", backends.ErrDenied, "roles/storage.objectUser"},
			{403, "accountDisabled", "The billing account for the owning project is disabled in state absent", backends.ErrDenied, "billing"},
			{403, "userRateLimitExceeded", "Slow down", backends.ErrUnavailable, "fewer requests"},
			{429, "rateLimitExceeded", "The object bucket/elector/a exceeded the rate limit for object mutation operations", backends.ErrUnavailable, "one write a second"},
			{401, "authError", "Invalid Credentials", backends.ErrDenied, "GOOGLE_APPLICATION_CREDENTIALS"},
			{404, "notFound", "The specified bucket does not exist.", backends.ErrMisconfigured, "no bucket"},
			{412, "orgPolicyConstraintFailed", "Request violates constraint 'constraints/gcp.restrictNonCmekServices'", backends.ErrMisconfigured, "organization"},
			{412, "conditionNotMet", "At least one of the pre-conditions you specified did not hold.", backends.ErrConflict, ""},
			{400, "invalid", "Invalid bucket name: 'b'", backends.ErrMisconfigured, "correct the bucket"},
			{400, "invalid", "something new", backends.ErrUnavailable, "network"},
			{507, "", "something new", backends.ErrUnavailable, "network"},
		} {
			s.Instead("write", refusal(test.status, test.reason, test.message))
			_, err := b.Swap(t.Context(), "a", backends.Record{Version: "17"}, record)
			if !errors.Is(err, test.want) {
				t.Errorf("%s, %d %s: got %v, want %v", how, test.status, test.message, err, test.want)
				continue
			}
			if test.want != backends.ErrConflict && (!strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), test.message)) {
				t.Errorf("%s, %d %s: the error does not say %q and what the service said: %v", how, test.status, test.message, test.says, err)
			}
			if backends.Permanent(err) != (test.want == backends.ErrMisconfigured || test.want == backends.ErrDenied) {
				t.Errorf("%s: trying again is thought of wrongly: %v", how, err)
			}
		}
	}
}

// Opening ends with its context, whatever hangs.
func TestOpenDeadline(t *testing.T) {
	s := newService(t)
	s.Instead("bucket", mute.Handler)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.open(ctx); !errors.Is(err, backends.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want ErrUnavailable and DeadlineExceeded", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.open(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
}

func TestOpenNowhere(t *testing.T) {
	s := httptest.NewServer(nil)
	s.Close()
	u := &url.URL{Scheme: "gs", Host: "bucket", RawQuery: "endpoint=" + s.URL}
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

func TestParse(t *testing.T) {
	t.Setenv("STORAGE_EMULATOR_HOST", "")
	for s, want := range map[string]config{
		"gs://bucket":                                    {"bucket", "elector/", "", false, false},
		"gs://bucket?readonly=true":                      {"bucket", "elector/", "", false, true},
		"gs://bucket/":                                   {"bucket", "elector/", "", false, false},
		"gs://my.bucket_1-x/a":                           {"my.bucket_1-x", "a/", "", false, false},
		"gs://bucket/a/b%20c/":                           {"bucket", "a/b c/", "", false, false},
		"gs://bucket/a?endpoint=http://127.0.0.1:4443":   {"bucket", "a/", "http://127.0.0.1:4443", true, false},
		"gs://bucket?endpoint=https://h/":                {"bucket", "elector/", "https://h", true, false},
		"gs://bucket?endpoint=http://[::1]/storage/v1/":  {"bucket", "elector/", "http://[::1]", true, false},
		"gs://bucket?endpoint=http%3A%2F%2Fh/storage/v1": {"bucket", "elector/", "http://h", true, false},
	} {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parse(u); err != nil || got != want {
			t.Errorf("%s: got %+v and error %v, want %+v", s, got, err, want)
		}
	}
	bucket := &url.URL{Scheme: "gs", Host: "bucket"}
	for host, want := range map[string]string{"h:1": "http://h:1", "https://h:1": "https://h:1", "http://h:1/storage/v1/": "http://h:1"} {
		t.Setenv("STORAGE_EMULATOR_HOST", host)
		if got, err := parse(bucket); err != nil || got.endpoint != want || !got.anonymous {
			t.Errorf("STORAGE_EMULATOR_HOST=%s: got %+v and error %v", host, got, err)
		}
	}
	t.Setenv("STORAGE_EMULATOR_HOST", "http://user:hunter2@h:1")
	if _, err := parse(bucket); !errors.Is(err, backends.ErrURL) || !strings.Contains(err.Error(), "STORAGE_EMULATOR_HOST") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a login in STORAGE_EMULATOR_HOST: %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, s := range []string{
		"gs:bucket",
		"gs://",
		"gs:///a",
		"gs://B",
		"gs://Bucket",
		"gs://-bucket",
		"gs://ab",
		"gs://bucket:443/a",
		"gs://hunter2@bucket",
		"gs://user:hunter2@bucket/a",
		"gs://user:1/hunter2@bucket",
		"gs://user:1?hunter2@bucket",
		"gs://user:1#hunter2@bucket",
		"gs://bucket#a",
		"gs://bucket/a//b",
		"gs://bucket/a/../b",
		"gs://bucket/.",
		"gs://bucket/a%00",
		"gs://bucket/a%0Ab",
		"gs://bucket/%FF",
		"gs://bucket/.well-known/acme-challenge",
		"gs://bucket/" + strings.Repeat("a", 900),
		"gs://bucket?project=p",
		"gs://bucket?readonly=perhaps",
		"gs://bucket?endpoint=a&endpoint=b",
		"gs://bucket?endpoint=127.0.0.1:4443",
		"gs://bucket?endpoint=ftp://h",
		"gs://bucket?endpoint=http://",
		"gs://bucket?endpoint=http://h/other",
		"gs://bucket?endpoint=http://h%3Fkey=hunter2",
		"gs://bucket?endpoint=http://user:hunter2@h",
		"gs://bucket?endpoint=http://user:hunter2%40h",
	} {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		_, err = parse(u)
		if !errors.Is(err, backends.ErrURL) {
			t.Errorf("%s: got %v, want ErrURL", s, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows a secret: %v", s, err)
		}
	}
}

// An endpoint in the URL is the one that is asked, whatever the environment
// says to the client library, and an emulator in the environment shows.
func TestEmulator(t *testing.T) {
	s := newService(t)
	nowhere := httptest.NewServer(nil)
	nowhere.Close()
	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(nowhere.URL, "http://"))
	b, err := s.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := b.Swap(t.Context(), "a", backends.Record{}, record); err != nil {
		t.Error(err)
	}
	if _, err := b.Load(t.Context(), "a"); err != nil {
		t.Error(err)
	}

	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(s.URL, "http://"))
	c, err := open(t.Context(), &url.URL{Scheme: "gs", Host: "bucket"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if r, err := c.Load(t.Context(), "a"); err != nil || !r.Exists() {
		t.Errorf("got %+v and error %v", r, err)
	}
	if got, want := c.Describe().Store, "gs://bucket/elector/?endpoint="+s.URL; got != want {
		t.Errorf("the store is %s, want %s", got, want)
	}
}

// keyFile writes a service account's key whose tokens come from address, and
// makes it the machine's credentials. It returns what must not be shown.
func keyFile(t *testing.T, address string) (secret string) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	content, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "a@b.c", "private_key_id": "id", "private_key": text, "token_uri": address,
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", path)
	return strings.Split(text, "\n")[1]
}

func TestCredentials(t *testing.T) {
	const token = "hunter2-token"
	hang, hangs := make(chan struct{}), make(chan struct{}, 100)
	var answer http.HandlerFunc
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r) }))
	t.Cleanup(tokens.Close)
	t.Cleanup(func() { close(hang) })
	secret := keyFile(t, tokens.URL)

	s := newService(t)
	served := s.attributes
	s.Instead("bucket", func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer "+token {
			t.Errorf("the request is authorized by %q", got)
		}
		served(w, r)
	})
	c := config{bucket: "bucket", prefix: "elector/", endpoint: s.URL}
	try := func(ctx context.Context) error {
		var b backends.Backend
		opened := make(chan error, 1)
		go func() {
			var err error
			b, err = c.open(ctx)
			opened <- err
		}()
		var err error
		select {
		case err = <-opened:
		case <-time.After(time.Minute):
			t.Fatal("opening does not return")
		}
		if err != nil {
			for _, hidden := range []string{token, secret} {
				if strings.Contains(fmt.Sprintf("%v %+v", err, err), hidden) {
					t.Errorf("the error shows a secret: %v", err)
				}
			}
			return err
		}
		return b.Close()
	}

	answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token": %q, "token_type": "Bearer", "expires_in": 3600}`, token)
	}
	if err := try(t.Context()); err != nil {
		t.Errorf("with a key: %v", err)
	}
	s.Instead("bucket", refusal(401, "authError", "Invalid Credentials"))
	if err := try(t.Context()); !errors.Is(err, backends.ErrDenied) {
		t.Errorf("a token that is not accepted: got %v, want ErrDenied", err)
	}
	answer = refusal(400, "invalid_grant", "Invalid grant: account not found")
	if err := try(t.Context()); !errors.Is(err, backends.ErrDenied) {
		t.Errorf("a key that was deleted: got %v, want ErrDenied", err)
	}
	answer = refusal(503, "unavailable", "try again")
	if err := try(t.Context()); !errors.Is(err, backends.ErrUnavailable) {
		t.Errorf("no tokens for now: got %v, want ErrUnavailable", err)
	}
	// The libraries do not look at the context of the call while they wait for a
	// token.
	answer = func(_ http.ResponseWriter, r *http.Request) {
		hangs <- struct{}{}
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-hangs
		cancel()
	}()
	if err := try(ctx); !errors.Is(err, context.Canceled) || backends.Permanent(err) {
		t.Errorf("a token that never comes: got %v, want Canceled", err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "missing.json"))
	if err := try(t.Context()); !errors.Is(err, backends.ErrDenied) || !strings.Contains(err.Error(), "gcloud auth application-default login") {
		t.Errorf("no credentials: got %v, want ErrDenied", err)
	}
}

func TestNewRefuses(t *testing.T) {
	s := newService(t)
	client := s.client(t)
	check.NotMade[*Backend](t, "client")(New(t.Context(), nil, nil))
	check.NotMade[*Backend](t, "Bucket")(New(t.Context(), client, nil))
	check.NotMade[*Backend](t, "Bucket")(New(t.Context(), client, &Options{Bucket: "A"}))
	check.NotMade[*Backend](t, "Prefix")(New(t.Context(), client, &Options{Bucket: "bucket", Prefix: "a//b/"}))
	check.OnlyReads(t, made(New(t.Context(), client, &Options{Bucket: "bucket", ReadOnly: true})))
	if n := s.Requests(); len(n) > 0 {
		t.Errorf("it was asked: %v", n)
	}
}
