package gcs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"cloud.google.com/go/storage"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/option"
	raw "google.golang.org/api/storage/v1"
	htransport "google.golang.org/api/transport/http"

	"github.com/elector-go/elector/backends"
)

func init() { backends.Register("gs", open) }

// patience bounds opening when the caller set no deadline.
const patience = 10 * time.Second

// maxConnections bounds how many requests of one handle are under way.
const maxConnections = 32

// A config is the meaning of a URL.
type config struct {
	bucket, prefix string
	endpoint       string // scheme and host; empty for the service itself
	anonymous      bool
	readOnly       bool
}

func open(ctx context.Context, u *url.URL) (backends.Backend, error) {
	c, err := parse(u)
	if err != nil {
		return nil, err
	}
	return c.open(ctx)
}

func (c config) open(ctx context.Context) (backends.Backend, error) {
	store := "gs://" + c.bucket + "/" + c.prefix
	if c.endpoint != "" {
		store += "?endpoint=" + c.endpoint
	}
	b := newBackend(store, c.bucket, c.prefix)
	b.base.SetReadOnly(c.readOnly)
	transport := &http.Transport{}
	life, end := context.WithCancel(context.Background())
	configure(transport, life)
	b.closeIdle = transport.CloseIdleConnections
	b.release = func() error { end(); b.closeIdle(); return nil }
	err := b.base.Open(ctx, patience, func(ctx context.Context) error {
		_, err := call(ctx, b, func() (any, error) {
			options, err := c.options(life, transport)
			if err != nil {
				return nil, err
			}
			client, err := storage.NewClient(life, options...)
			if err != nil {
				return nil, err
			}
			if b.service, err = raw.NewService(life, options...); err != nil {
				return nil, err
			}
			b.use(client)
			return nil, b.check(ctx)
		})
		return err
	})
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// configure makes a transport whose requests have a connection each, which
// HTTP/2 would not give them: one that hangs then takes no others with it.
func configure(t *http.Transport, life context.Context) {
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}
	t.Proxy = http.ProxyFromEnvironment
	t.DialContext = func(_ context.Context, network, address string) (net.Conn, error) {
		return dialer.DialContext(life, network, address) // net/http does not end it with its request either
	}
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.TLSHandshakeTimeout = 5 * time.Second
	t.IdleConnTimeout = 90 * time.Second
	t.MaxConnsPerHost, t.MaxIdleConnsPerHost = maxConnections, maxConnections
}

// options are those of the library's clients. Access tokens are fetched for as long as
// life lasts.
func (c config) options(life context.Context, transport http.RoundTripper) ([]option.ClientOption, error) {
	// The library looks for credentials unless it is given some, if only empty
	// ones.
	credentials, through := &google.Credentials{}, transport
	if !c.anonymous {
		var err error
		scope := storage.ScopeFullControl
		if c.readOnly {
			scope = storage.ScopeReadOnly
		}
		if credentials, err = google.FindDefaultCredentials(life, scope); err != nil {
			return nil, fmt.Errorf("%w: %w", errNoCredentials, err)
		}
		if through, err = htransport.NewTransport(life, transport, option.WithCredentials(credentials)); err != nil {
			return nil, fmt.Errorf("%w: %w", errNoCredentials, err)
		}
	}
	options := []option.ClientOption{
		storage.WithJSONReads(),
		option.WithCredentials(credentials),
		option.WithHTTPClient(&http.Client{Transport: once{through}}),
	}
	if c.endpoint != "" {
		options = append(options, option.WithEndpoint(c.endpoint+"/storage/v1/"))
	}
	return options, nil
}

// once refuses to continue an answer that broke off: the library asks for the
// rest, whatever its retry policy, and would do so again and again.
type once struct{ http.RoundTripper }

var errBrokeOff = errors.New("the connection was lost")

func (o once) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet && r.URL.Query().Has("generation") { // this package asks for no generation
		return nil, errBrokeOff
	}
	return o.RoundTripper.RoundTrip(r)
}

// check makes sure that the bucket exists and can be used. It does not try to
// overwrite an object: in a bucket with a retention policy the trial could not
// be removed.
func (b *Backend) check(ctx context.Context) error {
	if b.base.ReadOnly() {
		// No election has this object, and a user who may read the prefix may read it.
		_, err := b.load(ctx, "")
		return err
	}
	a, err := b.attributes(ctx)
	switch {
	case err != nil:
		return err
	case a != nil && a.RetentionPolicy != nil:
		return fmt.Errorf("%w of %v", errRetention, a.RetentionPolicy.RetentionPeriod)
	case a != nil && a.DefaultEventBasedHold:
		return errHold
	}
	_, _, err = b.read(ctx, b.prefix)
	return err
}

var (
	bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$`)
	plainPath  = regexp.MustCompile(`^[^\x00-\x1f\x7f]*$`)
)

const bucketRule = "lower-case letters, digits, '-', '_' and '.' only"

// wrongPrefix returns why objects' names cannot begin with the prefix, "" if they can.
func wrongPrefix(prefix string) string {
	for _, part := range strings.Split(strings.TrimSuffix(prefix, "/"), "/") {
		if part == "" || part == "." || part == ".." || !plainPath.MatchString(part) {
			return "has an empty part, '.', '..' or control characters"
		}
	}
	if len(prefix)+backends.MaxName > 1024 || !backends.ValidText(prefix) || strings.HasPrefix(prefix, ".well-known/") {
		return "cannot begin the names of objects: it is too long, not UTF-8 or begins with .well-known"
	}
	return ""
}

// parse reads a URL.
func parse(u *url.URL) (config, error) {
	if u.User != nil || u.Opaque != "" || u.Fragment != "" || strings.ContainsAny(u.Path+u.RawQuery, "@") {
		// Not shown: a part that was read as something else may be a password.
		return config{}, fmt.Errorf("%w: it is not of the form gs://bucket/prefix; it takes no credentials: they come from GOOGLE_APPLICATION_CREDENTIALS, gcloud auth application-default login or the machine's service account", backends.ErrURL)
	}
	refuse := func(format string, args ...any) (config, error) {
		return config{}, fmt.Errorf("%w %s: %s", backends.ErrURL, backends.Redact(u), fmt.Sprintf(format, args...))
	}
	p := backends.NewParameters(u)
	endpoint, readOnly := p.String("endpoint", ""), p.Bool("readonly", false)
	if err := p.Done(); err != nil {
		return config{}, err
	}
	if !bucketName.MatchString(u.Host) {
		return refuse("%q is not a valid name of a bucket, which has %s, and no port; write gs://bucket/prefix", u.Host, bucketRule)
	}
	c := config{bucket: u.Host, prefix: DefaultPrefix, readOnly: readOnly}
	if path := strings.Trim(u.Path, "/"); path != "" {
		c.prefix = path + "/"
	}
	if wrong := wrongPrefix(c.prefix); wrong != "" {
		return refuse("its path %s", wrong)
	}

	what := "parameter endpoint"
	if endpoint == "" {
		// The library would use it too, without showing it.
		endpoint, what = os.Getenv("STORAGE_EMULATOR_HOST"), "STORAGE_EMULATOR_HOST in the environment"
		if endpoint != "" && !strings.Contains(endpoint, "://") {
			endpoint = "http://" + endpoint
		}
	}
	if endpoint != "" {
		e, err := url.Parse(endpoint)
		if err != nil || e.Scheme != "http" && e.Scheme != "https" || e.Host == "" || e.User != nil || e.RawQuery != "" || e.Fragment != "" || strings.Trim(e.Path, "/") != "" && strings.Trim(e.Path, "/") != "storage/v1" {
			return refuse("%s is not of the form http://host:port", what)
		}
		c.endpoint, c.anonymous = e.Scheme+"://"+e.Host, true
	}
	return c, nil
}
