package dynamodb

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
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"

	"github.com/elector-go/elector/backends"
)

func init() { backends.Register("dynamodb", open) }

// These bound opening when the caller sets no deadline. Amazon takes half a
// minute to create a table.
const (
	patience       = 10 * time.Second
	createPatience = 2 * time.Minute
)

// mostConnections bounds the connections of a handle with many elections.
const mostConnections = 64

// Options are the options of New. The zero value means the defaults.
type Options struct {
	// Create creates a missing table, billed on demand.
	Create bool

	// SingleRegion promises that every process uses the same region, which an
	// eventually consistent global table needs.
	SingleRegion bool
}

// New returns a backend on your client, which Close leaves as it is. options may
// be nil.
//
// New blocks until it has checked the table, at most 10 s if ctx has no
// deadline, or 2 min with Create. It returns the errors of a [backends.Opener].
// New's own requests follow the client's retry policy; requests for records are
// sent once, whatever the policy is.
//
// The client's HTTP client should not use HTTP/2, where one dead connection
// blocks all requests. It must not repeat requests by itself.
func New(ctx context.Context, client *dynamodb.Client, table string, options *Options) (*Backend, error) {
	if options == nil {
		options = &Options{}
	}
	return connect(ctx, newBackend(client, table, func() {}), *options)
}

func open(ctx context.Context, u *url.URL) (backends.Backend, error) {
	a, err := parse(u)
	if err != nil {
		return nil, err
	}
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
		return nil, fmt.Errorf("opening dynamodb://%s: %w: the AWS SDK's settings cannot be used; look into the AWS_ variables and the files in ~/.aws: %w", a.table, backends.ErrMisconfigured, err)
	}
	if c.Region == "" {
		return nil, fmt.Errorf("opening dynamodb://%s: %w: no region is named; add region=eu-central-1, say, to the URL or set AWS_REGION", a.table, backends.ErrURL)
	}
	t := transport()
	if loaded, ok := c.HTTPClient.(*awshttp.BuildableClient); ok { // with AWS_CA_BUNDLE, if there is one
		t.TLSClientConfig.RootCAs = loaded.GetTransport().TLSClientConfig.RootCAs
	}
	c.HTTPClient = &http.Client{Transport: sender{t}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	client := dynamodb.NewFromConfig(c, func(o *dynamodb.Options) {
		if a.endpoint != "" {
			o.BaseEndpoint = &a.endpoint
		}
	})
	b, err := connect(ctx, newBackend(client, a.table, t.CloseIdleConnections), a.Options)
	if err != nil {
		return nil, err // not a nil *Backend in a Backend
	}
	return b, nil
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

func connect(ctx context.Context, b *Backend, o Options) (*Backend, error) {
	limit := patience
	if o.Create {
		limit = createPatience
	}
	err := b.base.Open(ctx, limit, func(ctx context.Context) error {
		if err := b.signIn(ctx); err != nil {
			return err
		}
		return b.prepare(ctx, o)
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
	table, region, endpoint string
	Options
}

var tableName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)

// parse reads a URL. Its errors show nothing of a URL that may hold a secret.
func parse(u *url.URL) (a address, err error) {
	refuse := func(format string, args ...any) (address, error) {
		return address{}, fmt.Errorf("%w: %s", backends.ErrURL, fmt.Sprintf(format, args...))
	}
	if u.User != nil || strings.Contains(u.Path+u.RawQuery+u.Opaque+u.Fragment, "@") {
		return refuse("it has a user or password (not shown); DynamoDB's credentials are found by the AWS SDK: in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), in a profile (AWS_PROFILE), or by the role of the machine or container")
	}
	if !tableName.MatchString(u.Host) || strings.Trim(u.Path, "/") != "" || u.Opaque != "" || u.Fragment != "" {
		return refuse("it is not of the form dynamodb://TABLE?region=eu-central-1, with a table name of 3 to 255 ASCII letters, digits, '_', '.' and '-'; the address of another server goes into endpoint=http://host:port")
	}
	p := backends.NewParameters(u)
	a = address{table: u.Host, region: p.String("region", ""), endpoint: p.String("endpoint", "")}
	a.Create, a.SingleRegion = p.Bool("create", false), p.Bool("single_region", false)
	if err := p.Done(); err != nil {
		return address{}, err
	}
	if a.endpoint != "" {
		e, err := url.Parse(a.endpoint)
		if err != nil || e.Scheme != "http" && e.Scheme != "https" || e.Host == "" || e.User != nil || e.RawQuery != "" || e.Fragment != "" {
			return refuse("endpoint is not of the form http://host:port or https://host, without a user, query or fragment")
		}
	}
	return a, nil
}
