package s3

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"github.com/elector-go/elector/backends"
)

func init() { backends.Register("s3", open) }

// patience bounds opening when the caller set no deadline.
const patience = 10 * time.Second

// mostConnections bounds the connections of a handle with many elections.
const mostConnections = 64

// New returns a backend on your client, which Close leaves as it is. Keys of objects
// are the prefix, as it is, followed by the election's name; an empty prefix means
// [DefaultPrefix].
//
// New blocks until it has probed the bucket, at most 10 s if ctx has no deadline. It
// returns the errors of a [backends.Opener].
//
// Requests are sent once, whatever the client's retry policy is. The client's HTTP
// client should not use HTTP/2, where one dead connection blocks all requests, and
// must not repeat requests by itself.
func New(ctx context.Context, client *s3.Client, bucket, prefix string) (*Backend, error) {
	if prefix == "" {
		prefix = DefaultPrefix
	}
	return connect(ctx, newBackend(client, bucket, prefix, func() {}))
}

func open(ctx context.Context, u *url.URL) (backends.Backend, error) {
	a, err := parse(u)
	if err != nil {
		return nil, err
	}
	client, idle, err := a.client(ctx)
	if err != nil {
		return nil, fmt.Errorf("opening s3://%s/%s: %w", a.bucket, a.prefix, err)
	}
	b, err := connect(ctx, newBackend(client, a.bucket, a.prefix, idle))
	if err != nil {
		return nil, err // not a nil *Backend in a Backend
	}
	return b, nil
}

// client returns a client, and what closes its idle connections.
func (a address) client(ctx context.Context) (*s3.Client, func(), error) {
	// The client that fetches credentials is never closed, so it keeps no
	// connection.
	fetching := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.DisableKeepAlives = true })
	settings := []func(*config.LoadOptions) error{
		config.WithLogger(logging.Nop{}), // by default it writes to standard error
		config.WithHTTPClient(fetching),
		config.WithEndpointCredentialOptions(func(o *endpointcreds.Options) { o.HTTPClient = fetching }), // otherwise it uses its own
	}
	if a.region != "" {
		settings = append(settings, config.WithRegion(a.region))
	}
	c, err := config.LoadDefaultConfig(ctx, settings...)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: the AWS SDK's settings cannot be used; look into the AWS_ variables and the files in ~/.aws: %w", backends.ErrMisconfigured, err)
	}
	if c.Region == "" && a.endpoint != "" {
		c.Region = "us-east-1" // what servers of others sign with
	}
	if c.Region == "" {
		return nil, nil, fmt.Errorf("%w: no region is named; add region=eu-central-1, say, to the URL or set AWS_REGION", backends.ErrURL)
	}
	t := transport()
	if loaded, ok := c.HTTPClient.(*awshttp.BuildableClient); ok { // with AWS_CA_BUNDLE, if there is one
		t.TLSClientConfig.RootCAs = loaded.GetTransport().TLSClientConfig.RootCAs
	}
	c.HTTPClient = &http.Client{Transport: sender{t}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return s3.NewFromConfig(c, func(o *s3.Options) {
		o.UsePathStyle = a.pathStyle
		if a.endpoint != "" {
			o.BaseEndpoint = &a.endpoint
		}
	}), t.CloseIdleConnections, nil
}

// transport returns the SDK's with bounds, and without HTTP/2, where one dead
// connection blocks every request.
func transport() *http.Transport {
	t := awshttp.NewBuildableClient().GetTransport()
	t.ForceAttemptHTTP2 = false
	// A dial goes on after its request was given up, and counts as a connection.
	t.DialContext = (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	t.MaxConnsPerHost, t.MaxIdleConnsPerHost = mostConnections, mostConnections
	return t
}

// A sender keeps the SDK from closing a request's body when the answer begins.
// If the transport has not read the whole body by then, it sees a failure and
// closes the connection, with the rest of a long answer.
type sender struct{ transport *http.Transport }

func (s sender) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		content, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(content))
	}
	return s.transport.RoundTrip(r)
}

// connect makes sure that the bucket can be used.
func connect(ctx context.Context, b *Backend) (*Backend, error) {
	err := b.base.Open(ctx, patience, func(ctx context.Context) error {
		if err := b.signIn(ctx); err != nil {
			return err
		}
		// No election has this object, and S3 must report that it does not exist.
		if _, _, err := b.get(ctx, b.prefix+".absent"); err != nil {
			return err
		}
		err := b.probe(ctx)
		if c := code(err); c == "AccessDenied" || c == "Forbidden" {
			return nil // observers may not write; the first Swap probes again
		}
		return err
	})
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// signIn makes sure that there are credentials. Later on, credentials that
// cannot be fetched may come back.
func (b *Backend) signIn(ctx context.Context) error {
	const doing = "fetching AWS credentials"
	provider := b.client.Options().Credentials
	if provider == nil {
		return fmt.Errorf("%s: %w: the client has none", doing, backends.ErrDenied)
	}
	_, err := provider.Retrieve(ctx)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return b.base.Explain(ctx, doing, b.failed(ctx, err))
	}
	return fmt.Errorf("%s: %w: none were found; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine or container a role: %w", doing, backends.ErrDenied, firstLine{err})
}

// An address is the content of a URL.
type address struct {
	bucket, prefix, region, endpoint string
	pathStyle                        bool
}

var (
	bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$`)
	plainPath  = regexp.MustCompile(`^[^\x00-\x1f\x7f]*$`)
)

// parse reads a URL. Its errors show nothing of a URL that may hold a secret.
func parse(u *url.URL) (a address, err error) {
	refuse := func(format string, args ...any) (address, error) {
		return address{}, fmt.Errorf("%w: %s", backends.ErrURL, fmt.Sprintf(format, args...))
	}
	if u.User != nil || u.Opaque != "" || u.Fragment != "" || strings.ContainsAny(u.Path+u.RawQuery, "@") {
		return refuse("it has a user or password (not shown); write s3://bucket/prefix: the AWS SDK finds the credentials in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), in a profile (AWS_PROFILE), or by the role of the machine or container")
	}
	p := backends.NewParameters(u)
	a = address{bucket: u.Host, prefix: DefaultPrefix, region: p.String("region", ""), endpoint: p.String("endpoint", "")}
	a.pathStyle = p.Bool("path_style", a.endpoint != "")
	if err := p.Done(); err != nil {
		return address{}, err
	}
	switch {
	case !bucketName.MatchString(a.bucket):
		return refuse("%q is not a valid name of a bucket, which has 3 to 63 lower-case letters, digits, '-' and '.', and no port; write s3://bucket/prefix, and the address of another server into endpoint=http://host:port", a.bucket)
	case strings.HasSuffix(a.bucket, "--x-s3"):
		return refuse("%q is a directory bucket, which keeps its objects in one zone; use a general purpose bucket", a.bucket)
	}
	if path := strings.Trim(u.Path, "/"); path != "" {
		a.prefix = path + "/"
	}
	for _, part := range strings.Split(strings.TrimSuffix(a.prefix, "/"), "/") {
		if part == "" || part == "." || part == ".." || !plainPath.MatchString(part) {
			return refuse("its path has an empty part, '.', '..' or control characters")
		}
	}
	if len(a.prefix)+backends.MaxName > 1024 || !backends.ValidText(a.prefix) {
		return refuse("its path cannot begin the keys of objects: it is too long or not UTF-8")
	}
	if a.endpoint != "" {
		e, err := url.Parse(a.endpoint)
		if err != nil || e.Scheme != "http" && e.Scheme != "https" || e.Host == "" || e.User != nil || e.RawQuery != "" || e.Fragment != "" {
			return refuse("endpoint is not of the form http://host:port or https://host, without a user, query or fragment")
		}
	}
	return a, nil
}
