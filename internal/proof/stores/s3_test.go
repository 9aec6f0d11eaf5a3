//go:build s3

package stores

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/elector-go/elector/backends"
	electors3 "github.com/elector-go/elector/backends/s3"
	"github.com/elector-go/elector/conformance"
)

// The suite runs on a bucket of the real service with
//
//	ELECTOR_TEST_S3='s3://BUCKET/PREFIX?region=eu-central-1' go test -tags s3 -count=1 -timeout=3h -run 'TestS3$' .
//
// and the credentials that the AWS SDK finds. They need what the adapter's
// documentation lists under Permissions, and s3:DeleteObject for the cases in which a
// record is deleted. It leaves its objects there: their names are of this run alone,
// and the bucket is best made for it, without versioning. No bucket is made or
// changed.
func TestS3(t *testing.T) {
	s := s3Store(t, func(ctx context.Context) (*Store, error) { return Start(ctx, S3) })
	raw := reachS3(t, s)
	h := conformance.Harness{
		Open:         opener(s.URL),
		OpenReadOnly: readOnlyOpener(s.URL),
		OpenFaulty:   faulty(s, s.URL),
		Slow:         true,
		Raw:          &conformance.Raw{Get: raw.get, Put: raw.put, Delete: raw.remove},
		Setups:       s3Setups(s),
	}
	if s.server != nil {
		open := h.Open
		h.Open = func(t testing.TB) backends.Backend { return hasten(t, open(t)) }
	}
	conform(t, S3, s.How, h)
}

// s3Store starts a store, and makes its credentials ours.
func s3Store(t *testing.T, start func(context.Context) (*Store, error)) *Store {
	t.Helper()
	s, err := start(t.Context())
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	if s.server == nil {
		return s
	}
	for key, value := range map[string]string{"AWS_ACCESS_KEY_ID": s.Admin.User, "AWS_SECRET_ACCESS_KEY": s.Admin.Password, "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull} {
		t.Setenv(key, value)
	}
	return s
}

// rawS3 reaches a bucket behind the adapter's back.
type rawS3 struct {
	client         *s3.Client
	bucket, prefix string
}

func reachS3(t *testing.T, s *Store) rawS3 {
	t.Helper()
	u, err := url.Parse(s.URL)
	must(t, err)
	r := rawS3{bucket: u.Host, prefix: electors3.DefaultPrefix}
	if path := strings.Trim(u.Path, "/"); path != "" {
		r.prefix = path + "/"
	}
	if endpoint := u.Query().Get("endpoint"); endpoint != "" && s.server != nil {
		client, done := S3Client(endpoint, s.Admin)
		t.Cleanup(done)
		r.client = client
		return r
	}
	c, err := config.LoadDefaultConfig(t.Context(),
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.DisableKeepAlives = true })))
	must(t, err)
	r.client = s3.NewFromConfig(c, func(o *s3.Options) {
		if region := u.Query().Get("region"); region != "" {
			o.Region = region
		}
		if endpoint := u.Query().Get("endpoint"); endpoint != "" {
			o.BaseEndpoint, o.UsePathStyle = &endpoint, true
		}
	})
	return r
}

func (r rawS3) get(t testing.TB, name string) []byte {
	t.Helper()
	// Not of the test's context, which ends before clean-ups run.
	o, err := r.client.GetObject(context.Background(), &s3.GetObjectInput{Bucket: &r.bucket, Key: aws.String(r.prefix + name)})
	if errors.As(err, new(*types.NoSuchKey)) {
		return nil
	}
	must(t, err)
	defer o.Body.Close()
	content, err := io.ReadAll(o.Body)
	must(t, err)
	return content
}

func (r rawS3) put(t testing.TB, name string, content []byte) {
	t.Helper()
	_, err := r.client.PutObject(context.Background(), &s3.PutObjectInput{Bucket: &r.bucket, Key: aws.String(r.prefix + name), Body: bytes.NewReader(content)})
	must(t, err)
}

func (r rawS3) remove(t testing.TB, name string) {
	t.Helper()
	_, err := r.client.DeleteObject(context.Background(), &s3.DeleteObjectInput{Bucket: &r.bucket, Key: aws.String(r.prefix + name)})
	must(t, err)
}

// s3Setups are URLs, buckets and servers that do not serve.
func s3Setups(s *Store) map[string]func(testing.TB) error {
	in := func(bucket string) string {
		_, query, _ := strings.Cut(s.URL, "?")
		return "s3://" + bucket + "?" + query
	}
	return map[string]func(testing.TB) error{
		"no server": func(t testing.TB) error { return openError(t, "s3://bucket?endpoint=http://"+vacantAddress(t)) },
		"no such bucket": func(t testing.TB) error {
			err := openError(t, in(fmt.Sprintf("elector-suite-%x-none", time.Now().UnixNano())))
			if err != nil && !errors.Is(err, backends.ErrMisconfigured) {
				t.Errorf("got %v, want ErrMisconfigured", err)
			}
			return err
		},
		"a bucket name that cannot be": func(t testing.TB) error { return openError(t, in("Bucket")) },
		"an unknown parameter":         func(t testing.TB) error { return openError(t, "s3://bucket?project=mine") },
		"a login in the URL":           func(t testing.TB) error { return openError(t, "s3://user:password@bucket") },
		// gofakes3 checks nothing.
		"credentials that may not read": func(t testing.TB) error {
			played := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusForbidden)
				io.WriteString(w, `<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>`)
			}))
			defer played.Close()
			return openError(t, "s3://bucket?endpoint="+played.URL)
		},
	}
}

// A server that ignores the conditions of writes is refused, before anything is
// written to an election.
func TestS3rverIsRefused(t *testing.T) {
	s := s3Store(t, StartS3rver)
	raw := reachS3(t, s)
	b, err := backends.Open(t.Context(), s.URL)
	if err == nil {
		b.Close()
	}
	if !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), "two candidates could win") {
		t.Errorf("got %v, want ErrMisconfigured", err)
	}
	// And it does ignore them.
	for range 2 {
		_, err := raw.client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &raw.bucket, Key: aws.String("twice"), Body: strings.NewReader("x"), IfNoneMatch: aws.String("*")})
		must(t, err)
	}
}

// versitygw keeps conditions apart, but a read that a write overtakes can have the tag
// of one state and the content of another. Load refuses that as an error to retry, so
// no write is lost: a counter that many raise ends at the number of their wins.
func TestS3VersityGW(t *testing.T) {
	s := s3Store(t, StartVersityGW)
	const writers, wins, counters = 16, 20, 4
	var acknowledged [counters]atomic.Uint64 // the highest value
	var torn, conflicts atomic.Int32
	raise := func(b backends.Backend, counter, writer int) error {
		name := fmt.Sprint("counter", counter)
		for n := 0; n < wins; {
			atLeast := acknowledged[counter].Load()
			old, err := b.Load(t.Context(), name)
			switch {
			case errors.Is(err, backends.ErrUnavailable) && strings.Contains(err.Error(), "content of another"):
				torn.Add(1)
				continue
			case err != nil:
				return err
			case old.Token < atLeast:
				return fmt.Errorf("%s was read at %d, after a write of %d was acknowledged", name, old.Token, atLeast)
			}
			next := backends.Record{Holder: fmt.Sprint(writer), Token: old.Token + 1, TTL: 15 * time.Second, RenewEvery: time.Second,
				Attempt: backends.Attempt{Nonce: fmt.Sprint("w", writer), Sequence: uint64(n + 1)}}
			_, err = b.Swap(t.Context(), name, old, next)
			switch {
			case errors.Is(err, backends.ErrConflict):
				conflicts.Add(1)
				continue
			case err != nil:
				return err
			}
			n++
			for high := acknowledged[counter].Load(); high < next.Token && !acknowledged[counter].CompareAndSwap(high, next.Token); {
				high = acknowledged[counter].Load()
			}
		}
		return nil
	}
	open := opener(s.URL)
	ended := make(chan error, writers)
	for writer := range writers {
		b := open(t)
		t.Cleanup(func() { must(t, b.Close()) })
		go func() { ended <- raise(b, writer%counters, writer) }()
	}
	for range writers {
		must(t, <-ended)
	}
	b := open(t)
	defer b.Close()
	for counter := range counters {
		r, err := b.Load(t.Context(), fmt.Sprint("counter", counter))
		must(t, err)
		if want := uint64(writers / counters * wins); r.Token != want {
			t.Errorf("counter %d is at %d after %d wins", counter, r.Token, want)
		}
	}
	t.Logf("%d wins, %d conflicts, %d torn reads", writers*wins, conflicts.Load(), torn.Load())
	if conflicts.Load() == 0 {
		t.Error("no two writers met")
	}
}

// On a bucket that is set up as the package advises, every check is ok.
func TestS3Doctor(t *testing.T) {
	s := s3Store(t, startS3)
	d := diagnose(t, buildTool(t), s.URL, "--ttl=10m")
	bad := func(l diagnosisLine) bool { return l.Level != "ok" || l.Seen == "" || l.Fix != "" }
	if d.code != 0 || len(d.lines) < 6 || slices.ContainsFunc(d.lines, bad) {
		t.Fatalf("exit code %d: %s", d.code, d.output)
	}
	t.Log(d.output)
}
