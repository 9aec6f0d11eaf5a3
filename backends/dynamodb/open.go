package dynamodb

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/awsclient"
)

func init() { backends.Register("dynamodb", open) }

// These bound opening when the caller sets no deadline. Amazon takes half a
// minute to create a table.
const (
	patience       = 10 * time.Second
	createPatience = 2 * time.Minute
)

// Options are the options of New. Table is required; of the other fields the zero value
// means the default.
type Options struct {
	// Table is the name of the table. It has no default.
	Table string

	// Create makes New create a missing table, billed on demand. Without it a missing
	// table is ErrMisconfigured.
	Create bool

	// SingleRegion promises that every process uses the same region, which an
	// eventually consistent global table needs.
	SingleRegion bool

	// ReadOnly makes a backend that needs only the right to read, and creates and
	// writes nothing, whatever Create is. See [backends.OpenReadOnly].
	ReadOnly bool
}

// New returns a backend in a table, on your client, which Close leaves as it is. It
// returns ErrOptions of package backends for a client or options that it cannot use.
//
// New blocks until it has checked the table, or with ReadOnly that it can be read, at
// most 10 s if ctx has no deadline, or 2 min with Create. It returns the errors of a
// [backends.Opener]. New's own requests follow the client's retry policy; requests for
// records are sent once, whatever the policy is.
//
// The client's HTTP client should not use HTTP/2, where one dead connection
// blocks all requests. It must not repeat requests by itself.
func New(ctx context.Context, client *dynamodb.Client, options *Options) (*Backend, error) {
	errOptions := fmt.Errorf("%w of dynamodb.New", backends.ErrOptions)
	if client == nil {
		return nil, fmt.Errorf("%w: the client is nil; make one with dynamodb.NewFromConfig", errOptions)
	}
	if options == nil {
		options = &Options{}
	}
	if !tableName.MatchString(options.Table) {
		return nil, fmt.Errorf("%w: Table is %q; name the table, with 3 to 255 ASCII letters, digits, '_', '.' and '-'", errOptions, options.Table)
	}
	return connect(ctx, newBackend(client, options.Table, func() {}), *options)
}

func open(ctx context.Context, u *url.URL) (backends.Backend, error) {
	a, err := parse(u)
	if err != nil {
		return nil, err
	}
	c, idle, err := awsclient.Load(ctx, a.region, "")
	if err != nil {
		return nil, fmt.Errorf("opening dynamodb://%s: %w", a.Table, err)
	}
	client := dynamodb.NewFromConfig(c, func(o *dynamodb.Options) {
		if a.endpoint != "" {
			o.BaseEndpoint = &a.endpoint
		}
	})
	b, err := connect(ctx, newBackend(client, a.Table, idle), a.Options)
	if err != nil {
		return nil, err // not a nil *Backend in a Backend
	}
	return b, nil
}

func connect(ctx context.Context, b *Backend, o Options) (*Backend, error) {
	b.base.SetReadOnly(o.ReadOnly)
	limit := patience
	if o.Create && !o.ReadOnly {
		limit = createPatience
	}
	err := b.base.Open(ctx, limit, func(ctx context.Context) error {
		if err := awsclient.SignIn(ctx, b.client.Options().Credentials, b.base); err != nil {
			return err
		}
		if o.ReadOnly {
			return b.checkReading(ctx)
		}
		return b.prepare(ctx, o)
	})
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// An address is the content of a URL.
type address struct {
	region, endpoint string
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
	a = address{region: p.String("region", ""), endpoint: p.String("endpoint", "")}
	a.Table = u.Host
	a.Create, a.SingleRegion, a.ReadOnly = p.Bool("create", false), p.Bool("single_region", false), p.Bool("readonly", false)
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
